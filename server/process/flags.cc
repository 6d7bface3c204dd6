#include "server/process/flags.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

ABSL_FLAG(
    std::string, listen, "127.0.0.1:7420",
    "Addresses to serve, separated by commas: HOST:PORT, [IPV6]:PORT (port 0: any free one) or "
    "unix:PATH.");
ABSL_FLAG(bool, allow_insecure, false,
          "Serve plaintext on addresses that other machines can reach. Whoever reaches them can "
          "claim every shard.");
ABSL_FLAG(std::string, ready_file, "",
          "File that holds the bound addresses, one a line, while the server serves.");
ABSL_FLAG(absl::Duration, drain_timeout, absl::Seconds(10),
          "How long SIGTERM lets running calls finish before they are cancelled.");
ABSL_FLAG(std::string, store, "rocksdb:claimd-data",
          "Where shards are kept: rocksdb:DIR, or memory: to lose all at exit.");
ABSL_FLAG(uint64_t, history_versions, 64,
          "Manifest versions kept for each shard, newest included.");
ABSL_FLAG(uint64_t, claim_history, 1000, "Ended claims kept for each shard.");
ABSL_FLAG(uint64_t, change_log, 1000000, "Newest changes kept for readers that resume.");
ABSL_FLAG(uint64_t, block_cache_bytes, 268435456,
          "Memory for data read from disk, in bytes (rocksdb).");
ABSL_FLAG(uint64_t, max_manifest_bytes, 1048576,
          "Largest manifest that is committed or imported, in bytes.");
ABSL_FLAG(uint64_t, max_epoch_jump, 1048576,
          "Largest distance of a claim's epoch_floor above the stored epoch.");
ABSL_FLAG(uint64_t, max_request_bytes, 16777216, "Largest request that is read, in bytes.");
ABSL_FLAG(uint64_t, max_inflight, 8192,
          "Calls in flight (claims of a batch count one by one) before OVERLOADED.");

namespace claimd::process {
namespace {

constexpr absl::string_view kEnvironmentPrefix = "CLAIMD_";
// What a request may hold beside a manifest.
constexpr uint64_t kRequestOverheadBytes = uint64_t{64} << 10U;

struct FlagGroup {
  absl::string_view title;
  std::vector<absl::string_view> flags;
};

const std::vector<FlagGroup>& Groups() {
  static const auto* const groups = new std::vector<FlagGroup>{
      {"Serving", {"listen", "allow_insecure", "ready_file", "drain_timeout"}},
      {"Store", {"store", "history_versions", "claim_history", "change_log", "block_cache_bytes"}},
      {"Limits", {"max_manifest_bytes", "max_epoch_jump", "max_request_bytes", "max_inflight"}},
  };
  return *groups;
}

std::string Dashed(absl::string_view name) { return absl::StrReplaceAll(name, {{"_", "-"}}); }
std::string EnvironmentName(absl::string_view name) {
  return absl::StrCat(kEnvironmentPrefix, absl::AsciiStrToUpper(name));
}

// Our flag of this name, in either spelling; null for flags of linked libraries, too.
absl::CommandLineFlag* FindFlag(absl::string_view name) {
  const std::string plain = absl::StrReplaceAll(name, {{"-", "_"}});
  for (const FlagGroup& group : Groups()) {
    if (std::find(group.flags.begin(), group.flags.end(), plain) != group.flags.end()) {
      return absl::FindCommandLineFlag(plain);
    }
  }
  return nullptr;
}

absl::Status Set(absl::CommandLineFlag* flag, const std::string& value, absl::string_view source) {
  std::string error;
  if (flag->ParseFrom(value, &error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(source, " cannot be \"", value, "\": it is not of the type that --",
                   Dashed(flag->Name()), " takes (", flag->Help(), ")"));
}

absl::Status ReadEnvironment() {
  for (const FlagGroup& group : Groups()) {
    for (const absl::string_view name : group.flags) {
      const std::string variable = EnvironmentName(name);
      const char* const value = std::getenv(variable.c_str());
      if (value == nullptr) continue;
      if (absl::Status set = Set(FindFlag(name), value, variable); !set.ok()) return set;
    }
  }
  return absl::OkStatus();
}

// One flag of the command line.
struct Setting {
  absl::CommandLineFlag* flag = nullptr;
  std::string value;
};

// Reads the flag 'name' that has no '='; may take the next argument, and then moves 'index' on.
absl::StatusOr<Setting> ReadBareFlag(const std::vector<std::string>& arguments,
                                     absl::string_view name, size_t* index) {
  absl::CommandLineFlag* const flag = FindFlag(name);
  if (flag == nullptr) {
    absl::string_view positive = name;
    absl::CommandLineFlag* const negated =
        absl::ConsumePrefix(&positive, "no") ? FindFlag(positive) : nullptr;
    const bool is_switch = negated != nullptr && negated->IsOfType<bool>();
    return Setting{.flag = is_switch ? negated : nullptr, .value = "false"};
  }
  if (flag->IsOfType<bool>()) return Setting{.flag = flag, .value = "true"};
  if (++*index == arguments.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--", name, " needs a value"));
  }
  return Setting{.flag = flag, .value = arguments[*index]};
}

// Takes --name=value, --name value, and for switches --name and --noname.
absl::Status ReadArguments(const std::vector<std::string>& arguments, CommandLine::Action* action) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    absl::string_view argument = arguments[i];
    if (!absl::ConsumePrefix(&argument, "--") || argument.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", arguments[i], "\" is not a flag; see claimd --help"));
    }
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(argument, absl::MaxSplits('=', 1));
    const absl::string_view name = parts.first;
    if (name == "help" || name == "version") {
      *action = name == "help" ? CommandLine::Action::kHelp : CommandLine::Action::kVersion;
      continue;
    }
    const absl::StatusOr<Setting> setting =
        absl::StrContains(argument, '=')
            ? Setting{.flag = FindFlag(name), .value = std::string(parts.second)}
            : ReadBareFlag(arguments, name, &i);
    if (!setting.ok()) return setting.status();
    if (setting->flag == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("there is no flag --", name, "; see claimd --help"));
    }
    const std::string source = absl::StrCat("--", name);
    if (absl::Status set = Set(setting->flag, setting->value, source); !set.ok()) return set;
  }
  return absl::OkStatus();
}

