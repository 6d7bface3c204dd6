#ifndef CLAIMD_SERVER_RPC_REQUEST_LOG_H_
#define CLAIMD_SERVER_RPC_REQUEST_LOG_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "claimd/v1/manifest.pb.h"

#include "server/base/clock.h"
#include "server/base/mutex.h"

namespace claimd::rpc {

// One log line for each change of ownership and each refusal, as key=value, bounded in rate so that
// a flood of calls is no flood of lines; what was left out is counted in the next line. Values from
// callers are quoted and escaped. Thread-safe.
class RequestLog {
 public:
  // 'clock' is not owned and must outlive this.
  explicit RequestLog(const base::Clock* clock) : clock_(clock) {}

  // A mutation that was granted: its manifest says shard, version, epoch and claimant.
  void Granted(absl::string_view rpc, const v1::ShardManifest& manifest)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // A mutation that was refused, or failed.
  void Refused(absl::string_view rpc, absl::string_view table, absl::string_view shard_id,
               const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // Lines left out so far.
  uint64_t suppressed_total() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Whether one more line fits, and how many were left out since the last one.
  struct Ticket {
    bool granted = false;
    uint64_t suppressed = 0;
  };
  Ticket Take() ABSL_LOCKS_EXCLUDED(mutex_);

  const base::Clock* const clock_;
  mutable base::Mutex mutex_;
  double tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  bool started_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration refilled_at_ ABSL_GUARDED_BY(mutex_);
  uint64_t suppressed_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t suppressed_total_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace claimd::rpc

#endif  // CLAIMD_SERVER_RPC_REQUEST_LOG_H_
