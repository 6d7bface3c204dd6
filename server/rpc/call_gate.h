#ifndef CLAIMD_SERVER_RPC_CALL_GATE_H_
#define CLAIMD_SERVER_RPC_CALL_GATE_H_

#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "server/base/mutex.h"

namespace claimd::rpc {

// Every call passes in and out of here, so that their number is bounded and a shutdown can wait for
// them. Thread-safe.
class CallGate {
 public:
  // At most 'calls_max' calls are inside at once; one item of a batch counts as one call.
  explicit CallGate(size_t calls_max) : calls_max_(calls_max) {}

  // Lets a call of this weight in. A call heavier than the whole bound is let in alone.
  // Errors: OVERLOADED, DRAINING; then Leave must not be called.
  absl::Status Enter(size_t weight) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(size_t weight) ABSL_LOCKS_EXCLUDED(mutex_);

  // Refuses calls from now on.
  void StartDraining() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until no call is inside. Errors: DeadlineExceeded when 'timeout' passes first.
  absl::Status AwaitIdle(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const size_t calls_max_;
  base::Mutex mutex_;
  base::CondVar idle_;
  size_t inside_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace claimd::rpc

#endif  // CLAIMD_SERVER_RPC_CALL_GATE_H_