absl::Status OutOfRange(absl::string_view flag, absl::string_view range) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " (", EnvironmentName(absl::StrReplaceAll(flag, {{"-", "_"}})),
                   ") must be ", range));
}

absl::Status CheckNumbers(const Config& config) {
  struct Range {
    absl::string_view flag;
    uint64_t value;
    uint64_t min;
    uint64_t max;
  };
  constexpr uint64_t kGiB = uint64_t{1} << 30U;
  const std::array<Range, 8> ranges = {{
      {"history-versions", config.history_versions, 1, 1'000'000},
      {"claim-history", config.claim_history, 1, 1'000'000'000},
      {"change-log", config.change_log, 1, 1'000'000'000'000},
      {"block-cache-bytes", config.block_cache_bytes, uint64_t{1} << 20U, 1024 * kGiB},
      {"max-manifest-bytes", config.manifest_bytes_max, 1'024, uint64_t{3} << 20U},
      {"max-epoch-jump", config.epoch_jump_max, 0, uint64_t{1} << 62U},
      {"max-request-bytes", config.request_bytes_max, uint64_t{64} << 10U, kGiB},
      {"max-inflight", config.inflight_max, 1, 1'000'000},
  }};
  for (const Range& range : ranges) {
    if (range.value < range.min || range.value > range.max) {
      return OutOfRange(range.flag, absl::StrCat("from ", range.min, " to ", range.max));
    }
  }
  if (config.drain_timeout < absl::ZeroDuration() || config.drain_timeout > absl::Hours(24)) {
    return OutOfRange("drain-timeout", "from 0s to 24h");
  }
  // A commit carries little beside its manifest; a manifest that is allowed must get in.
  if (config.request_bytes_max < config.manifest_bytes_max + kRequestOverheadBytes) {
    return OutOfRange(
        "max-request-bytes",
        absl::StrCat("at least ", kRequestOverheadBytes,
                     " larger than --max-manifest-bytes, which is ", config.manifest_bytes_max));
  }
  return absl::OkStatus();
}

absl::Status CheckAddress(absl::string_view address) {
  constexpr int kPortMax = 65'535;
  absl::string_view path = address;
  if (absl::ConsumePrefix(&path, "unix:")) {
    if (!path.empty()) return absl::OkStatus();
  } else {
    const size_t colon = address.rfind(':');
    int port = -1;
    if (colon != absl::string_view::npos && colon > 0 &&
        absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 0 && port <= kPortMax) {
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--listen cannot be \"", address, "\": use HOST:PORT with a port up to 65535, or unix:PATH"));
}

absl::Status CheckAddresses(const Config& config) {
  if (config.listen.empty()) return OutOfRange("listen", "at least one address");
  for (const std::string& address : config.listen) {
    if (absl::Status valid = CheckAddress(address); !valid.ok()) return valid;
    if (!IsLoopback(address) && !absl::GetFlag(FLAGS_allow_insecure)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--listen=", address, " would let other machines claim shards without encryption or ",
          "authentication; say --allow-insecure if that is meant"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsLoopback(absl::string_view address) {
  if (absl::StartsWith(address, "unix:")) return true;
  const absl::string_view host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // A name such as 127.evil.example is not an address of this machine.
  const std::vector<absl::string_view> parts = absl::StrSplit(host, '.');
  return parts.size() == 4 && parts[0] == "127" &&
         std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
           int number = -1;
           return absl::SimpleAtoi(part, &number) && number >= 0 && number <= 255;
         });
}

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments) {
  CommandLine line;
  if (absl::Status read = ReadArguments(arguments, &line.action); !read.ok()) return read;
  if (line.action != CommandLine::Action::kServe) return line;
  if (absl::Status read = ReadEnvironment(); !read.ok()) return read;
  // Once more, because arguments win over the environment.
  if (absl::Status read = ReadArguments(arguments, &line.action); !read.ok()) return read;

  Config& config = line.config;
  config.listen = absl::StrSplit(absl::GetFlag(FLAGS_listen), ',', absl::SkipEmpty());
  config.store = absl::GetFlag(FLAGS_store);
  config.ready_file = absl::GetFlag(FLAGS_ready_file);
  config.drain_timeout = absl::GetFlag(FLAGS_drain_timeout);
  config.history_versions = absl::GetFlag(FLAGS_history_versions);
  config.claim_history = absl::GetFlag(FLAGS_claim_history);
  config.change_log = absl::GetFlag(FLAGS_change_log);
  config.manifest_bytes_max = absl::GetFlag(FLAGS_max_manifest_bytes);
  config.epoch_jump_max = absl::GetFlag(FLAGS_max_epoch_jump);
  config.request_bytes_max = absl::GetFlag(FLAGS_max_request_bytes);
  config.inflight_max = absl::GetFlag(FLAGS_max_inflight);
  config.block_cache_bytes = absl::GetFlag(FLAGS_block_cache_bytes);
  if (absl::Status numbers = CheckNumbers(config); !numbers.ok()) return numbers;
  if (absl::Status addresses = CheckAddresses(config); !addresses.ok()) return addresses;
  return line;
}

std::string HelpText() {
  std::string text =
      "claimd decides who may write a shard.\n\n"
      "Usage: claimd [--flag=value ...]\n\n"
      "Each flag can also be set through the environment variable named beside it; the command "
      "line "
      "wins.\n";
  for (const FlagGroup& group : Groups()) {
    absl::StrAppend(&text, "\n", group.title, ":\n");
    for (const absl::string_view name : group.flags) {
      const absl::CommandLineFlag* flag = FindFlag(name);
      absl::StrAppend(&text, "  --", Dashed(name), "  (", EnvironmentName(name), ", default ",
                      flag->DefaultValue().empty() ? "none" : flag->DefaultValue(), ")\n      ",
                      flag->Help(), "\n");
    }
  }
  absl::StrAppend(
      &text,
      "\n  --help, --version\n"
      "\nSIGTERM and SIGINT drain: new calls are refused, running ones finish, bounded by "
      "--drain-timeout.\nA second signal ends the process at once.\n"
      "\nExit codes: 0 clean stop, 1 failure while running, 2 bad flag or environment, "
      "3 store cannot be\nopened, 4 cannot listen, 128 + N ended by a second signal N.\n");
  return text;
}

}  // namespace claimd::process
