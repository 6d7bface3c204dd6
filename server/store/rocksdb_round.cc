#include "server/store/rocksdb_round.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/store/manifest_store.h"
#include "server/store/retention.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_keys.h"
#include "server/store/rocksdb_reader.h"
#include "server/store/shard_key.h"

namespace claimd::store {
namespace {

using rocksdb_keys::EncodeNumbered;
using rocksdb_keys::EncodeRequest;
using storage::v1::AppliedRequest;
using storage::v1::ShardRecord;

}  // namespace

PreparedSwap Prepare(SwapRequest request) {
  PreparedSwap swap;
  swap.request = std::move(request);
  swap.shard = rocksdb_keys::EncodeShard(swap.request.key);
  swap.head = rocksdb_keys::Wrap(*swap.request.next);
  swap.applied = rocksdb_keys::Wrap(swap.request.applied);
  if (swap.request.ended_claim.has_value()) {
    swap.ended_claim = rocksdb_keys::Wrap(*swap.request.ended_claim);
  }
  return swap;
}

RocksDbRound::Verdict RocksDbRound::Add(PreparedSwap swap) {
  absl::StatusOr<Verdict> verdict = Decide(&swap);
  if (verdict.ok()) return *std::move(verdict);
  return {.outcome = SwapNotApplied{.status = AboutShard(swap.request.key, verdict.status())}};
}

absl::StatusOr<rocksdb::WriteBatch*> RocksDbRound::Finish() {
  std::string value;
  rocksdb_keys::AppendFixed64(position_.revision, &value);
  rocksdb_keys::AppendFixed64(position_.oldest_change, &value);
  Put(Family::kMeta, kMetaRevision, value);
  if (!batch_status_.ok()) return batch_status_;
  return &batch_;
}

absl::StatusOr<RocksDbRound::Verdict> RocksDbRound::Decide(PreparedSwap* swap) {
  const SwapRequest& request = swap->request;
  bool conflict = false;
  bool depends_on_batch = false;
  for (const Guard& guard : request.guards) {
    const absl::StatusOr<Shard*> guarded = Find(guard.key, rocksdb_keys::EncodeShard(guard.key));
    if (!guarded.ok()) return guarded.status();
    if ((*guarded)->version() == guard.expected_version) continue;
    conflict = true;
    depends_on_batch = depends_on_batch || (*guarded)->changed;
  }
  // After the guards: finding a shard invalidates pointers to others.
  const absl::StatusOr<Shard*> found = Find(request.key, swap->shard);
  if (!found.ok()) return found.status();
  Shard& shard = **found;
  if (conflict || shard.version() != request.expected_version) {
    auto applied = FindRequest(swap->shard, shard, request.request_id);
    if (!applied.ok()) return applied.status();
    return Verdict{
        .outcome = SwapConflict{.current = {.record = shard.head, .applied = *std::move(applied)}},
        .depends_on_batch = depends_on_batch || shard.changed};
  }
  const absl::StatusOr<Removals> removals = FindRemovals(*swap, shard);
  if (!removals.ok()) return removals.status();
  Stage(swap, *removals, &shard);
  return Verdict{.outcome = Staged{.revision = position_.revision}, .depends_on_batch = true};
}

absl::StatusOr<RocksDbRound::Removals> RocksDbRound::FindRemovals(const PreparedSwap& swap,
                                                                  const Shard& shard) const {
  const SwapRequest& request = swap.request;
  Removals removals;
  if (IsRecordOnly(request)) {
    removals.request_ids = IdsForgottenBetween(*shard.head, *request.next);
  } else if (shard.head != nullptr) {
    if (absl::Status added = AddVersions(swap, shard, &removals); !added.ok()) return added;
  }
  if (request.ended_claim.has_value()) {
    if (absl::Status added = AddClaims(swap, shard, &removals); !added.ok()) return added;
  }
  return removals;
}

absl::Status RocksDbRound::AddVersions(const PreparedSwap& swap, const Shard& shard,
                                       Removals* removals) const {
  const ShardRecord& next = *swap.request.next;
  const uint64_t versions_ever = limits_.retention_ever.history_versions;
  const bool keeps = KeepsReplaced(*shard.head, next);
  if (!keeps) removals->request_ids = IdsOfVersion(*shard.head);
  const DescendingRange out =
      keeps ? VersionsFallingOut(next, limits_.retention.history_versions, versions_ever)
            : VersionsDropped(*shard.head, versions_ever);
  for (uint64_t version = out.newest; version >= out.oldest; --version) {
    // The version that this very swap moves into the history.
    const absl::StatusOr<ShardRecordPtr> record =
        version == shard.version() ? shard.head : FindVersion(swap, shard, version);
    if (!record.ok()) return record.status();
    if (*record == nullptr) break;
    removals->versions.push_back(version);
    std::vector<std::string> ids = IdsOfVersion(**record);
    std::move(ids.begin(), ids.end(), std::back_inserter(removals->request_ids));
  }
  return absl::OkStatus();
}

absl::Status RocksDbRound::AddClaims(const PreparedSwap& swap, const Shard& shard,
                                     Removals* removals) const {
  const DescendingRange out =
      ClaimsFallingOut(swap.request.next->ended_claims(), limits_.retention.claim_history,
                       limits_.retention_ever.claim_history);
  for (uint64_t sequence = out.newest; sequence >= out.oldest; --sequence) {
    const auto claim = FindClaim(swap, shard, sequence);
    if (!claim.ok()) return claim.status();
    if (!claim->has_value()) break;
    removals->claims.push_back(sequence);
    const std::string& request_id = (*claim)->claim().request_id();
    const auto applied = FindRequest(swap.shard, shard, request_id);
    if (!applied.ok()) return applied.status();
    if (applied->has_value() && IsRequestOfClaim(**applied, **claim)) {
      removals->request_ids.push_back(request_id);
    }
  }
  return absl::OkStatus();
}

void RocksDbRound::Stage(PreparedSwap* swap, const Removals& removals, Shard* shard) {
  const SwapRequest& request = swap->request;
  ++position_.revision;
  if (shard->head != nullptr && !IsRecordOnly(request) &&
      KeepsReplaced(*shard->head, *request.next)) {
    Put(Family::kHistory, EncodeNumbered(swap->shard, shard->version()), shard->head_value);
    shard->history.push_back(shard->head);
  }
  if (request.ended_claim.has_value()) {
    const uint64_t sequence = request.next->ended_claims();
    rocksdb_keys::StampRevision(position_.revision, &swap->ended_claim);
    Put(Family::kClaims, EncodeNumbered(swap->shard, sequence), swap->ended_claim);
    shard->claims.emplace_back(sequence, *request.ended_claim);
  }
  StageRemovals(*swap, removals, shard);
  rocksdb_keys::StampRevision(position_.revision, &swap->applied);
  Put(Family::kRequests, EncodeRequest(swap->shard, request.request_id), swap->applied);
  shard->requests.emplace_back(request.request_id, request.applied);
  rocksdb_keys::StampRevision(position_.revision, &swap->head);
  Put(Family::kHeads, swap->shard, swap->head);
  shard->head = request.next;
  shard->head_value = std::move(swap->head);
  shard->changed = true;
  Put(Family::kChanges, rocksdb_keys::EncodeRevision(position_.revision), swap->shard);
  if (position_.revision - position_.oldest_change >= limits_.change_log) {
    Delete(Family::kChanges, rocksdb_keys::EncodeRevision(position_.oldest_change));
    ++position_.oldest_change;
  }
}

void RocksDbRound::StageRemovals(const PreparedSwap& swap, const Removals& removals, Shard* shard) {
  for (const uint64_t version : removals.versions) {
    Delete(Family::kHistory, EncodeNumbered(swap.shard, version));
    shard->versions_from = std::max(shard->versions_from, version + 1);
  }
  for (const uint64_t sequence : removals.claims) {
    Delete(Family::kClaims, EncodeNumbered(swap.shard, sequence));
    shard->claims_from = std::max(shard->claims_from, sequence + 1);
  }
  for (const std::string& request_id : removals.request_ids) {
    Delete(Family::kRequests, EncodeRequest(swap.shard, request_id));
    shard->requests.emplace_back(request_id, std::nullopt);
  }
}

absl::StatusOr<RocksDbRound::Shard*> RocksDbRound::Find(const ShardKey& key,
                                                        const std::string& encoded) {
  const auto known = shards_.find(encoded);
  if (known != shards_.end()) return &known->second;
  absl::StatusOr<std::optional<std::string>> value = Read(Family::kHeads, encoded);
  if (!value.ok()) return value.status();
  Shard shard;
  if (value->has_value()) {
    shard.head_value = **std::move(value);
    absl::StatusOr<ShardRecordPtr> head = rocksdb_keys::DecodeRecord(key, shard.head_value);
    if (!head.ok()) return head.status();
    shard.head = *std::move(head);
  }
  return &shards_.emplace(encoded, std::move(shard)).first->second;
}

absl::StatusOr<ShardRecordPtr> RocksDbRound::FindVersion(const PreparedSwap& swap,
                                                         const Shard& shard,
                                                         uint64_t version) const {
  if (version < shard.versions_from) return ShardRecordPtr();
  for (const ShardRecordPtr& record : shard.history) {
    if (record->manifest().version() == version) return record;
  }
  const auto value = Read(Family::kHistory, EncodeNumbered(swap.shard, version));
  if (!value.ok()) return value.status();
  if (!value->has_value()) return ShardRecordPtr();
  return rocksdb_keys::DecodeRecordAt(swap.request.key, version, **value);
}

absl::StatusOr<std::optional<v1::ClaimRecord>> RocksDbRound::FindClaim(const PreparedSwap& swap,
                                                                       const Shard& shard,
                                                                       uint64_t sequence) const {
  if (sequence < shard.claims_from) return std::optional<v1::ClaimRecord>();
  for (const auto& [known, claim] : shard.claims) {
    if (known == sequence) return claim;
  }
  const auto value = Read(Family::kClaims, EncodeNumbered(swap.shard, sequence));
  if (!value.ok()) return value.status();
  if (!value->has_value()) return std::optional<v1::ClaimRecord>();
  return rocksdb_keys::DecodeClaim(**value);
}

absl::StatusOr<std::optional<AppliedRequest>> RocksDbRound::FindRequest(
    const std::string& encoded, const Shard& shard, absl::string_view request_id) const {
  const auto known =
      std::find_if(shard.requests.rbegin(), shard.requests.rend(),
                   [request_id](const auto& entry) { return entry.first == request_id; });
  if (known != shard.requests.rend()) return known->second;
  const auto value = Read(Family::kRequests, EncodeRequest(encoded, request_id));
  if (!value.ok()) return value.status();
  if (!value->has_value()) return std::optional<AppliedRequest>();
  return rocksdb_keys::DecodeApplied(**value);
}

absl::StatusOr<std::optional<std::string>> RocksDbRound::Read(Family family,
                                                              const std::string& key) const {
  std::string value;
  const rocksdb::Status read =
      database_->db()->Get(rocksdb::ReadOptions(), database_->family(family), key, &value);
  if (read.IsNotFound()) return std::optional<std::string>();
  if (!read.ok()) return ToStatus("reading the store", read);
  return std::optional(std::move(value));
}

void RocksDbRound::Put(Family family, const std::string& key, const std::string& value) {
  const rocksdb::Status put = batch_.Put(database_->family(family), key, value);
  if (!put.ok()) batch_status_.Update(ToStatus("building a write", put));
}

void RocksDbRound::Delete(Family family, const std::string& key) {
  const rocksdb::Status deleted = batch_.Delete(database_->family(family), key);
  if (!deleted.ok()) batch_status_.Update(ToStatus("building a write", deleted));
}

}  // namespace claimd::store
