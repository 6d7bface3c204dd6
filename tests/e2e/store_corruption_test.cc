#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/server_process.h"

// A head that cannot be trusted is an error, never a shard that does not exist.
namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;

// The heads of a store whose server is stopped.
class HeadsOnDisk {
 public:
  explicit HeadsOnDisk(const std::string& directory) {
    std::vector<std::string> names;
    Check(rocksdb::DB::ListColumnFamilies(rocksdb::DBOptions(), directory, &names));
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    families.reserve(names.size());
    for (const std::string& name : names) {
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    }
    rocksdb::DB* db = nullptr;
    Check(rocksdb::DB::Open(rocksdb::DBOptions(), directory, families, &handles_, &db));
    db_.reset(db);
    for (rocksdb::ColumnFamilyHandle* handle : handles_) {
      if (handle->GetName() == "heads") heads_ = handle;
    }
    EXPECT_NE(heads_, nullptr) << "the store has no family of heads";
  }
  ~HeadsOnDisk() {
    for (rocksdb::ColumnFamilyHandle* handle : handles_)
      Check(db_->DestroyColumnFamilyHandle(handle));
    Check(db_->Close());
  }
  HeadsOnDisk(const HeadsOnDisk&) = delete;
  HeadsOnDisk& operator=(const HeadsOnDisk&) = delete;

  // The value of the only head of a table.
  std::string Get(const std::string& table) const {
    std::string value;
    Check(db_->Get(rocksdb::ReadOptions(), heads_, KeyOf(table), &value));
    return value;
  }
  void Put(const std::string& table, const std::string& value) const {
    rocksdb::WriteOptions durable;
    durable.sync = true;
    Check(db_->Put(durable, heads_, KeyOf(table), value));
  }

 private:
  static void Check(const rocksdb::Status& status) {
    EXPECT_TRUE(status.ok()) << status.ToString();
  }

  std::string KeyOf(const std::string& table) const {
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), heads_));
    for (it->SeekToFirst(); it->Valid(); it->Next()) {
      if (absl::StartsWith(it->key().ToString(), table)) return it->key().ToString();
    }
    ADD_FAILURE() << "no head of table " << table;
    return "";
  }

  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::ColumnFamilyHandle* heads_ = nullptr;
};

// What the head of table "broken" becomes, given its bytes and those of another shard's head.
struct Damage {
  std::string name;
  std::string (*apply)(const std::string& head, const std::string& other);
};
void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class StoreCorruptionTest : public ::testing::TestWithParam<Damage> {};

TEST_P(StoreCorruptionTest, IsAnsweredAsCorruptionAndNothingIsWritten) {
  auto started = ServerProcess::Start();
  ASSERT_TRUE(started.ok()) << started.status();
  ServerProcess& server = **started;
  const Shard broken = FreshShard("broken");
  const Shard whole = FreshShard("whole");
  {
    const Client client(server.address());
    ASSERT_TRUE(IsOk(client.Claim(broken, "writer", 1).status));
    ASSERT_TRUE(IsOk(client.Claim(whole, "writer", 1).status));
  }
  ASSERT_EQ(server.Stop()->code, 0);
  std::string damaged;
  {
    const HeadsOnDisk heads(server.store_dir());
    damaged = GetParam().apply(heads.Get(broken.table), heads.Get(whole.table));
    heads.Put(broken.table, damaged);
  }
  const absl::Status restarted = server.Restart();
  ASSERT_TRUE(restarted.ok()) << restarted;

  const Client client(server.address());
  const auto expect_corrupt = [&](const grpc::Status& status) {
    EXPECT_TRUE(Refused(status, StatusCode::DATA_LOSS, "STORE_CORRUPT", broken));
  };
  expect_corrupt(client.Claim(broken, "newcomer", 1).status);
  expect_corrupt(client.Call(For<v1::InitializeShardRequest>(broken)).status);
  expect_corrupt(client.Get(broken).status);
  expect_corrupt(client.CheckFence(broken, 1).status);
  expect_corrupt(client.Seal(broken).status);
  v1::ListShardsRequest list;
  list.set_table(broken.table);
  EXPECT_EQ(client.Call(list).status.error_code(), StatusCode::DATA_LOSS);
  EXPECT_EQ(client.Claim(whole, "newcomer", 1).response.writer_epoch(), 2U) << "other shards go on";

  ASSERT_EQ(server.Stop()->code, 0);
  EXPECT_EQ(HeadsOnDisk(server.store_dir()).Get(broken.table), damaged);
}

INSTANTIATE_TEST_SUITE_P(
    Heads, StoreCorruptionTest,
    ::testing::Values(
        Damage{"Garbage", [](const std::string&, const std::string&) { return std::string("?!"); }},
        Damage{"Empty", [](const std::string&, const std::string&) { return std::string(); }},
        Damage{"Torn", [](const std::string& head,
                          const std::string&) { return head.substr(0, head.size() / 2); }},
        Damage{"NewerFormat",
               [](const std::string& head, const std::string&) { return "\x7f" + head.substr(1); }},
        Damage{"AnotherShardsHead",
               [](const std::string&, const std::string& other) { return other; }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace claimd::e2e
