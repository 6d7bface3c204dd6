#ifndef CLAIMD_CLIENT_CTL_EXIT_CODE_H_
#define CLAIMD_CLIENT_CTL_EXIT_CODE_H_

#include <string>

#include "absl/status/status.h"

// What claimctl's exit code says, and what to do about a refusal.
namespace claimd::ctl {

// One for each class of reasons, so that scripts can decide. The numbers are final.
enum class ExitCode {
  kOk = 0,
  kOther = 1,
  kUsage = 2,
  kNotFound = 3,
  kLost = 4,
  kRefused = 5,
  kState = 6,
  kUnavailable = 7,
  kDenied = 8,
  kSomeRefused = 9,
  kCorrupt = 10,
};

ExitCode ExitCodeOf(const absl::Status& status);

// The lines of --help that explain the codes.
std::string ExitCodesText();

// One sentence on what to do next about a failed call, or "".
std::string NextStep(const absl::Status& status);

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_EXIT_CODE_H_
