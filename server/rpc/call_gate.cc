#include "server/rpc/call_gate.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "server/arbiter/errors.h"
#include "server/base/clock.h"
#include "server/base/mutex.h"

namespace claimd::rpc {
namespace {

// A rejected client that comes back after this finds most of today's calls done.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);

}  // namespace

absl::Status CallGate::Enter(size_t weight) {
  const base::MutexLock lock(&mutex_);
  if (draining_) return arbiter::DrainingError();
  if (inside_ > 0 && inside_ + weight > calls_max_) {
    return arbiter::OverloadedError(absl::StrCat(inside_, " calls are in flight"), kRetryAfter);
  }
  inside_ += weight;
  return absl::OkStatus();
}

void CallGate::Leave(size_t weight) {
  const base::MutexLock lock(&mutex_);
  inside_ -= weight;
  if (inside_ == 0 && draining_) idle_.NotifyAll();
}

void CallGate::StartDraining() {
  const base::MutexLock lock(&mutex_);
  draining_ = true;
}

absl::Status CallGate::AwaitIdle(absl::Duration timeout) {
  const base::Clock* clock = base::SystemClock();
  const absl::Duration end = clock->MonotonicNow() + timeout;
  const base::MutexLock lock(&mutex_);
  while (inside_ > 0) {
    const absl::Duration left = end - clock->MonotonicNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat(inside_, " calls are still in flight"));
    }
    idle_.WaitFor(&mutex_, left);
  }
  return absl::OkStatus();
}

}  // namespace claimd::rpc
