#include "server/arbiter/rules.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"
#include "google/protobuf/timestamp.pb.h"

#include "server/arbiter/errors.h"
#include "server/arbiter/rules_internal.h"
#include "server/base/uuid.h"
#include "server/store/shard_key.h"

namespace claimd::arbiter {

namespace internal {

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  constexpr int64_t kNanosPerSecond = 1'000'000'000;
  const int64_t nanos = absl::ToUnixNanos(time);
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(nanos / kNanosPerSecond);
  timestamp.set_nanos(static_cast<int32_t>(nanos % kNanosPerSecond));
  return timestamp;
}

Change Successor(const Situation& at, storage::v1::MutationKind kind) {
  Change change;
  change.next = *at.head;
  v1::ShardManifest* next = change.next.mutable_manifest();
  next->set_version(next->version() + 1);
  *next->mutable_update_time() = ToTimestamp(at.now);
  change.next.clear_request_ids();
  change.next.add_request_ids(at.request_id);
  change.applied.set_kind(kind);
  change.applied.set_version(next->version());
  change.applied.set_writer_epoch(next->writer_epoch());
  return change;
}

void EndClaim(const Situation& at, v1::ClaimEndReason reason, Change* change) {
  v1::ShardManifest* next = change->next.mutable_manifest();
  if (!next->has_claim()) return;
  v1::ClaimRecord ended;
  ended.mutable_claim()->Swap(next->mutable_claim());
  next->clear_claim();
  *ended.mutable_end_time() = ToTimestamp(at.now);
  ended.set_end_reason(reason);
  change->next.set_ended_claims(change->next.ended_claims() + 1);
  change->applied.set_ended_claim_sequence(change->next.ended_claims());
  change->ended_claim = std::move(ended);
}

std::string CanonicalId(const std::string& id) {
  const absl::StatusOr<base::Uuid> uuid = base::ParseUuid(id);
  return uuid.ok() ? base::FormatUuid(*uuid) : id;
}

}  // namespace internal

