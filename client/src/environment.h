#ifndef CLAIMD_CLIENT_SRC_ENVIRONMENT_H_
#define CLAIMD_CLIENT_SRC_ENVIRONMENT_H_

#include <functional>
#include <string>

#include "absl/time/time.h"

namespace claimd::internal {

// What the library takes from the machine, so that tests decide about time and chance. Not part of
// the installed interface. All functions must be thread-safe.
struct Environment {
  // Time since some fixed moment, never going back.
  std::function<absl::Duration()> monotonic_now;
  // Returns after the duration. Null: as Channels::WaitFor does.
  std::function<void(absl::Duration)> sleep;
  // Uniform in [0, 1).
  std::function<double()> random_fraction;
  // A fresh random UUID.
  std::function<std::string()> new_request_id;
};

// The machine's clock and randomness, without 'sleep'.
Environment SystemEnvironment();

}  // namespace claimd::internal

#endif  // CLAIMD_CLIENT_SRC_ENVIRONMENT_H_
