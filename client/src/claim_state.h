#ifndef CLAIMD_CLIENT_SRC_CLAIM_STATE_H_
#define CLAIMD_CLIENT_SRC_CLAIM_STATE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "claimd/v1/shard_arbiter.pb.h"

#include "claimd/options.h"
#include "claimd/shard_claim.h"
#include "claimd/types.h"
#include "client/src/mutex.h"

namespace claimd::internal {

class Core;
class RetryLoop;

// What is behind a ShardClaim. Thread-safe. Nothing is sent and no function of the caller runs
// under the lock. Commits and the release take turns, so that the commits of one claim do not
// conflict with each other.
class ClaimState {
 public:
  // What was granted.
  struct Grant {
    uint64_t epoch = 0;
    ShardManifest manifest;
    bool created = false;
    std::optional<ClaimInfo> previous_claim;
    std::function<void(const absl::Status&)> on_fenced;
  };

  ClaimState(std::shared_ptr<Core> core, Grant grant);

  const std::string& table() const { return table_; }
  const std::string& shard_id() const { return shard_id_; }
  uint64_t epoch() const { return epoch_; }
  bool created() const { return created_; }
  const std::optional<ClaimInfo>& previous_claim() const { return previous_claim_; }
  ShardManifest manifest() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool fenced() const ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status CheckFence(const CallOptions& call) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<ShardManifest> Commit(const ShardClaim::Mutator& mutate, const CallOptions& call)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Release(const CallOptions& call) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Turn;

  // Not OK once the claim is fenced or released: answered without a call to the server.
  absl::Status Usable() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status UsableLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Status TakeTurn(absl::Duration deadline) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndTurn() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Status ReleaseInTurn(std::string request_id, absl::Duration deadline);
  absl::StatusOr<ShardManifest> CommitInTurn(const ShardClaim::Mutator& mutate,
                                             absl::Duration deadline);
  // Brings the known manifest up to date after a version conflict.
  absl::Status Rebase(const absl::Status& conflict, absl::Duration deadline);
  // After a lost answer, a conflict only says that nothing landed while the history reaches back
  // to the version in question.
  absl::Status RuleOutLanding(const absl::Status& conflict, uint64_t version,
                              absl::Duration deadline);
  absl::StatusOr<ShardManifest> Get(std::optional<uint64_t> version, absl::Duration deadline);

  // Notes a fence, and tells the caller once.
  absl::Status Learn(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  void See(const ShardManifest& manifest) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<Core> core_;
  const std::string table_;
  const std::string shard_id_;
  const uint64_t epoch_;
  const bool created_;
  const std::optional<ClaimInfo> previous_claim_;
  const std::function<void(const absl::Status&)> on_fenced_;

  mutable Mutex mutex_;
  CondVar turn_ended_;
  // The newest one seen.
  ShardManifest manifest_ ABSL_GUARDED_BY(mutex_);
  // The first WRITER_FENCED; OK while there was none.
  absl::Status fence_ ABSL_GUARDED_BY(mutex_);
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
  bool turn_taken_ ABSL_GUARDED_BY(mutex_) = false;
  // Who has the turn, while somebody has.
  std::thread::id turn_holder_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace claimd::internal

#endif  // CLAIMD_CLIENT_SRC_CLAIM_STATE_H_
