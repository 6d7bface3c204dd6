#ifndef CLAIMD_CLIENT_CTL_COMMANDS_H_
#define CLAIMD_CLIENT_CTL_COMMANDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "client/ctl/command_line.h"
#include "client/ctl/context.h"
#include "client/ctl/exit_code.h"

namespace claimd::ctl {

// All commands and flags.
const Grammar& ClaimctlGrammar();

// Runs a command line (without the program's name): writes results to the terminal's 'out',
// progress, questions and errors to its 'err'.
ExitCode RunClaimctl(const std::vector<std::string>& words, const Terminal& terminal);

// The commands. Each answers an exit code when it has said everything itself, or the error that is
// still to be written.
absl::StatusOr<ExitCode> RunClaim(const Context& context);
absl::StatusOr<ExitCode> RunCheck(const Context& context);
absl::StatusOr<ExitCode> RunRelease(const Context& context);
absl::StatusOr<ExitCode> RunInit(const Context& context);
absl::StatusOr<ExitCode> RunSeal(const Context& context);
absl::StatusOr<ExitCode> RunUnseal(const Context& context);
absl::StatusOr<ExitCode> RunDrop(const Context& context);
absl::StatusOr<ExitCode> RunGet(const Context& context);
absl::StatusOr<ExitCode> RunList(const Context& context);
absl::StatusOr<ExitCode> RunHistory(const Context& context);
absl::StatusOr<ExitCode> RunClaims(const Context& context);
absl::StatusOr<ExitCode> RunHealth(const Context& context);
absl::StatusOr<ExitCode> RunInfo(const Context& context);
absl::StatusOr<ExitCode> RunImportLance(const Context& context);
absl::StatusOr<ExitCode> RunExportLance(const Context& context);

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_COMMANDS_H_