namespace {

using internal::EndClaim;
using internal::kMaxNumber;
using internal::SameEntries;
using internal::Successor;
using internal::ToTimestamp;

// How many requests that changed nothing are remembered at one version. Beyond it the oldest is
// forgotten, so that a caller who seals in a loop does not make the head grow.
constexpr int kNoChangeIdsMax = 16;

bool IsDropped(const ShardRecord& head) {
  return head.manifest().status() == v1::SHARD_STATUS_DROPPED;
}

// Spec id, then fingerprint where both sides have one (DESIGN §1).
absl::Status CheckSpec(const store::ShardKey& key, const v1::ShardManifest& stored,
                       uint32_t shard_spec_id, const std::string& fingerprint) {
  if (shard_spec_id != stored.shard_spec_id()) {
    return ShardSpecMismatchError(key, shard_spec_id, stored.shard_spec_id());
  }
  const std::string& stored_fingerprint = stored.shard_spec_fingerprint();
  if (!fingerprint.empty() && !stored_fingerprint.empty() && fingerprint != stored_fingerprint) {
    return FingerprintMismatchError(key, shard_spec_id, fingerprint, stored_fingerprint);
  }
  return absl::OkStatus();
}

// A shard's first head, or its first after a drop: the identity is the request's, version and epoch
// go on from the tombstone. REQUIRES: the tombstone's version is below 2^64-1.
template <typename Request>
Change NewLife(const Situation& at, const Request& request, storage::v1::MutationKind kind) {
  Change change;
  v1::ShardManifest* manifest = change.next.mutable_manifest();
  manifest->set_table(at.key.table);
  manifest->set_shard_id(base::FormatUuid(at.key.shard_id));
  manifest->set_version(1);
  manifest->set_shard_spec_id(request.shard_spec_id());
  *manifest->mutable_shard_field_values() = request.shard_field_values();
  manifest->set_shard_spec_fingerprint(request.shard_spec_fingerprint());
  manifest->set_current_generation(1);
  manifest->set_status(v1::SHARD_STATUS_ACTIVE);
  *manifest->mutable_create_time() = ToTimestamp(at.now);
  *manifest->mutable_update_time() = ToTimestamp(at.now);
  change.next.set_first_version(1);
  if (at.head != nullptr) {
    manifest->set_version(at.head->manifest().version() + 1);
    manifest->set_writer_epoch(at.head->manifest().writer_epoch());
    change.next.set_ended_claims(at.head->ended_claims());
    // The tombstone stays in the history, so that the drop can be repeated and answered.
    change.next.set_first_version(at.head->manifest().version());
  }
  change.next.add_request_ids(at.request_id);
  change.applied.set_kind(kind);
  change.applied.set_version(manifest->version());
  change.applied.set_writer_epoch(manifest->writer_epoch());
  change.applied.set_created(true);
  return change;
}

// DESIGN §4 step 5, for a live shard.
absl::Status CheckClaimable(const Situation& at, const v1::ClaimEpochRequest& request,
                            std::optional<uint64_t> aimed_epoch) {
  const v1::ShardManifest& stored = at.head->manifest();
  if (stored.status() == v1::SHARD_STATUS_SEALED) return ShardSealedError(at.key);
  if (absl::Status spec =
          CheckSpec(at.key, stored, request.shard_spec_id(), request.shard_spec_fingerprint());
      !spec.ok()) {
    return spec;
  }
  if (!request.shard_field_values().empty() &&
      !SameEntries(request.shard_field_values(), stored.shard_field_values())) {
    return IdentityConflictError(at.key, "shard_field_values");
  }
  if (aimed_epoch.has_value() && stored.writer_epoch() >= *aimed_epoch) {
    return ClaimLostRaceError(at.key, stored);
  }
  return absl::OkStatus();
}

// The epoch that a claim gets: one above the stored one and the floor (DESIGN §4 step 6).
absl::StatusOr<uint64_t> NextEpoch(const Situation& at, uint64_t stored, uint64_t floor,
                                   const Limits& limits) {
  if (floor > stored && floor - stored > limits.epoch_jump_max) {
    return EpochFloorTooHighError(at.key, floor, stored, limits.epoch_jump_max);
  }
  const uint64_t base = std::max(stored, floor);
  if (base == kMaxNumber) return EpochExhaustedError(at.key);
  return base + 1;
}

v1::Claim NewClaim(const Situation& at, const v1::ClaimEpochRequest& request, uint64_t epoch) {
  v1::Claim claim;
  claim.set_writer_epoch(epoch);
  claim.set_claimant(request.claimant());
  *claim.mutable_labels() = request.labels();
  *claim.mutable_claim_time() = ToTimestamp(at.now);
  claim.set_request_id(at.request_id);
  return claim;
}

// Keeps the head as it is, and remembers that this request was answered by it.
Change NoChange(const Situation& at, storage::v1::MutationKind kind) {
  Change change;
  change.next = *at.head;
  if (change.next.request_ids_size() > kNoChangeIdsMax) {
    // The first id made the version; the ones behind it changed nothing.
    change.next.mutable_request_ids()->DeleteSubrange(1, 1);
  }
  change.next.add_request_ids(at.request_id);
  change.applied.set_kind(kind);
  change.applied.set_version(change.next.manifest().version());
  change.applied.set_writer_epoch(change.next.manifest().writer_epoch());
  return change;
}

absl::StatusOr<Change> SetStatus(const Situation& at, v1::ShardStatus status,
                                 storage::v1::MutationKind kind) {
  if (absl::Status live = CheckLive(at.key, at.head); !live.ok()) return live;
  if (at.head->manifest().status() == status) return NoChange(at, kind);
  if (at.head->manifest().version() == kMaxNumber) return VersionExhaustedError(at.key);
  Change change = Successor(at, kind);
  change.next.mutable_manifest()->set_status(status);
  return change;
}

}  // namespace

bool IsLive(const ShardRecord* head) { return head != nullptr && !IsDropped(*head); }

absl::Status CheckLive(const store::ShardKey& key, const ShardRecord* head) {
  if (head == nullptr) return ShardNotFoundError(key);
  if (IsDropped(*head)) return ShardDroppedError(key, head->manifest());
  return absl::OkStatus();
}

