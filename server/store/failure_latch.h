#ifndef CLAIMD_SERVER_STORE_FAILURE_LATCH_H_
#define CLAIMD_SERVER_STORE_FAILURE_LATCH_H_

#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"

#include "server/base/mutex.h"

namespace claimd::store {

// Remembers for good that a store has failed, and why. Thread-safe.
class FailureLatch {
 public:
  // 'on_failure' runs once, on the thread that reports the first failure. May be null.
  explicit FailureLatch(absl::AnyInvocable<void(const absl::Status&)> on_failure)
      : on_failure_(std::move(on_failure)) {}

  // Later failures change nothing. REQUIRES: status is not OK.
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      const base::MutexLock lock(&mutex_);
      if (!status_.ok()) return;
      status_ = status;
      failed_.store(true, std::memory_order_release);
    }
    if (on_failure_) on_failure_(status);
  }

  // OK, or the first failure.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!failed_.load(std::memory_order_acquire)) return absl::OkStatus();
    const base::MutexLock lock(&mutex_);
    return status_;
  }

 private:
  // Run by the one call of Fail that comes first.
  absl::AnyInvocable<void(const absl::Status&)> on_failure_;
  std::atomic<bool> failed_ = false;
  mutable base::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_FAILURE_LATCH_H_
