#ifndef CLAIMD_SERVER_STORE_ROCKSDB_READER_H_
#define CLAIMD_SERVER_STORE_ROCKSDB_READER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/store/manifest_store.h"
#include "server/store/rocksdb_database.h"
#include "server/store/shard_key.h"

namespace claimd::store {

// How far a read may go.
enum class ReadReach {
  // Never blocks.
  kMemory,
  kDisk,
};

// Reads of ManifestStore on an open database, each of one moment. Thread-safe, blocking.
// Errors: DataLoss, Unavailable; each names the shard.
class RocksDbReader {
 public:
  // An answer, or nothing if it is not in memory and the read may go no further.
  template <typename T>
  using Answer = std::optional<absl::StatusOr<T>>;

  // 'database' is not owned and must outlive this.
  RocksDbReader(const RocksDatabase* database, const RetentionOptions& retention_ever)
      : database_(database), retention_ever_(retention_ever) {}

  Answer<ShardState> Load(const ShardKey& key, absl::string_view request_id, ReadReach reach) const;
  Answer<ShardRecordPtr> LoadVersion(const ShardKey& key, uint64_t version, ReadReach reach) const;

  // These go to the disk.
  absl::StatusOr<ListPage> List(const ListQuery& query) const;
  absl::StatusOr<VersionPage> ListVersions(const HistoryQuery& query) const;
  absl::StatusOr<ClaimPage> ListClaims(const HistoryQuery& query) const;

 private:
  const RocksDatabase* const database_;
  const RetentionOptions retention_ever_;
};

// 'status' with the shard that it is about.
absl::Status AboutShard(const ShardKey& key, const absl::Status& status);

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_ROCKSDB_READER_H_