absl::Status CheckEpoch(const store::ShardKey& key, const v1::ShardManifest& stored,
                        uint64_t writer_epoch) {
  if (writer_epoch < stored.writer_epoch()) return WriterFencedError(key, writer_epoch, stored);
  if (writer_epoch > stored.writer_epoch()) {
    return EpochFromFutureError(key, writer_epoch, stored.writer_epoch());
  }
  return absl::OkStatus();
}

absl::StatusOr<Change> ApplyClaim(const Situation& at, const v1::ClaimEpochRequest& request,
                                  std::optional<uint64_t> aimed_epoch, const Limits& limits) {
  const bool live = IsLive(at.head);
  const uint64_t stored_epoch = at.head == nullptr ? 0 : at.head->manifest().writer_epoch();
  const uint64_t stored_version = at.head == nullptr ? 0 : at.head->manifest().version();
  if (live) {
    if (absl::Status claimable = CheckClaimable(at, request, aimed_epoch); !claimable.ok()) {
      return claimable;
    }
  } else if (aimed_epoch.has_value() && stored_epoch >= *aimed_epoch) {
    return ClaimLostRaceError(at.key, at.head->manifest());
  }
  if (request.has_expected_epoch() && request.expected_epoch() != stored_epoch) {
    return EpochMismatchError(at.key, request.expected_epoch(), stored_epoch, stored_version);
  }
  if (live && request.mode() == v1::CLAIM_MODE_IF_FREE && at.head->manifest().has_claim()) {
    return ShardHeldError(at.key, at.head->manifest().claim());
  }
  const absl::StatusOr<uint64_t> epoch = NextEpoch(at, stored_epoch, request.epoch_floor(), limits);
  if (!epoch.ok()) return epoch.status();
  if (stored_version == kMaxNumber) return VersionExhaustedError(at.key);

  Change change = live ? Successor(at, storage::v1::MUTATION_KIND_CLAIM)
                       : NewLife(at, request, storage::v1::MUTATION_KIND_CLAIM);
  EndClaim(at, v1::CLAIM_END_REASON_SUPERSEDED, &change);
  if (change.ended_claim.has_value()) change.ended_claim->set_next_writer_epoch(*epoch);
  change.next.mutable_manifest()->set_writer_epoch(*epoch);
  *change.next.mutable_manifest()->mutable_claim() = NewClaim(at, request, *epoch);
  change.applied.set_writer_epoch(*epoch);
  return change;
}

absl::StatusOr<std::optional<Change>> ApplyInitialize(const Situation& at,
                                                      const v1::InitializeShardRequest& request) {
  if (IsLive(at.head)) {
    const v1::ShardManifest& stored = at.head->manifest();
    if (absl::Status spec =
            CheckSpec(at.key, stored, request.shard_spec_id(), request.shard_spec_fingerprint());
        !spec.ok()) {
      return spec;
    }
    if (!SameEntries(request.shard_field_values(), stored.shard_field_values())) {
      return IdentityConflictError(at.key, "shard_field_values");
    }
    return std::nullopt;
  }
  if (at.head == nullptr) {
    return NewLife(at, request, storage::v1::MUTATION_KIND_INITIALIZE);
  }
  const v1::ShardManifest& tombstone = at.head->manifest();
  if (tombstone.version() == kMaxNumber) return VersionExhaustedError(at.key);
  Change change = NewLife(at, request, storage::v1::MUTATION_KIND_INITIALIZE);
  if (tombstone.writer_epoch() > 0) {
    // Nobody claims here, so the epoch itself must fence whoever held the shard before the drop.
    if (tombstone.writer_epoch() == kMaxNumber) return EpochExhaustedError(at.key);
    change.next.mutable_manifest()->set_writer_epoch(tombstone.writer_epoch() + 1);
    change.applied.set_writer_epoch(tombstone.writer_epoch() + 1);
  }
  return change;
}

absl::StatusOr<Change> ApplyRelease(const Situation& at, const v1::ReleaseEpochRequest& request) {
  if (absl::Status live = CheckLive(at.key, at.head); !live.ok()) return live;
  if (absl::Status epoch = CheckEpoch(at.key, at.head->manifest(), request.writer_epoch());
      !epoch.ok()) {
    return epoch;
  }
  if (!at.head->manifest().has_claim()) return NoChange(at, storage::v1::MUTATION_KIND_RELEASE);
  if (at.head->manifest().version() == kMaxNumber) return VersionExhaustedError(at.key);
  Change change = Successor(at, storage::v1::MUTATION_KIND_RELEASE);
  EndClaim(at, v1::CLAIM_END_REASON_RELEASED, &change);
  return change;
}

