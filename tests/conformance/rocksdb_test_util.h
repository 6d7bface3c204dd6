#ifndef CLAIMD_TESTS_CONFORMANCE_ROCKSDB_TEST_UTIL_H_
#define CLAIMD_TESTS_CONFORMANCE_ROCKSDB_TEST_UTIL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include <rocksdb/db.h>

#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_store.h"

namespace claimd::store {

// Opens a store that must open.
std::unique_ptr<RocksDbStore> MustOpen(const std::string& directory);

// What opening the store says; closes it again.
absl::Status TryOpen(const std::string& directory);

// Lets 'change' at the database of a store that is closed, as nobody but a test does.
void ChangeDatabase(const std::string& directory,
                    const std::function<void(RocksDatabase*)>& change);

// Sets one value in the database of a store that is closed.
void Overwrite(const std::string& directory, Family family, const std::string& key,
               const std::string& value);

// Paths of the write-ahead logs, oldest first.
std::vector<std::string> LogsIn(const std::string& directory);

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

}  // namespace claimd::store

#endif  // CLAIMD_TESTS_CONFORMANCE_ROCKSDB_TEST_UTIL_H_
