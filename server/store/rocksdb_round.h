#ifndef CLAIMD_SERVER_STORE_ROCKSDB_ROUND_H_
#define CLAIMD_SERVER_STORE_ROCKSDB_ROUND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <rocksdb/write_batch.h>

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/store/manifest_store.h"
#include "server/store/rocksdb_database.h"
#include "server/store/shard_key.h"

namespace claimd::store {

// A swap with all that can be computed before its turn comes.
struct PreparedSwap {
  SwapRequest request;
  std::string shard;
  // Envelopes without revision.
  std::string head;
  std::string applied;
  std::string ended_claim;
};
// REQUIRES: CheckSwap(request) is OK.
PreparedSwap Prepare(SwapRequest request);

// One round of group commit: decides swaps one after the other, each seeing those before it, and
// gathers what they write in one batch. Reads what is durable from the database, which nobody else
// may write to meanwhile. Blocking; not thread-safe.
class RocksDbRound {
 public:
  // Where the changes family stands; goes on with each swap that is staged.
  struct Position {
    uint64_t revision = 0;
    uint64_t oldest_change = 1;
  };
  struct Limits {
    RetentionOptions retention;
    RetentionOptions retention_ever;
    uint64_t change_log = 1;
  };

  // The swap is part of the batch.
  struct Staged {
    uint64_t revision = 0;
  };
  struct Verdict {
    std::variant<Staged, SwapConflict, SwapNotApplied> outcome;
    // It holds only if the batch is written.
    bool depends_on_batch = false;
  };

  // 'database' is not owned.
  RocksDbRound(const RocksDatabase* database, const Limits& limits, Position position)
      : database_(database), limits_(limits), position_(position) {}

  Verdict Add(PreparedSwap swap);

  // Completes the batch. REQUIRES: a swap was staged. No Add after this.
  absl::StatusOr<rocksdb::WriteBatch*> Finish();

  const Position& position() const { return position_; }

 private:
  // A shard as this round sees it: what is durable, with the changes of this round on top.
  struct Shard {
    ShardRecordPtr head;
    std::string head_value;
    // Changed in this round; the rest is empty if not.
    bool changed = false;
    std::vector<ShardRecordPtr> history;
    // All versions and claims below these are removed.
    uint64_t versions_from = 0;
    uint64_t claims_from = 0;
    std::vector<std::pair<uint64_t, v1::ClaimRecord>> claims;
    // Newest last; nothing for an id that was forgotten.
    std::vector<std::pair<std::string, std::optional<storage::v1::AppliedRequest>>> requests;

    uint64_t version() const { return head == nullptr ? 0 : head->manifest().version(); }
  };
  // What one swap removes.
  struct Removals {
    std::vector<uint64_t> versions;
    std::vector<uint64_t> claims;
    std::vector<std::string> request_ids;
  };

  absl::StatusOr<Shard*> Find(const ShardKey& key, const std::string& encoded);
  absl::StatusOr<ShardRecordPtr> FindVersion(const PreparedSwap& swap, const Shard& shard,
                                             uint64_t version) const;
  absl::StatusOr<std::optional<v1::ClaimRecord>> FindClaim(const PreparedSwap& swap,
                                                           const Shard& shard,
                                                           uint64_t sequence) const;
  absl::StatusOr<std::optional<storage::v1::AppliedRequest>> FindRequest(
      const std::string& encoded, const Shard& shard, absl::string_view request_id) const;
  // A value, or nothing if there is none.
  absl::StatusOr<std::optional<std::string>> Read(Family family, const std::string& key) const;

  absl::StatusOr<Verdict> Decide(PreparedSwap* swap);
  absl::StatusOr<Removals> FindRemovals(const PreparedSwap& swap, const Shard& shard) const;
  absl::Status AddVersions(const PreparedSwap& swap, const Shard& shard, Removals* removals) const;
  absl::Status AddClaims(const PreparedSwap& swap, const Shard& shard, Removals* removals) const;
  void Stage(PreparedSwap* swap, const Removals& removals, Shard* shard);
  void StageRemovals(const PreparedSwap& swap, const Removals& removals, Shard* shard);
  void Put(Family family, const std::string& key, const std::string& value);
  void Delete(Family family, const std::string& key);

  const RocksDatabase* const database_;
  const Limits limits_;
  Position position_;
  absl::flat_hash_map<std::string, Shard> shards_;
  rocksdb::WriteBatch batch_;
  // The first error in building the batch: the batch is of no use then.
  absl::Status batch_status_;
};

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_ROCKSDB_ROUND_H_
