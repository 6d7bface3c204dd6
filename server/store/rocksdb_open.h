#ifndef CLAIMD_SERVER_STORE_ROCKSDB_OPEN_H_
#define CLAIMD_SERVER_STORE_ROCKSDB_OPEN_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "server/store/failure_latch.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_options.h"

namespace claimd::store {

struct OpenedDatabase {
  std::unique_ptr<RocksDatabase> database;
  StoreMeta meta;
};

// Opens the store in 'directory', or makes one; recovers what was written before a crash. 'latch'
// learns of background errors.
//
// Errors: those of PrepareDirectory; FailedPrecondition when another process has the store open or
// its format is newer; DataLoss when it is corrupt; Unavailable when it cannot be read or written.
absl::StatusOr<OpenedDatabase> OpenRocksDatabase(const std::string& directory,
                                                 const RocksDbOptions& options,
                                                 std::shared_ptr<FailureLatch> latch);

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_ROCKSDB_OPEN_H_
