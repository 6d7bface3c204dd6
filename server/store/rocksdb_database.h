#ifndef CLAIMD_SERVER_STORE_ROCKSDB_DATABASE_H_
#define CLAIMD_SERVER_STORE_ROCKSDB_DATABASE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include <rocksdb/db.h>
#include <rocksdb/status.h>

#include "server/base/uuid.h"
#include "server/store/failure_latch.h"
#include "server/store/manifest_store.h"

namespace claimd::store {

// Column families, in the order of their handles.
enum class Family : size_t {
  // RocksDB insists on one of this name. Holds nothing.
  kDefault,
  kHeads,
  kHistory,
  kClaims,
  kRequests,
  // Records of the table registry.
  kTables,
  kChanges,
  kMeta,
};
inline constexpr std::array<const char*, 8> kFamilyNames = {
    "default", "heads", "history", "claims", "requests", "tables", "changes", "meta"};

// What a store knows of itself, from the meta family.
struct StoreMeta {
  base::Uuid store_id{};
  std::string token_key;
  uint32_t format_version = 0;
  // Revision of the newest change, and of the oldest one in the changes family (1 if there is
  // none).
  uint64_t revision = 0;
  uint64_t oldest_change = 1;
  // The longest histories that were ever kept.
  RetentionOptions retention_ever;
};

// Encoding of the meta family.
inline constexpr char kMetaFormat[] = "format_version";
inline constexpr char kMetaStoreId[] = "store_id";
inline constexpr char kMetaTokenKey[] = "token_key";
// revision, oldest_change
inline constexpr char kMetaRevision[] = "revision";
// versions, claims
inline constexpr char kMetaRetention[] = "retention_ever";

// An open RocksDB with its column families. Closed when destroyed. Thread-safe.
class RocksDatabase {
 public:
  // Takes over 'db' and its handles, in the order of Family. 'latch' is what the database reports
  // background errors to.
  RocksDatabase(std::unique_ptr<rocksdb::DB> db, std::vector<rocksdb::ColumnFamilyHandle*> handles,
                std::shared_ptr<FailureLatch> latch);
  ~RocksDatabase();
  RocksDatabase(const RocksDatabase&) = delete;
  RocksDatabase& operator=(const RocksDatabase&) = delete;

  rocksdb::DB* db() const { return db_.get(); }
  rocksdb::ColumnFamilyHandle* family(Family family) const {
    return handles_[static_cast<size_t>(family)];
  }
  FailureLatch* latch() const { return latch_.get(); }

 private:
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::shared_ptr<FailureLatch> latch_;
};

// DataLoss for a corruption, Unavailable for any other error. REQUIRES: status is not OK.
absl::Status ToStatus(absl::string_view what, const rocksdb::Status& status);

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_ROCKSDB_DATABASE_H_
