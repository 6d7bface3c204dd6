// The rules about whole manifests that come from outside: CommitManifest (DESIGN §5) and imports.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "google/protobuf/util/message_differencer.h"
#include "server/arbiter/errors.h"
#include "server/arbiter/rules.h"
#include "server/arbiter/rules_internal.h"
#include "server/base/text.h"
#include "server/base/uuid.h"
#include "server/store/shard_key.h"

namespace claimd::arbiter {
namespace {

using google::protobuf::util::MessageDifferencer;
using internal::CanonicalId;
using internal::kMaxNumber;
using internal::SameEntries;
using internal::Successor;
using internal::ToTimestamp;

using Violations = std::vector<FieldViolation>;

// Generations unique, at least 1 and below the current one (DESIGN §5).
void CheckSsTables(const v1::ShardManifest& manifest, Violations* bad) {
  std::unordered_set<uint64_t> seen;
  for (int i = 0; i < manifest.sstables_size(); ++i) {
    const uint64_t generation = manifest.sstables(i).generation();
    const std::string field = absl::StrCat("manifest.sstables[", i, "].generation");
    if (generation == 0) {
      bad->push_back({field, "must be at least 1"});
    } else if (generation >= manifest.current_generation()) {
      bad->push_back({field, "must be below current_generation"});
    } else if (!seen.insert(generation).second) {
      bad->push_back({field, "occurs twice"});
    }
  }
}

void CheckSize(const v1::ShardManifest& manifest, const Limits& limits, Violations* bad) {
  const uint64_t size = manifest.ByteSizeLong();
  if (size > limits.manifest_bytes_max) {
    bad->push_back({"manifest", absl::StrCat("has ", size, " bytes, more than the ",
                                             limits.manifest_bytes_max, " allowed")});
  }
}

void CheckKey(const store::ShardKey& key, const v1::ShardManifest& manifest, Violations* bad) {
  if (!manifest.table().empty() && manifest.table() != key.table) {
    bad->push_back({"manifest.table", "must be the table of the request"});
  }
  if (!manifest.shard_id().empty() &&
      CanonicalId(manifest.shard_id()) != base::FormatUuid(key.shard_id)) {
    bad->push_back({"manifest.shard_id", "must be the shard id of the request"});
  }
}

// What a commit may not change.
void CheckUnchanged(const v1::ShardManifest& stored, const v1::ShardManifest& next,
                    Violations* bad) {
  if (next.shard_spec_id() != stored.shard_spec_id()) {
    bad->push_back({"manifest.shard_spec_id", absl::StrCat("must stay ", stored.shard_spec_id())});
  }
  if (!SameEntries(next.shard_field_values(), stored.shard_field_values())) {
    bad->push_back({"manifest.shard_field_values", "must stay as stored"});
  }
  if (next.shard_spec_fingerprint() != stored.shard_spec_fingerprint()) {
    bad->push_back({"manifest.shard_spec_fingerprint", "must stay as stored"});
  }
  if (next.writer_epoch() != stored.writer_epoch()) {
    bad->push_back({"manifest.writer_epoch", absl::StrCat("must stay ", stored.writer_epoch())});
  }
  if (next.status() != stored.status()) {
    bad->push_back(
        {"manifest.status", absl::StrCat("must stay ", v1::ShardStatus_Name(stored.status()))});
  }
  if (next.has_claim() &&
      (!stored.has_claim() || !MessageDifferencer::Equals(next.claim(), stored.claim()))) {
    bad->push_back({"manifest.claim", "must stay as stored, or be left out"});
  }
}

// Progress goes forward only, and what the log may forget is in a generation that is listed.
void CheckProgress(const v1::ShardManifest& stored, const v1::ShardManifest& next,
                   Violations* bad) {
  const uint64_t from = stored.current_generation();
  const uint64_t to = next.current_generation();
  if (to < from) {
    bad->push_back({"manifest.current_generation", absl::StrCat("must not go back from ", from)});
  }
  if (to > from) {
    uint64_t listed = 0;
    for (const v1::SsTable& sstable : next.sstables()) {
      if (sstable.generation() >= from && sstable.generation() < to) ++listed;
    }
    if (listed < to - from) {
      bad->push_back({"manifest.current_generation",
                      absl::StrCat("skips a generation: list each from ", from, " to ", to - 1)});
    }
  }
  const uint64_t replay_from = stored.replay_after_wal_entry_position();
  const uint64_t replay_to = next.replay_after_wal_entry_position();
  if (replay_to < replay_from) {
    bad->push_back({"manifest.replay_after_wal_entry_position",
                    absl::StrCat("must not go back from ", replay_from)});
  }
  if (replay_to > replay_from && to <= from) {
    bad->push_back({"manifest.replay_after_wal_entry_position",
                    "moves on without a new generation that holds the entries"});
  }
}

void CheckImportedIdentity(const v1::ShardManifest& manifest, Violations* bad) {
  constexpr int kFieldValuesMax = 64;
  constexpr size_t kFieldKeyMax = 256;
  constexpr size_t kFieldValueMax = 4096;
  constexpr size_t kFingerprintMax = 64;
  bool fits = manifest.shard_field_values_size() <= kFieldValuesMax;
  for (const auto& [field_id, value] : manifest.shard_field_values()) {
    fits = fits && field_id.size() <= kFieldKeyMax && value.size() <= kFieldValueMax;
  }
  if (!fits) bad->push_back({"manifest.shard_field_values", "has too many or too long entries"});
  if (manifest.shard_spec_fingerprint().size() > kFingerprintMax) {
    bad->push_back({"manifest.shard_spec_fingerprint", "must be at most 64 bytes"});
  }
}

// An imported claim is bound as one that is asked for: it is repeated in refusals, and repeated
// claims are looked up by its id.
void CheckImportedClaim(const v1::ShardManifest& manifest, Violations* bad) {
  constexpr size_t kClaimantMax = 256;
  constexpr size_t kRequestIdMax = 128;
  constexpr int kLabelsMax = 64;
  constexpr size_t kLabelKeyMax = 128;
  constexpr size_t kLabelValueMax = 1024;
  const v1::Claim& claim = manifest.claim();
  if (claim.writer_epoch() != manifest.writer_epoch() || manifest.writer_epoch() == 0) {
    bad->push_back({"manifest.claim.writer_epoch", "must be manifest.writer_epoch"});
  }
  if (claim.claimant().size() > kClaimantMax || !base::IsPlainText(claim.claimant())) {
    bad->push_back({"manifest.claim.claimant", "must be at most 256 bytes of plain text"});
  }
  if (claim.request_id().size() > kRequestIdMax || !base::IsPlainText(claim.request_id())) {
    bad->push_back({"manifest.claim.request_id", "must be at most 128 bytes of plain text"});
  }
  bool fits = claim.labels_size() <= kLabelsMax;
  for (const auto& [key, value] : claim.labels()) {
    fits = fits && key.size() <= kLabelKeyMax && value.size() <= kLabelValueMax &&
           base::IsPlainText(key) && base::IsPlainText(value);
  }
  if (!fits) bad->push_back({"manifest.claim.labels", "has too many or too long entries"});
}

Violations CheckImported(const v1::ShardManifest& manifest, const Limits& limits) {
  Violations bad;
  if (manifest.version() == 0 || manifest.version() == kMaxNumber) {
    bad.push_back({"manifest.version", "must be at least 1 and below 2^64-1"});
  }
  if (manifest.writer_epoch() == kMaxNumber) {
    bad.push_back({"manifest.writer_epoch", "must be below 2^64-1"});
  }
  if (manifest.current_generation() == 0) {
    bad.push_back({"manifest.current_generation", "must be at least 1"});
  }
  if (manifest.status() != v1::SHARD_STATUS_ACTIVE &&
      manifest.status() != v1::SHARD_STATUS_SEALED) {
    bad.push_back({"manifest.status", absl::StrCat("must be ACTIVE or SEALED, not ",
                                                   static_cast<int>(manifest.status()))});
  }
  if (manifest.has_claim()) CheckImportedClaim(manifest, &bad);
  CheckImportedIdentity(manifest, &bad);
  CheckSsTables(manifest, &bad);
  CheckSize(manifest, limits, &bad);
  return bad;
}

// The fields that a commit may change.
void CopyCommitted(const v1::ShardManifest& given, v1::ShardManifest* next) {
  next->set_replay_after_wal_entry_position(given.replay_after_wal_entry_position());
  next->set_wal_entry_position_last_seen(given.wal_entry_position_last_seen());
  next->set_current_generation(given.current_generation());
  *next->mutable_sstables() = given.sstables();
  *next->mutable_annotations() = given.annotations();
}

// The manifest in the form that it is stored in.
v1::ShardManifest Normalized(const Situation& at, const v1::ShardManifest& manifest) {
  v1::ShardManifest next = manifest;
  next.set_table(at.key.table);
  next.set_shard_id(base::FormatUuid(at.key.shard_id));
  if (!next.has_create_time()) *next.mutable_create_time() = ToTimestamp(at.now);
  if (!next.has_update_time()) *next.mutable_update_time() = ToTimestamp(at.now);
  return next;
}

// Whether 'stored' is what importing 'given' once made of it. Times that were not given were set
// then, so they do not count.
bool IsImportOf(v1::ShardManifest stored, const v1::ShardManifest& given,
                const v1::ShardManifest& normalized) {
  if (!given.has_create_time()) *stored.mutable_create_time() = normalized.create_time();
  if (!given.has_update_time()) *stored.mutable_update_time() = normalized.update_time();
  return MessageDifferencer::Equals(stored, normalized);
}

}  // namespace

absl::StatusOr<Change> ApplyCommit(const Situation& at, const v1::CommitManifestRequest& request,
                                   const Limits& limits) {
  if (absl::Status live = CheckLive(at.key, at.head); !live.ok()) return live;
  const v1::ShardManifest& stored = at.head->manifest();
  if (absl::Status epoch = CheckEpoch(at.key, stored, request.writer_epoch()); !epoch.ok()) {
    return epoch;
  }
  if (stored.version() == kMaxNumber) return VersionExhaustedError(at.key);
  const v1::ShardManifest& given = request.manifest();
  if (given.version() != stored.version() + 1) {
    return VersionConflictError(at.key, given.version(), stored);
  }
  Violations bad;
  CheckKey(at.key, given, &bad);
  CheckUnchanged(stored, given, &bad);
  CheckProgress(stored, given, &bad);
  CheckSsTables(given, &bad);

  Change change = Successor(at, storage::v1::MUTATION_KIND_COMMIT);
  v1::ShardManifest* next = change.next.mutable_manifest();
  CopyCommitted(given, next);
  CheckSize(*next, limits, &bad);
  if (!bad.empty()) return InvalidManifestError(at.key, bad);
  return change;
}

absl::Status CheckCommitContent(const Situation& at, const v1::CommitManifestRequest& request,
                                const v1::ShardManifest& committed) {
  v1::ShardManifest repeated = committed;
  CopyCommitted(request.manifest(), &repeated);
  if (!MessageDifferencer::Equals(repeated, committed)) {
    return RequestIdReusedError(at.key, at.request_id);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Change>> ApplyImport(const Situation& at,
                                                  const v1::ShardManifest& manifest,
                                                  const Limits& limits) {
  if (const Violations bad = CheckImported(manifest, limits); !bad.empty()) {
    return InvalidManifestError(at.key, bad);
  }
  v1::ShardManifest normalized = Normalized(at, manifest);
  if (at.head != nullptr) {
    if (IsImportOf(at.head->manifest(), manifest, normalized)) return std::nullopt;
    return ShardExistsError(at.key, at.head->manifest());
  }
  Change change;
  change.next.mutable_manifest()->Swap(&normalized);
  change.next.set_first_version(change.next.manifest().version());
  change.next.add_request_ids(at.request_id);
  change.applied.set_kind(storage::v1::MUTATION_KIND_IMPORT);
  change.applied.set_version(change.next.manifest().version());
  change.applied.set_writer_epoch(change.next.manifest().writer_epoch());
  change.applied.set_created(true);
  return change;
}

}  // namespace claimd::arbiter
