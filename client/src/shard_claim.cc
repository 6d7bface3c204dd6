#include "claimd/shard_claim.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "claimd/options.h"
#include "claimd/types.h"
#include "client/src/claim_state.h"

namespace claimd {

ShardClaim::ShardClaim(std::shared_ptr<internal::ClaimState> state) : state_(std::move(state)) {}
ShardClaim::ShardClaim(ShardClaim&&) noexcept = default;
ShardClaim& ShardClaim::operator=(ShardClaim&&) noexcept = default;
ShardClaim::~ShardClaim() = default;

const std::string& ShardClaim::table() const { return state_->table(); }
const std::string& ShardClaim::shard_id() const { return state_->shard_id(); }
uint64_t ShardClaim::epoch() const { return state_->epoch(); }
ShardManifest ShardClaim::manifest() const { return state_->manifest(); }
bool ShardClaim::created() const { return state_->created(); }
std::optional<ClaimInfo> ShardClaim::previous_claim() const { return state_->previous_claim(); }
bool ShardClaim::fenced() const { return state_->fenced(); }

uint64_t ShardClaim::wal_probe_position() const {
  const ShardManifest manifest = state_->manifest();
  return std::max(manifest.wal_entry_position_last_seen, manifest.replay_after_wal_entry_position) +
         1;
}

// The calls hold on to the state, so that on_fenced may destroy the claim.

absl::Status ShardClaim::CheckFence(const CallOptions& options) {
  const std::shared_ptr<internal::ClaimState> state = state_;
  return state->CheckFence(options);
}

absl::StatusOr<ShardManifest> ShardClaim::Commit(const Mutator& mutate,
                                                 const CallOptions& options) {
  const std::shared_ptr<internal::ClaimState> state = state_;
  return state->Commit(mutate, options);
}

absl::Status ShardClaim::Release(const CallOptions& options) {
  const std::shared_ptr<internal::ClaimState> state = state_;
  return state->Release(options);
}

}  // namespace claimd
