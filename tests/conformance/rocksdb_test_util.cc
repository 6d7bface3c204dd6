#include "tests/conformance/rocksdb_test_util.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include "server/store/failure_latch.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_options.h"
#include "server/store/rocksdb_store.h"

namespace claimd::store {

std::unique_ptr<RocksDbStore> MustOpen(const std::string& directory) {
  auto store = RocksDbStore::Open(directory, RocksDbOptions());
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) std::abort();  // No test can go on without a store.
  return *std::move(store);
}

absl::Status TryOpen(const std::string& directory) {
  return RocksDbStore::Open(directory, RocksDbOptions()).status();
}

void ChangeDatabase(const std::string& directory,
                    const std::function<void(RocksDatabase*)>& change) {
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(kFamilyNames.size());
  for (const char* name : kFamilyNames) {
    families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  }
  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const rocksdb::Status opened =
      rocksdb::DB::Open(rocksdb::DBOptions(), directory, families, &handles, &db);
  ASSERT_TRUE(opened.ok()) << opened.ToString();
  RocksDatabase database(std::unique_ptr<rocksdb::DB>(db), std::move(handles),
                         std::make_shared<FailureLatch>(nullptr));
  change(&database);
}

void Overwrite(const std::string& directory, Family family, const std::string& key,
               const std::string& value) {
  ChangeDatabase(directory, [&](RocksDatabase* database) {
    const rocksdb::Status put =
        database->db()->Put(rocksdb::WriteOptions(), database->family(family), key, value);
    EXPECT_TRUE(put.ok()) << put.ToString();
  });
}

std::vector<std::string> LogsIn(const std::string& directory) {
  std::vector<std::string> logs;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".log") logs.push_back(entry.path().string());
  }
  std::sort(logs.begin(), logs.end());
  return logs;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
  file.close();
  EXPECT_TRUE(file.good()) << path;
}

}  // namespace claimd::store
