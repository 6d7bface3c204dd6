#include "server/base/clock.h"

#include <ctime>

#include "absl/time/clock.h"

namespace claimd::base {
namespace {

class RealClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }

  absl::Duration MonotonicNow() const override {
    timespec now{};
    // CLOCK_BOOTTIME is CLOCK_MONOTONIC that goes on during suspend; it cannot fail on Linux.
    clock_gettime(CLOCK_BOOTTIME, &now);
    return absl::DurationFromTimespec(now);
  }
};

}  // namespace

Clock* SystemClock() {
  static auto* const clock = new RealClock();
  return clock;
}

}  // namespace claimd::base
