#include "client/ctl/context.h"

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "claimd/client.h"
#include "claimd/errors.h"
#include "claimd/options.h"
#include "client/ctl/command_line.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/table.h"
#include "client/ctl/text.h"

namespace claimd::ctl {
namespace {

constexpr absl::Duration kDefaultTimeout = absl::Seconds(10);

std::string EnvironmentOr(const Terminal& terminal, const std::string& name,
                          const std::string& otherwise) {
  const auto found = terminal.environment.find(name);
  return found == terminal.environment.end() || found->second.empty() ? otherwise : found->second;
}

// Who asks, when --claimant does not say it.
std::string DefaultClaimant(const Terminal& terminal) {
  return absl::StrCat(EnvironmentOr(terminal, "USER", "somebody"), " (claimctl)");
}

void WriteErrorJson(const absl::Status& status, const ErrorDetails& details, std::ostream* err) {
  std::vector<std::string> metadata;
  for (const auto& [name, value] : details.metadata) {
    metadata.push_back(absl::StrCat(JsonString(name), ":", JsonString(value)));
  }
  std::vector<std::string> violations;
  for (const FieldViolation& violation : details.field_violations) {
    violations.push_back(absl::StrCat(R"({"field":)", JsonString(violation.field),
                                      R"(,"description":)", JsonString(violation.description),
                                      "}"));
  }
  *err << R"({"code":)" << JsonString(absl::StatusCodeToString(status.code())) << R"(,"reason":)"
       << JsonString(details.reason_text) << R"(,"message":)"
       << JsonString(std::string(status.message())) << R"(,"metadata":{)"
       << absl::StrJoin(metadata, ",") << R"(},"fieldViolations":[)"
       << absl::StrJoin(violations, ",") << R"(],"requestId":)" << JsonString(details.request_id)
       << R"(,"mayHaveLanded":)" << (details.may_have_landed ? "true" : "false") << R"(,"next":)"
       << JsonString(NextStep(status)) << R"(,"exitCode":)" << static_cast<int>(ExitCodeOf(status))
       << "}" << std::endl;
}

}  // namespace

Context::Context(Invocation invocation, Terminal terminal)
    : invocation_(std::move(invocation)), terminal_(std::move(terminal)) {}

absl::StatusOr<Context> Context::Make(Invocation invocation, Terminal terminal) {
  Context context(std::move(invocation), std::move(terminal));
  const Invocation& flags = context.invocation_;
  if (flags.Text("output") == "json") context.format_ = OutputFormat::kJson;
  if (flags.Text("output") == "jsonl") context.format_ = OutputFormat::kJsonLines;
  context.time_style_ = {flags.Has("absolute"), absl::Now()};
  auto timeout = flags.Duration("timeout");
  if (!timeout.ok()) return timeout.status();
  context.timeout_ = *timeout;
  return context;
}

absl::StatusOr<Client> Context::Connect() const {
  ClientOptions options;
  std::vector<std::string> servers = invocation_.Values("server");
  if (servers.empty()) servers = {EnvironmentOr(terminal_, "CLAIMD_SERVER", "127.0.0.1:7420")};
  options.targets = absl::StrSplit(absl::StrJoin(servers, ","), ',', absl::SkipEmpty());
  const bool tls = invocation_.Has("tls") || invocation_.Has("tls-ca") ||
                   invocation_.Has("tls-cert") || invocation_.Has("tls-key") ||
                   invocation_.Has("tls-server-name");
  if (tls) {
    TlsOptions& to = options.tls.emplace();
    to.ca_file = invocation_.Text("tls-ca");
    to.certificate_file = invocation_.Text("tls-cert");
    to.key_file = invocation_.Text("tls-key");
    to.server_name = invocation_.Text("tls-server-name");
  }
  auto labels = invocation_.Map("label");
  if (!labels.ok()) return labels.status();
  options.labels = *std::move(labels);
  options.claimant =
      invocation_.Has("claimant") ? invocation_.Text("claimant") : DefaultClaimant(terminal_);
  options.retry.total_budget = timeout_.value_or(kDefaultTimeout);
  options.retry.attempt_timeout = options.retry.total_budget;
  return Client::Connect(std::move(options));
}

CallOptions Context::call_options() const {
  CallOptions options;
  options.request_id = invocation_.Text("request-id");
  return options;
}

void WriteError(const absl::Status& status, OutputFormat format, std::ostream* err) {
  const ErrorDetails details = ErrorDetails::From(status);
  if (format != OutputFormat::kTable) {
    WriteErrorJson(status, details, err);
    return;
  }
  *err << "claimctl: ";
  if (!details.reason_text.empty()) {
    *err << Printable(details.reason_text) << ": ";
  } else if (!IsUsageError(status)) {
    *err << absl::StatusCodeToString(status.code()) << ": ";
  }
  *err << Printable(std::string(status.message())) << "\n";
  Details lines;
  for (const auto& [name, value] : details.metadata) lines.Add(absl::StrCat("  ", name), value);
  for (const FieldViolation& violation : details.field_violations) {
    lines.Add(absl::StrCat("  ", Printable(violation.field)), violation.description);
  }
  const std::string next = NextStep(status);
  if (!next.empty()) lines.Add("  next", next);
  lines.Write(err);
}

}  // namespace claimd::ctl
