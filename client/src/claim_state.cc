#include "client/src/claim_state.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "claimd/v1/shard_arbiter.pb.h"

#include "claimd/errors.h"
#include "claimd/options.h"
#include "claimd/types.h"
#include "client/src/convert.h"
#include "client/src/core.h"
#include "client/src/mutex.h"
#include "client/src/retry.h"
#include "client/src/status.h"

namespace claimd::internal {

// The right to commit, for a scope.
class ClaimState::Turn {
 public:
  explicit Turn(ClaimState* state) : state_(state) {}
  ~Turn() { state_->EndTurn(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  ClaimState* const state_;
};

ClaimState::ClaimState(std::shared_ptr<Core> core, Grant grant)
    : core_(std::move(core)),
      table_(grant.manifest.table),
      shard_id_(grant.manifest.shard_id),
      epoch_(grant.epoch),
      created_(grant.created),
      previous_claim_(std::move(grant.previous_claim)),
      on_fenced_(std::move(grant.on_fenced)),
      manifest_(std::move(grant.manifest)) {}

ShardManifest ClaimState::manifest() const {
  const MutexLock lock(&mutex_);
  return manifest_;
}

bool ClaimState::fenced() const {
  const MutexLock lock(&mutex_);
  return !fence_.ok();
}

absl::Status ClaimState::Usable() const {
  const MutexLock lock(&mutex_);
  return UsableLocked();
}

absl::Status ClaimState::UsableLocked() const {
  if (!fence_.ok()) return fence_;
  if (released_) {
    return LocalError(absl::StatusCode::kFailedPrecondition, ErrorReason::kClaimReleased,
                      absl::StrCat("The claim of shard ", shard_id_, " under epoch ", epoch_,
                                   " was released; claim the shard again to write it."),
                      table_, shard_id_);
  }
  return absl::OkStatus();
}

absl::Status ClaimState::TakeTurn(absl::Duration deadline) {
  // Long enough to be rare, short enough for every clock's arithmetic.
  constexpr absl::Duration kWaitMax = absl::Hours(1);
  const MutexLock lock(&mutex_);
  while (true) {
    if (absl::Status usable = UsableLocked(); !usable.ok()) return usable;
    if (!turn_taken_) break;
    if (turn_holder_ == std::this_thread::get_id()) {
      return absl::FailedPreconditionError(
          "A commit's mutator must not commit to or release the same claim.");
    }
    const absl::Duration remaining = deadline - core_->environment().monotonic_now();
    if (remaining <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat(
          "Other commits to shard ", shard_id_, " took up the whole budget; nothing was sent."));
    }
    turn_ended_.WaitFor(&mutex_, std::min(remaining, kWaitMax));
  }
  turn_taken_ = true;
  turn_holder_ = std::this_thread::get_id();
  return absl::OkStatus();
}

void ClaimState::EndTurn() {
  const MutexLock lock(&mutex_);
  turn_taken_ = false;
  turn_holder_ = std::thread::id();
  turn_ended_.NotifyAll();
}

absl::Status ClaimState::Learn(absl::Status status) {
  if (ReasonOf(status) != ErrorReason::kWriterFenced) return status;
  bool first = false;
  {
    const MutexLock lock(&mutex_);
    if (fence_.ok()) {
      first = true;
      // Later answers come without a call.
      fence_ = status;
      SetCallFacts({}, &fence_);
      turn_ended_.NotifyAll();
    }
  }
  if (first && on_fenced_) on_fenced_(status);
  return status;
}

void ClaimState::See(const ShardManifest& manifest) {
  const MutexLock lock(&mutex_);
  if (manifest.version > manifest_.version) manifest_ = manifest;
}

absl::Status ClaimState::CheckFence(const CallOptions& call) {
  if (absl::Status usable = Usable(); !usable.ok()) return usable;
  v1::CheckFenceRequest request;
  request.set_table(table_);
  request.set_shard_id(shard_id_);
  request.set_writer_epoch(epoch_);
  return Learn(
      core_->Read(&v1::ShardArbiter::Stub::CheckFence, request, core_->DeadlineOf(call)).status());
}

absl::Status ClaimState::Release(const CallOptions& call) {
  const absl::Duration deadline = core_->DeadlineOf(call);
  absl::Status took_turn = TakeTurn(deadline);
  if (ReasonOf(took_turn) == ErrorReason::kClaimReleased) return absl::OkStatus();
  if (!took_turn.ok()) return took_turn;
  absl::Status result;
  {
    const Turn turn(this);
    result = ReleaseInTurn(core_->RequestIdFor(call), deadline);
  }
  // Outside the turn, since this may call the caller's on_fenced.
  return Learn(std::move(result));
}

absl::Status ClaimState::ReleaseInTurn(std::string request_id, absl::Duration deadline) {
  v1::ReleaseEpochRequest request;
  request.set_table(table_);
  request.set_shard_id(shard_id_);
  request.set_writer_epoch(epoch_);
  request.set_request_id(std::move(request_id));
  const auto response = core_->Mutate(&v1::ShardArbiter::Stub::ReleaseEpoch, request, deadline);
  if (!response.ok()) return response.status();
  See(FromProto(response->manifest()));
  const MutexLock lock(&mutex_);
  released_ = true;
  return absl::OkStatus();
}

absl::StatusOr<ShardManifest> ClaimState::Commit(const ShardClaim::Mutator& mutate,
                                                 const CallOptions& call) {
  const absl::Duration deadline = core_->DeadlineOf(call);
  if (absl::Status took_turn = TakeTurn(deadline); !took_turn.ok()) return took_turn;
  absl::StatusOr<ShardManifest> result = absl::UnknownError("");
  {
    const Turn turn(this);
    result = CommitInTurn(mutate, deadline);
  }
  // Outside the turn, since this may call the caller's on_fenced.
  if (!result.ok()) return Learn(result.status());
  return result;
}

absl::StatusOr<ShardManifest> ClaimState::CommitInTurn(const ShardClaim::Mutator& mutate,
                                                       absl::Duration deadline) {
  for (int conflicts = 0;;) {
    ShardManifest next = manifest();
    const uint64_t version = next.version + 1;
    if (absl::Status changed = mutate(&next); !changed.ok()) return changed;
    next.version = version;
    next.claim.reset();
    v1::CommitManifestRequest request;
    request.set_table(table_);
    request.set_shard_id(shard_id_);
    request.set_writer_epoch(epoch_);
    *request.mutable_manifest() = ToProto(next);
    // Another manifest is another mutation, so it gets an id of its own. Attempts of the same one
    // share it, and the bytes.
    request.set_request_id(core_->environment().new_request_id());
    RetryLoop retries = core_->Retries(deadline, request.request_id());
    const auto response = core_->Call(&v1::ShardArbiter::Stub::CommitManifest, request, &retries);
    if (response.ok()) {
      ShardManifest committed = FromProto(response->manifest());
      See(committed);
      return committed;
    }
    const absl::Status& error = response.status();
    if (ReasonOf(error) != ErrorReason::kManifestVersionConflict) return error;
    if (retries.lost_an_answer()) {
      absl::Status ruled_out = RuleOutLanding(error, version, deadline);
      if (!ruled_out.ok()) return ruled_out;
    }
    // The first conflict is taken up at once. Whoever keeps losing makes room.
    ++conflicts;
    const absl::Duration wait =
        conflicts == 1 ? absl::ZeroDuration()
                       : BackoffBefore(conflicts - 1, core_->options().retry, absl::ZeroDuration(),
                                       core_->environment().random_fraction());
    if (core_->environment().monotonic_now() + wait >= deadline) return error;
    if (conflicts > 1) core_->environment().sleep(wait);
    if (absl::Status rebased = Rebase(error, deadline); !rebased.ok()) return rebased;
  }
}

absl::Status ClaimState::Rebase(const absl::Status& conflict, absl::Duration deadline) {
  std::optional<ShardManifest> stored = ErrorDetails::From(conflict).stored_manifest;
  const ShardManifest known = manifest();
  if (!stored.has_value() || stored->version <= known.version) {
    absl::StatusOr<ShardManifest> read = Get(std::nullopt, deadline);
    if (!read.ok()) return read.status();
    stored = *std::move(read);
  }
  if (stored->version < known.version) {
    return absl::DataLossError(absl::StrCat(
        "Shard ", shard_id_, " is at version ", stored->version, ", but was at version ",
        known.version, " before: the server's data went back. Nothing was committed."));
  }
  See(*stored);
  return absl::OkStatus();
}

absl::Status ClaimState::RuleOutLanding(const absl::Status& conflict, uint64_t version,
                                        absl::Duration deadline) {
  const absl::StatusOr<ShardManifest> kept = Get(version, deadline);
  if (kept.ok()) return absl::OkStatus();
  CallFacts facts = CallFactsOf(conflict);
  facts.may_have_landed = true;
  absl::Status unknown = LocalError(
      absl::StatusCode::kUnavailable, ErrorReason::kOutcomeUnknown,
      absl::StrCat(
          "An answer to the commit of version ", version, " of shard ", shard_id_,
          " was lost, and it cannot be told any more whether it landed: ", kept.status().message()),
      table_, shard_id_);
  SetCallFacts(facts, &unknown);
  return unknown;
}

absl::StatusOr<ShardManifest> ClaimState::Get(std::optional<uint64_t> version,
                                              absl::Duration deadline) {
  v1::GetManifestRequest request;
  request.set_table(table_);
  request.set_shard_id(shard_id_);
  if (version.has_value()) request.set_version(*version);
  const auto response = core_->Read(&v1::ShardArbiter::Stub::GetManifest, request, deadline);
  if (!response.ok()) return response.status();
  return FromProto(response->manifest());
}

}  // namespace claimd::internal