absl::StatusOr<Change> ApplySeal(const Situation& at) {
  return SetStatus(at, v1::SHARD_STATUS_SEALED, storage::v1::MUTATION_KIND_SEAL);
}

absl::StatusOr<Change> ApplyUnseal(const Situation& at) {
  return SetStatus(at, v1::SHARD_STATUS_ACTIVE, storage::v1::MUTATION_KIND_UNSEAL);
}

absl::StatusOr<Change> ApplyDrop(const Situation& at, const v1::DropShardRequest& request) {
  if (absl::Status live = CheckLive(at.key, at.head); !live.ok()) return live;
  const v1::ShardManifest& stored = at.head->manifest();
  if (stored.status() != v1::SHARD_STATUS_SEALED) {
    return ShardNotSealedError(at.key, stored.status());
  }
  if (request.has_expected_epoch() && request.expected_epoch() != stored.writer_epoch()) {
    return EpochMismatchError(at.key, request.expected_epoch(), stored.writer_epoch(),
                              stored.version());
  }
  if (stored.version() == kMaxNumber) return VersionExhaustedError(at.key);
  Change change = Successor(at, storage::v1::MUTATION_KIND_DROP);
  EndClaim(at, v1::CLAIM_END_REASON_DROPPED, &change);
  v1::ShardManifest tombstone;
  tombstone.set_table(stored.table());
  tombstone.set_shard_id(stored.shard_id());
  tombstone.set_version(change.next.manifest().version());
  tombstone.set_writer_epoch(stored.writer_epoch());
  tombstone.set_status(v1::SHARD_STATUS_DROPPED);
  *tombstone.mutable_create_time() = stored.create_time();
  *tombstone.mutable_update_time() = change.next.manifest().update_time();
  change.next.mutable_manifest()->Swap(&tombstone);
  change.next.set_first_version(change.next.manifest().version());
  return change;
}

absl::Status CheckClaimReplay(const Situation& at, const v1::ClaimEpochRequest& request,
                              const AppliedRequest& applied) {
  if (absl::Status same = CheckReplay(at, storage::v1::MUTATION_KIND_CLAIM, applied); !same.ok()) {
    return same;
  }
  const v1::ShardManifest& stored = at.head->manifest();
  if (IsDropped(*at.head) || applied.writer_epoch() != stored.writer_epoch()) {
    return ClaimSupersededError(at.key, applied.writer_epoch(), stored);
  }
  if (request.shard_spec_id() != stored.shard_spec_id()) {
    return ShardSpecMismatchError(at.key, request.shard_spec_id(), stored.shard_spec_id());
  }
  // Two writers that share an id by mistake must not share an epoch.
  if (stored.has_claim() && (stored.claim().claimant() != request.claimant() ||
                             !SameEntries(stored.claim().labels(), request.labels()))) {
    return RequestIdReusedError(at.key, at.request_id);
  }
  return absl::OkStatus();
}

absl::Status CheckCommitReplay(const Situation& at, const v1::CommitManifestRequest& request,
                               const AppliedRequest& applied) {
  if (applied.version() != request.manifest().version() ||
      applied.writer_epoch() != request.writer_epoch()) {
    return RequestIdReusedError(at.key, at.request_id);
  }
  return CheckReplay(at, storage::v1::MUTATION_KIND_COMMIT, applied);
}

absl::Status CheckReleaseReplay(const Situation& at, const v1::ReleaseEpochRequest& request,
                                const AppliedRequest& applied) {
  if (applied.writer_epoch() != request.writer_epoch()) {
    return RequestIdReusedError(at.key, at.request_id);
  }
  return CheckReplay(at, storage::v1::MUTATION_KIND_RELEASE, applied);
}

absl::Status CheckReplay(const Situation& at, storage::v1::MutationKind kind,
                         const AppliedRequest& applied) {
  if (applied.kind() != kind) return RequestIdReusedError(at.key, at.request_id);
  return absl::OkStatus();
}

}  // namespace claimd::arbiter
