#ifndef CLAIMD_SERVER_ARBITER_RULES_H_
#define CLAIMD_SERVER_ARBITER_RULES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "server/store/shard_key.h"

// The rules of DESIGN §4 and §5 as pure functions: (current head, request) → next head or refusal.
// No I/O, no clock, no threads: what time it is and what a request is called come in as values.
//
// Requests must be valid (rpc/validation.h). Refusals are those of errors.h.
namespace claimd::arbiter {

using storage::v1::AppliedRequest;
using storage::v1::ShardRecord;

// What a rule decides on.
struct Situation {
  store::ShardKey key;
  // The stored head, or null if the shard was never made. Not owned.
  const ShardRecord* head = nullptr;
  // Wall-clock time for the record.
  absl::Time now = absl::InfinitePast();
  // Id of the request; never empty.
  std::string request_id;
};

// A change that a rule allows: everything that one swap writes.
struct Change {
  ShardRecord next;
  AppliedRequest applied;
  std::optional<v1::ClaimRecord> ended_claim;
};

// Limits on what is granted; see ArbiterOptions.
struct Limits {
  uint64_t epoch_jump_max = 0;
  uint64_t manifest_bytes_max = 0;
};

// True if the shard can be read and written: made, and not dropped.
bool IsLive(const ShardRecord* head);
// OK if the shard is live, else SHARD_NOT_FOUND.
absl::Status CheckLive(const store::ShardKey& key, const ShardRecord* head);
// OK if 'writer_epoch' is the stored epoch, else WRITER_FENCED or EPOCH_FROM_FUTURE (DESIGN §2.6).
absl::Status CheckEpoch(const store::ShardKey& key, const v1::ShardManifest& stored,
                        uint64_t writer_epoch);

// ClaimEpoch, DESIGN §4 steps 5 to 7. 'aimed_epoch' is the epoch that an earlier try of this claim
// aimed at, if there was one: somebody who reached it meanwhile won the race (CLAIM_LOST_RACE),
// unless the shard now refuses for good (sealed, another spec), which says more.
absl::StatusOr<Change> ApplyClaim(const Situation& at, const v1::ClaimEpochRequest& request,
                                  std::optional<uint64_t> aimed_epoch, const Limits& limits);

// InitializeShard. Empty when the shard is there with the same identity and nothing is to be done.
absl::StatusOr<std::optional<Change>> ApplyInitialize(const Situation& at,
                                                      const v1::InitializeShardRequest& request);

// CommitManifest, DESIGN §5.
absl::StatusOr<Change> ApplyCommit(const Situation& at, const v1::CommitManifestRequest& request,
                                   const Limits& limits);

absl::StatusOr<Change> ApplyRelease(const Situation& at, const v1::ReleaseEpochRequest& request);

// Sealing a sealed shard and unsealing an active one keep the version and only remember the
// request.
absl::StatusOr<Change> ApplySeal(const Situation& at);
absl::StatusOr<Change> ApplyUnseal(const Situation& at);

absl::StatusOr<Change> ApplyDrop(const Situation& at, const v1::DropShardRequest& request);

// ImportManifests. Empty when exactly this manifest is stored already.
absl::StatusOr<std::optional<Change>> ApplyImport(const Situation& at,
                                                  const v1::ShardManifest& manifest,
                                                  const Limits& limits);

// Whether a claim whose request id is remembered may be answered as the first time: OK,
// CLAIM_SUPERSEDED when its epoch is over, SHARD_SPEC_MISMATCH or REQUEST_ID_REUSED when it is not
// the same claim. REQUIRES: at.head is not null.
absl::Status CheckClaimReplay(const Situation& at, const v1::ClaimEpochRequest& request,
                              const AppliedRequest& applied);
// The same for every other mutation: OK, or REQUEST_ID_REUSED when the id belongs to another call.
absl::Status CheckCommitReplay(const Situation& at, const v1::CommitManifestRequest& request,
                               const AppliedRequest& applied);
// OK if 'committed' is what this commit made, else REQUEST_ID_REUSED.
absl::Status CheckCommitContent(const Situation& at, const v1::CommitManifestRequest& request,
                                const v1::ShardManifest& committed);
absl::Status CheckReleaseReplay(const Situation& at, const v1::ReleaseEpochRequest& request,
                                const AppliedRequest& applied);
absl::Status CheckReplay(const Situation& at, storage::v1::MutationKind kind,
                         const AppliedRequest& applied);

}  // namespace claimd::arbiter

#endif  // CLAIMD_SERVER_ARBITER_RULES_H_
