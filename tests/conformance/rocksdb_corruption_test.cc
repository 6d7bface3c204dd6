#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "claimd/storage/v1/storage.pb.h"

#include "server/store/crc32c.h"
#include "server/store/manifest_store.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_keys.h"
#include "server/store/rocksdb_store.h"
#include "server/store/shard_key.h"
#include "server/store/wal_check.h"
#include "tests/conformance/rocksdb_test_util.h"
#include "tests/conformance/store_conformance.h"

namespace claimd::store {
namespace {

using ::testing::HasSubstr;

TEST(Crc32cTest, AgreesWithThePublishedValues) {
  // RFC 3720, B.4.
  EXPECT_EQ(ExtendCrc32c(0, std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(ExtendCrc32c(0, std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(ExtendCrc32c(0, "123456789"), 0xe3069283U);
  EXPECT_EQ(ExtendCrc32c(ExtendCrc32c(0, "12345"), "6789"), 0xe3069283U);
}

// A store with one shard whose values can be damaged while it is closed.
class DamagedValueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto store = MustOpen(dir_);
    ShardRecordPtr head = MustSwap(store.get(), Claim(key_, nullptr, "r1"));
    head_ = MustSwap(store.get(), Claim(key_, head, "r2"));
    MustSwap(store.get(), Create(KeyOf("t", 2), "r"));
  }

  void Damage(Family family, const std::string& key, const std::string& value) {
    Overwrite(dir_, family, key, value);
    store_ = MustOpen(dir_);
  }

  // The head cannot be read: nothing may treat the shard as new, or change it.
  void ExpectHeadIsLost() {
    const absl::Status status = Load(store_.get(), key_).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("00000001-0000"));
    EXPECT_TRUE(absl::IsDataLoss(Load(store_.get(), key_, "r1").status()));
    EXPECT_TRUE(absl::IsDataLoss(LoadVersion(store_.get(), key_, 1).status()));
    EXPECT_TRUE(absl::IsDataLoss(List(store_.get(), {.table = "t"}).status()));
    EXPECT_TRUE(absl::IsDataLoss(ListVersions(store_.get(), {.key = key_}).status()));
    EXPECT_TRUE(absl::IsDataLoss(ListClaims(store_.get(), {.key = key_}).status()));
    const uint64_t revision = store_->Info().revision;
    for (SwapRequest request : {Create(key_, "r3"), Commit(key_, head_, "r3")}) {
      const SwapOutcome outcome = Swap(store_.get(), std::move(request));
      ASSERT_EQ(KindOf(outcome), "not applied");
      EXPECT_TRUE(absl::IsDataLoss(std::get<SwapNotApplied>(outcome).status));
    }
    EXPECT_EQ(store_->Info().revision, revision);
    // Others are served, and the store is well.
    EXPECT_NE(Load(store_.get(), KeyOf("t", 2))->record, nullptr);
    EXPECT_EQ(KindOf(Swap(store_.get(), Create(KeyOf("t", 3), "r"))), "committed");
    EXPECT_TRUE(store_->Health().ok());
  }

  const ScopedDirectory scope_;
  const std::string dir_ = scope_.At("store");
  const ShardKey key_ = KeyOf("t", 1);
  const std::string shard_ = rocksdb_keys::EncodeShard(key_);
  ShardRecordPtr head_;
  std::unique_ptr<RocksDbStore> store_;
};

TEST_F(DamagedValueTest, HeadThatIsNoMessageIsDataLoss) {
  Damage(Family::kHeads, shard_, rocksdb_keys::Wrap(*head_) + "\xff\xff\xff");
  ExpectHeadIsLost();
}

TEST_F(DamagedValueTest, EmptyHeadIsDataLoss) {
  Damage(Family::kHeads, shard_, "");
  ExpectHeadIsLost();
}

TEST_F(DamagedValueTest, HeadOfAnUnknownFormatIsDataLoss) {
  std::string value = rocksdb_keys::Wrap(*head_);
  value[0] = 2;
  Damage(Family::kHeads, shard_, value);
  ExpectHeadIsLost();
}

TEST_F(DamagedValueTest, HeadOfAnotherShardIsDataLoss) {
  Damage(Family::kHeads, shard_, rocksdb_keys::Wrap(*Create(KeyOf("t", 2), "r").next));
  ExpectHeadIsLost();
}

TEST_F(DamagedValueTest, HeadOfTheSameIdInAnotherTableIsDataLoss) {
  Damage(Family::kHeads, shard_, rocksdb_keys::Wrap(*Create(KeyOf("u", 1), "r").next));
  ExpectHeadIsLost();
}

TEST_F(DamagedValueTest, DamagedGuardStopsTheSwap) {
  Damage(Family::kHeads, shard_, "?");
  SwapRequest request = Create(KeyOf("t", 3), "r");
  request.guards = {{.key = key_, .expected_version = 0}};
  const SwapOutcome outcome = Swap(store_.get(), std::move(request));
  ASSERT_EQ(KindOf(outcome), "not applied") << "a damaged guard is not an absent one";
  EXPECT_TRUE(absl::IsDataLoss(std::get<SwapNotApplied>(outcome).status));
}

TEST_F(DamagedValueTest, DamagedVersionIsDataLossAndNotAMissingOne) {
  Damage(Family::kHistory, rocksdb_keys::EncodeNumbered(shard_, 1), rocksdb_keys::Wrap(*head_));
  EXPECT_TRUE(absl::IsDataLoss(LoadVersion(store_.get(), key_, 1).status()));
  EXPECT_TRUE(absl::IsDataLoss(ListVersions(store_.get(), {.key = key_}).status()));
  EXPECT_TRUE(Load(store_.get(), key_).ok());
}

TEST_F(DamagedValueTest, DamagedRequestIsDataLossAndNotAForgottenOne) {
  Damage(Family::kRequests, rocksdb_keys::EncodeRequest(shard_, "r1"),
         rocksdb_keys::Wrap(storage::v1::AppliedRequest()));
  EXPECT_TRUE(absl::IsDataLoss(Load(store_.get(), key_, "r1").status()));
  const SwapOutcome outcome = Swap(store_.get(), Create(key_, "r1"));
  ASSERT_EQ(KindOf(outcome), "not applied");
}

TEST_F(DamagedValueTest, DamagedClaimIsDataLoss) {
  Damage(Family::kClaims, rocksdb_keys::EncodeNumbered(shard_, 1), "\x01short");
  EXPECT_TRUE(absl::IsDataLoss(ListClaims(store_.get(), {.key = key_}).status()));
}

// A closed store whose write-ahead log holds everything.
class DamagedLogTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kChanges = 6;

  // Makes the store and remembers how long the log was after each change.
  void SetUp() override {
    const auto store = MustOpen(dir_);
    sizes_.push_back(LogSize());
    for (uint32_t i = 1; i <= kChanges; ++i) {
      MustSwap(store.get(), Claim(KeyOf("t", i), nullptr, "r"));
      sizes_.push_back(LogSize());
    }
    bytes_ = ReadFile(LogsIn(dir_).front());
    ASSERT_EQ(LogsIn(dir_).size(), 1);
    ASSERT_EQ(bytes_.size(), sizes_.back());
  }

  uint64_t LogSize() const { return std::filesystem::file_size(LogsIn(dir_).front()); }

  // Checks the log with other bytes in it, in a directory without anything else.
  absl::Status Check(const std::string& bytes) const {
    const std::string dir = scope_.At("log");
    std::filesystem::create_directories(dir);
    WriteFile(dir + "/000004.log", bytes);
    return CheckWriteAheadLogs(rocksdb::Env::Default(), dir);
  }

  // Opens a copy of the store with other bytes in its log: its revision.
  absl::StatusOr<uint64_t> OpenWith(const std::string& bytes) const {
    const std::string copy = scope_.At("copy");
    std::filesystem::remove_all(copy);
    std::filesystem::copy(dir_, copy);
    WriteFile(LogsIn(copy).front(), bytes);
    auto store = RocksDbStore::Open(copy, RocksDbOptions());
    if (!store.ok()) return store.status();
    return (*store)->Info().revision;
  }

  const ScopedDirectory scope_;
  const std::string dir_ = scope_.At("store");
  std::string bytes_;
  // Sizes of the log: with no change, with one, …
  std::vector<uint64_t> sizes_;
};

TEST_F(DamagedLogTest, EveryFlippedBitIsFound) {
  for (size_t i = 0; i < bytes_.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string bytes = bytes_;
      bytes[i] = static_cast<char>(static_cast<uint8_t>(bytes[i]) ^ 1U << bit);
      const absl::Status status = Check(bytes);
      EXPECT_TRUE(absl::IsDataLoss(status)) << "byte " << i << " bit " << bit << ": " << status;
    }
  }
}

TEST_F(DamagedLogTest, StoreWithAFlippedBitIsNotOpened) {
  for (size_t i = 0; i < bytes_.size(); i += 101) {
    std::string bytes = bytes_;
    bytes[i] = static_cast<char>(static_cast<uint8_t>(bytes[i]) ^ 4U);
    const auto revision = OpenWith(bytes);
    EXPECT_TRUE(absl::IsDataLoss(revision.status())) << "byte " << i << ": " << revision.status();
  }
}

TEST_F(DamagedLogTest, LengthAndTypeOfTheLastRecordAreGuarded) {
  // RocksDB alone takes each of these for a torn tail, and drops a change that was answered.
  const size_t header = sizes_[kChanges - 1];
  for (const size_t at : {header + 5, header + 6}) {
    std::string bytes = bytes_;
    bytes[at] = static_cast<char>(static_cast<uint8_t>(bytes[at]) ^ 4U);
    const auto revision = OpenWith(bytes);
    EXPECT_TRUE(absl::IsDataLoss(revision.status())) << "byte " << at << ": " << revision.status();
  }
}

TEST_F(DamagedLogTest, DamagedHeaderBeforeGoodRecordsIsNoTornTail) {
  std::string bytes = bytes_;
  // Another checksum, and a length that goes beyond the end of the log.
  for (size_t i = 0; i < 4; ++i) bytes[sizes_[2] + i] = 'x';
  bytes[sizes_[2] + 5] = 0x40;
  EXPECT_TRUE(absl::IsDataLoss(Check(bytes)));
  EXPECT_TRUE(absl::IsDataLoss(OpenWith(bytes).status()));
}

TEST_F(DamagedLogTest, TornTailLosesOnlyTheChangeThatIsTorn) {
  for (uint32_t change = 1; change <= kChanges; ++change) {
    const uint64_t start = sizes_[change - 1];
    for (const uint64_t cut :
         {start, start + 1, start + 6, start + 7, start + 20, sizes_[change] - 1}) {
      const auto revision = OpenWith(bytes_.substr(0, cut));
      ASSERT_TRUE(revision.ok()) << "cut at " << cut << ": " << revision.status();
      EXPECT_EQ(*revision, change - 1) << "cut at " << cut;
    }
  }
}

TEST_F(DamagedLogTest, EveryCutIsATornTail) {
  for (size_t cut = 0; cut <= bytes_.size(); ++cut) {
    const absl::Status status = Check(bytes_.substr(0, cut));
    EXPECT_TRUE(status.ok()) << "cut at " << cut << ": " << status;
  }
}

TEST_F(DamagedLogTest, ZerosAtTheEndAreSpaceThatNobodyWroteTo) {
  const auto revision = OpenWith(bytes_ + std::string(50'000, '\0'));
  ASSERT_TRUE(revision.ok()) << revision.status();
  EXPECT_EQ(*revision, kChanges);
}

TEST_F(DamagedLogTest, ZerosInTheMiddleAreFound) {
  std::string bytes = bytes_;
  for (uint64_t i = sizes_[2]; i < sizes_[3]; ++i) bytes[i] = '\0';
  EXPECT_TRUE(absl::IsDataLoss(Check(bytes)));
}

TEST_F(DamagedLogTest, RecordThatWasCutOutIsMissed) {
  const std::string bytes = bytes_.substr(0, sizes_[2]) + bytes_.substr(sizes_[3]);
  EXPECT_TRUE(absl::IsDataLoss(Check(bytes)));
  EXPECT_TRUE(absl::IsDataLoss(OpenWith(bytes).status()));
}

TEST_F(DamagedLogTest, TornTailOfAnOlderLogIsMissedWhenTheNextGoesOnElsewhere) {
  const std::string dir = scope_.At("logs");
  std::filesystem::create_directories(dir);
  WriteFile(dir + "/000004.log", bytes_.substr(0, sizes_[3] - 1));
  WriteFile(dir + "/000009.log", bytes_.substr(sizes_[2]));
  EXPECT_TRUE(CheckWriteAheadLogs(rocksdb::Env::Default(), dir).ok());
  WriteFile(dir + "/000009.log", bytes_.substr(sizes_[4]));
  EXPECT_TRUE(absl::IsDataLoss(CheckWriteAheadLogs(rocksdb::Env::Default(), dir)));
}

TEST_F(DamagedLogTest, StoreLivesOnAfterManyTornTails) {
  uint64_t revision = kChanges;
  for (uint32_t round = 0; round < 10; ++round) {
    const std::string log = LogsIn(dir_).back();
    const std::string bytes = ReadFile(log);
    // Half of a record that nobody was answered.
    WriteFile(log, bytes + bytes_.substr(sizes_[kChanges - 1], 40 + round));
    const auto store = MustOpen(dir_);
    EXPECT_EQ(store->Info().revision, revision);
    for (uint32_t i = 0; i < round % 3; ++i) {
      MustSwap(store.get(), Create(KeyOf("u", 10 * round + i), "r"));
      ++revision;
    }
  }
}

// Logs with records larger than a block of the log, and with many of them.
TEST(LargeLogTest, RecordsOverManyBlocksAreFollowed) {
  const ScopedDirectory scope;
  const std::string dir = scope.At("store");
  std::string bytes;
  {
    const auto store = MustOpen(dir);
    for (uint32_t i = 0; i < 60; ++i) {
      SwapRequest request = Create(KeyOf("t", i), "r");
      auto next = std::make_shared<storage::v1::ShardRecord>(*request.next);
      (*next->mutable_manifest()->mutable_annotations())["x"] = std::string(size_t{i} * 331, 'x');
      request.next = next;
      MustSwap(store.get(), std::move(request));
    }
    bytes = ReadFile(LogsIn(dir).back());
  }
  ASSERT_GT(bytes.size(), 300'000);
  const std::string logs = scope.At("logs");
  std::filesystem::create_directories(logs);
  const auto check = [&logs](const std::string& content) {
    WriteFile(logs + "/000004.log", content);
    return CheckWriteAheadLogs(rocksdb::Env::Default(), logs);
  };
  EXPECT_TRUE(check(bytes).ok()) << check(bytes);
  for (size_t cut = 1; cut < bytes.size(); cut += 4'999) {
    EXPECT_TRUE(check(bytes.substr(0, cut)).ok()) << "cut at " << cut;
    std::string flipped = bytes;
    flipped[cut] = static_cast<char>(static_cast<uint8_t>(flipped[cut]) ^ 1U);
    EXPECT_TRUE(absl::IsDataLoss(check(flipped))) << "flipped at " << cut;
  }
  EXPECT_EQ(MustOpen(dir)->Info().revision, 60);
}

}  // namespace
}  // namespace claimd::store
