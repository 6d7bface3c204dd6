#ifndef CLAIMD_SERVER_PROCESS_FLAGS_H_
#define CLAIMD_SERVER_PROCESS_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace claimd::process {

// Everything that can be set from outside, checked.
struct Config {
  // Addresses as given, at least one: HOST:PORT or unix:PATH.
  std::vector<std::string> listen;
  std::string store;
  std::string ready_file;
  absl::Duration drain_timeout;
  uint64_t history_versions = 0;
  uint64_t claim_history = 0;
  uint64_t change_log = 0;
  uint64_t manifest_bytes_max = 0;
  uint64_t epoch_jump_max = 0;
  uint64_t request_bytes_max = 0;
  uint64_t inflight_max = 0;
  uint64_t block_cache_bytes = 0;
};

// What the command line asks for.
struct CommandLine {
  enum class Action { kServe, kHelp, kVersion };
  Action action = Action::kServe;
  Config config;
};

// Reads the environment (CLAIMD_LISTEN for --listen, and so on), then the arguments, which win.
// Not thread-safe: call it once, first. Errors: InvalidArgument, one sentence that names the flag
// or variable.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments);

// The text of --help.
std::string HelpText();

// Whether an address can be reached from this machine only. REQUIRES: it passed ParseCommandLine.
bool IsLoopback(absl::string_view address);

}  // namespace claimd::process

#endif  // CLAIMD_SERVER_PROCESS_FLAGS_H_
