#include "server/store/rocksdb_reader.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <rocksdb/db.h>
#include <rocksdb/iterator.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/status.h>

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/base/uuid.h"
#include "server/store/manifest_store.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_keys.h"
#include "server/store/shard_key.h"

namespace claimd::store {
namespace {

absl::string_view View(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

rocksdb::ReadOptions OptionsFor(ReadReach reach) {
  rocksdb::ReadOptions options;
  if (reach == ReadReach::kMemory) options.read_tier = rocksdb::kBlockCacheTier;
  return options;
}

// Two values of one moment, from two families.
struct Pair {
  std::vector<rocksdb::Status> statuses;
  std::vector<std::string> values;

  bool incomplete() const { return statuses[0].IsIncomplete() || statuses[1].IsIncomplete(); }
};

Pair ReadPair(const RocksDatabase& database, ReadReach reach, const std::string& head_key,
              Family second, const std::string& second_key) {
  Pair pair;
  // Of one moment even without a snapshot. The MultiGet with arrays would go to the disk whatever
  // the options say.
  pair.statuses = database.db()->MultiGet(
      OptionsFor(reach), {database.family(Family::kHeads), database.family(second)},
      {head_key, second_key}, &pair.values);
  return pair;
}

// A head, or null.
absl::StatusOr<ShardRecordPtr> DecodeHead(const ShardKey& key, const rocksdb::Status& status,
                                          const rocksdb::Slice& value) {
  if (status.IsNotFound()) return ShardRecordPtr();
  if (!status.ok()) return AboutShard(key, ToStatus("reading the head", status));
  absl::StatusOr<ShardRecordPtr> record = rocksdb_keys::DecodeRecord(key, View(value));
  if (!record.ok()) return AboutShard(key, record.status());
  return record;
}

absl::StatusOr<ShardState> DecodeState(const ShardKey& key, const Pair& pair) {
  absl::StatusOr<ShardRecordPtr> head = DecodeHead(key, pair.statuses[0], pair.values[0]);
  if (!head.ok()) return head.status();
  ShardState state{.record = *std::move(head), .applied = std::nullopt};
  if (pair.statuses[1].IsNotFound()) return state;
  if (!pair.statuses[1].ok()) {
    return AboutShard(key, ToStatus("reading a remembered request", pair.statuses[1]));
  }
  const absl::StatusOr<storage::v1::AppliedRequest> applied =
      rocksdb_keys::DecodeApplied(View(pair.values[1]));
  if (!applied.ok()) return AboutShard(key, applied.status());
  state.applied = *applied;
  return state;
}

absl::StatusOr<ShardRecordPtr> DecodeVersion(const ShardKey& key, uint64_t version,
                                             const Pair& pair) {
  absl::StatusOr<ShardRecordPtr> head = DecodeHead(key, pair.statuses[0], pair.values[0]);
  if (!head.ok()) return head.status();
  if (*head != nullptr && (*head)->manifest().version() == version) return head;
  if (pair.statuses[1].IsNotFound()) {
    return absl::NotFoundError(absl::StrCat("version ", version, " is not kept"));
  }
  if (!pair.statuses[1].ok()) {
    return AboutShard(key, ToStatus("reading a version", pair.statuses[1]));
  }
  absl::StatusOr<ShardRecordPtr> record =
      rocksdb_keys::DecodeRecordAt(key, version, View(pair.values[1]));
  if (!record.ok()) return AboutShard(key, record.status());
  return record;
}

// The head at a snapshot, or null.
absl::StatusOr<ShardRecordPtr> HeadAt(const RocksDatabase& database, const ShardKey& key,
                                      const std::string& shard,
                                      const rocksdb::ReadOptions& options) {
  rocksdb::PinnableSlice value;
  const rocksdb::Status read =
      database.db()->Get(options, database.family(Family::kHeads), shard, &value);
  return DecodeHead(key, read, value);
}

// Goes from entry 'newest' of one shard down to entry 'oldest', until 'visit' says to stop.
// 'visit' is called as absl::StatusOr<bool>(uint64_t number, absl::string_view value).
template <typename Visit>
absl::Status VisitDown(const RocksDatabase& database, Family family, const std::string& shard,
                       uint64_t newest, uint64_t oldest, rocksdb::ReadOptions options,
                       const Visit& visit) {
  // With a lower bound no time is spent on what was trimmed.
  const std::string lower = rocksdb_keys::EncodeNumbered(shard, oldest);
  const rocksdb::Slice lower_bound = lower;
  options.iterate_lower_bound = &lower_bound;
  const std::unique_ptr<rocksdb::Iterator> it(
      database.db()->NewIterator(options, database.family(family)));
  it->SeekForPrev(rocksdb_keys::EncodeNumbered(shard, newest));
  for (; it->Valid(); it->Prev()) {
    const absl::StatusOr<uint64_t> number = rocksdb_keys::DecodeNumber(View(it->key()));
    if (!number.ok()) return number.status();
    const absl::StatusOr<bool> more = visit(*number, View(it->value()));
    if (!more.ok()) return more.status();
    if (!*more) return absl::OkStatus();
  }
  return it->status().ok() ? absl::OkStatus() : ToStatus("reading history", it->status());
}

// The oldest of 'kept' numbers that end with 'newest'.
uint64_t OldestOf(uint64_t newest, uint64_t kept) { return newest > kept ? newest - kept + 1 : 1; }

}  // namespace

absl::Status AboutShard(const ShardKey& key, const absl::Status& status) {
  return {status.code(), absl::StrCat("shard ", base::FormatUuid(key.shard_id), " of table ",
                                      key.table, ": ", status.message())};
}

RocksDbReader::Answer<ShardState> RocksDbReader::Load(const ShardKey& key,
                                                      absl::string_view request_id,
                                                      ReadReach reach) const {
  const std::string shard = rocksdb_keys::EncodeShard(key);
  if (!request_id.empty()) {
    const Pair pair = ReadPair(*database_, reach, shard, Family::kRequests,
                               rocksdb_keys::EncodeRequest(shard, request_id));
    if (pair.incomplete()) return std::nullopt;
    return DecodeState(key, pair);
  }
  rocksdb::PinnableSlice value;
  const rocksdb::Status read =
      database_->db()->Get(OptionsFor(reach), database_->family(Family::kHeads), shard, &value);
  if (read.IsIncomplete()) return std::nullopt;
  absl::StatusOr<ShardRecordPtr> head = DecodeHead(key, read, value);
  if (!head.ok()) return absl::StatusOr<ShardState>(head.status());
  return ShardState{.record = *std::move(head), .applied = std::nullopt};
}

RocksDbReader::Answer<ShardRecordPtr> RocksDbReader::LoadVersion(const ShardKey& key,
                                                                 uint64_t version,
                                                                 ReadReach reach) const {
  const std::string shard = rocksdb_keys::EncodeShard(key);
  const Pair pair = ReadPair(*database_, reach, shard, Family::kHistory,
                             rocksdb_keys::EncodeNumbered(shard, version));
  if (pair.incomplete()) return std::nullopt;
  return DecodeVersion(key, version, pair);
}

absl::StatusOr<ListPage> RocksDbReader::List(const ListQuery& query) const {
  const std::string end = rocksdb_keys::TableEnd(query.table);
  const rocksdb::Slice upper_bound = end;
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper_bound;
  options.fill_cache = false;  // A scan must not push out what claims need.
  const std::unique_ptr<rocksdb::Iterator> it(
      database_->db()->NewIterator(options, database_->family(Family::kHeads)));
  if (query.after.has_value()) {
    const std::string after = rocksdb_keys::EncodeShard({query.table, *query.after});
    it->Seek(after);
    if (it->Valid() && View(it->key()) == after) it->Next();
  } else {
    it->Seek(rocksdb_keys::TablePrefix(query.table));
  }
  ListPage page;
  size_t bytes = 0;
  size_t scanned = 0;
  std::optional<base::Uuid> last;
  for (; it->Valid(); it->Next()) {
    if (last.has_value() && (page.records.size() >= query.results_max || bytes >= query.bytes_max ||
                             scanned >= query.scanned_max)) {
      page.next_after = last;
      break;
    }
    const absl::StatusOr<ShardKey> key = rocksdb_keys::DecodeShard(View(it->key()));
    if (!key.ok()) return key.status();
    absl::StatusOr<ShardRecordPtr> head = DecodeHead(*key, rocksdb::Status::OK(), it->value());
    if (!head.ok()) return head.status();
    ++scanned;
    last = key->shard_id;
    if (query.filter != nullptr && !query.filter(**head)) continue;
    bytes += it->value().size();
    page.records.push_back(*std::move(head));
  }
  if (!it->status().ok()) return ToStatus("listing shards", it->status());
  return page;
}

absl::StatusOr<VersionPage> RocksDbReader::ListVersions(const HistoryQuery& query) const {
  const std::string shard = rocksdb_keys::EncodeShard(query.key);
  rocksdb::ManagedSnapshot snapshot(database_->db());
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  const absl::StatusOr<ShardRecordPtr> head = HeadAt(*database_, query.key, shard, options);
  if (!head.ok()) return head.status();
  VersionPage page;
  if (*head == nullptr) return page;
  const uint64_t head_version = (*head)->manifest().version();
  size_t bytes = 0;
  if (query.before == 0 || query.before > head_version) {
    page.records.push_back(*head);
    bytes += (*head)->ByteSizeLong();
  }
  const uint64_t newest = std::min(query.before == 0 ? head_version : query.before, head_version);
  const uint64_t oldest = std::max(OldestOf(head_version, retention_ever_.history_versions),
                                   std::max((*head)->first_version(), uint64_t{1}));
  if (newest <= oldest) return page;
  absl::Status visited =
      VisitDown(*database_, Family::kHistory, shard, newest - 1, oldest, options,
                [&](uint64_t version, absl::string_view value) -> absl::StatusOr<bool> {
                  if (!page.records.empty() &&
                      (page.records.size() >= query.results_max || bytes >= query.bytes_max)) {
                    page.next_before = page.records.back()->manifest().version();
                    return false;
                  }
                  auto record = rocksdb_keys::DecodeRecordAt(query.key, version, value);
                  if (!record.ok()) return record.status();
                  bytes += value.size();
                  page.records.push_back(*std::move(record));
                  return true;
                });
  if (!visited.ok()) return AboutShard(query.key, visited);
  return page;
}

absl::StatusOr<ClaimPage> RocksDbReader::ListClaims(const HistoryQuery& query) const {
  const std::string shard = rocksdb_keys::EncodeShard(query.key);
  rocksdb::ManagedSnapshot snapshot(database_->db());
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  const absl::StatusOr<ShardRecordPtr> head = HeadAt(*database_, query.key, shard, options);
  if (!head.ok()) return head.status();
  ClaimPage page;
  if (*head == nullptr) return page;
  const uint64_t ended = (*head)->ended_claims();
  const uint64_t newest = query.before == 0 ? ended : std::min(query.before - 1, ended);
  const uint64_t oldest = OldestOf(ended, retention_ever_.claim_history);
  if (newest < oldest) return page;
  size_t bytes = 0;
  absl::Status visited =
      VisitDown(*database_, Family::kClaims, shard, newest, oldest, options,
                [&](uint64_t sequence, absl::string_view value) -> absl::StatusOr<bool> {
                  if (!page.claims.empty() &&
                      (page.claims.size() >= query.results_max || bytes >= query.bytes_max)) {
                    page.next_before = page.claims.back().sequence;
                    return false;
                  }
                  absl::StatusOr<v1::ClaimRecord> claim = rocksdb_keys::DecodeClaim(value);
                  if (!claim.ok()) return claim.status();
                  bytes += value.size();
                  page.claims.push_back({.sequence = sequence, .record = *std::move(claim)});
                  return true;
                });
  if (!visited.ok()) return AboutShard(query.key, visited);
  return page;
}

}  // namespace claimd::store
