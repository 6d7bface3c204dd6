#ifndef CLAIMD_SERVER_BASE_CLOCK_H_
#define CLAIMD_SERVER_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace claimd::base {

// The only source of time, so that tests decide what time it is. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // Wall-clock time, for records that people read. Can jump; never compare it to decide anything.
  virtual absl::Time Now() const = 0;

  // Time since some fixed moment, never going back, also counting while the machine is suspended.
  virtual absl::Duration MonotonicNow() const = 0;
};

// The machine's clocks. Never destroyed.
Clock* SystemClock();

}  // namespace claimd::base

#endif  // CLAIMD_SERVER_BASE_CLOCK_H_
