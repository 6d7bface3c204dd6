#include "client/ctl/commands.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "client/ctl/command_line.h"
#include "client/ctl/context.h"
#include "client/ctl/exit_code.h"

#ifndef CLAIMD_VERSION
#define CLAIMD_VERSION "unknown"
#endif

namespace claimd::ctl {
namespace {

using Handler = absl::StatusOr<ExitCode> (*)(const Context&);

const std::map<std::string, Handler>& Handlers() {
  static const auto* const handlers = new std::map<std::string, Handler>{
      {"claim", RunClaim},
      {"check", RunCheck},
      {"get", RunGet},
      {"list", RunList},
      {"history", RunHistory},
      {"claims", RunClaims},
      {"release", RunRelease},
      {"seal", RunSeal},
      {"unseal", RunUnseal},
      {"drop", RunDrop},
      {"init", RunInit},
      {"health", RunHealth},
      {"info", RunInfo},
      {"import-lance", RunImportLance},
      {"export-lance", RunExportLance},
  };
  return *handlers;
}

std::string HelpFor(const std::string& command) {
  const Grammar& grammar = ClaimctlGrammar();
  const CommandSpec* spec = FindCommand(grammar, command);
  return spec == nullptr ? HelpPage(grammar, ExitCodesText()) : HelpPage(grammar, *spec);
}

absl::StatusOr<ExitCode> Run(const Invocation& invocation, const Terminal& terminal) {
  if (invocation.help()) {
    *terminal.out << HelpFor(invocation.command());
    return ExitCode::kOk;
  }
  if (invocation.command().empty()) {
    *terminal.out << "claimctl " << CLAIMD_VERSION << "\n";
    return ExitCode::kOk;
  }
  if (invocation.command() == "help") {
    *terminal.out << HelpFor(invocation.arguments().empty() ? "" : invocation.argument(0));
    return ExitCode::kOk;
  }
  if (invocation.command() == "completion") {
    *terminal.out << BashCompletion(ClaimctlGrammar());
    return ExitCode::kOk;
  }
  const auto context = Context::Make(invocation, terminal);
  if (!context.ok()) return context.status();
  return Handlers().at(invocation.command())(*context);
}

// The command that was meant, behind a blank; "" if there is none.
std::string CommandAmong(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (FindCommand(ClaimctlGrammar(), word) != nullptr) return " " + word;
  }
  return "";
}

// The output format that errors are written in, also when the command line is wrong.
OutputFormat FormatOf(const absl::StatusOr<Invocation>& invocation) {
  const std::string format = invocation.ok() ? invocation->Text("output") : "";
  if (format == "json") return OutputFormat::kJson;
  return format == "jsonl" ? OutputFormat::kJsonLines : OutputFormat::kTable;
}

}  // namespace

ExitCode RunClaimctl(const std::vector<std::string>& words, const Terminal& terminal) {
  const auto invocation = Invocation::Parse(ClaimctlGrammar(), words);
  const absl::StatusOr<ExitCode> result =
      invocation.ok() ? Run(*invocation, terminal) : invocation.status();
  terminal.out->flush();
  if (!result.ok()) {
    const OutputFormat format = FormatOf(invocation);
    WriteError(result.status(), format, terminal.err);
    if (format == OutputFormat::kTable && IsUsageError(result.status())) {
      *terminal.err << "Try \"claimctl help" << CommandAmong(words) << "\"." << std::endl;
    }
    return ExitCodeOf(result.status());
  }
  // A full disk or a closed pipe must not look like success.
  return terminal.out->good() ? *result : ExitCode::kOther;
}

}  // namespace claimd::ctl
