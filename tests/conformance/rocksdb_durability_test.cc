#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include "claimd/storage/v1/storage.pb.h"

#include "server/base/mutex.h"
#include "server/store/manifest_store.h"
#include "server/store/rocksdb_options.h"
#include "server/store/rocksdb_store.h"
#include "server/store/shard_key.h"
#include "tests/conformance/rocksdb_test_util.h"
#include "tests/conformance/store_conformance.h"
#include "tests/testing/fault_file_system.h"

namespace claimd::store {
namespace {

// A store on a disk that misbehaves when told to.
class RocksDbDurabilityTest : public ::testing::Test {
 protected:
  void SetUp() override { Open(RocksDbOptions()); }
  // A test that failed must not leave the store waiting.
  void TearDown() override { disk_->ReleaseLogSyncs(); }

  void Open(RocksDbOptions options) {
    store_.reset();
    options.env = env_.get();
    options.on_write_failure = [this](const absl::Status& status) {
      ++failures_;
      failure_.Put(status);
    };
    auto store = RocksDbStore::Open(dir_, std::move(options));
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // Starts a swap and gives back where its outcome will be.
  std::unique_ptr<Inbox<SwapOutcome>> Start(SwapRequest request) {
    auto inbox = std::make_unique<Inbox<SwapOutcome>>();
    store_->CompareAndSwap(std::move(request), [into = inbox.get()](SwapOutcome outcome) {
      into->Put(std::move(outcome));
    });
    return inbox;
  }

  void ExpectEverythingFails() {
    const ShardKey key = KeyOf("t", 1);
    EXPECT_TRUE(absl::IsUnavailable(store_->Health())) << store_->Health();
    EXPECT_TRUE(absl::IsUnavailable(Load(store_.get(), key).status()));
    EXPECT_TRUE(absl::IsUnavailable(LoadVersion(store_.get(), key, 1).status()));
    EXPECT_TRUE(absl::IsUnavailable(List(store_.get(), {.table = "t"}).status()));
    EXPECT_TRUE(absl::IsUnavailable(ListVersions(store_.get(), {.key = key}).status()));
    EXPECT_TRUE(absl::IsUnavailable(ListClaims(store_.get(), {.key = key}).status()));
    const SwapOutcome outcome = Swap(store_.get(), Create(KeyOf("t", 99), "r"));
    ASSERT_EQ(KindOf(outcome), "not applied");
    EXPECT_TRUE(absl::IsUnavailable(std::get<SwapNotApplied>(outcome).status));
    EXPECT_EQ(failures_, 1) << "on_write_failure runs once";
  }

  const ScopedDirectory scope_;
  const std::string dir_ = scope_.At("store");
  const std::shared_ptr<testing::FaultFileSystem> disk_ =
      std::make_shared<testing::FaultFileSystem>();
  const std::unique_ptr<rocksdb::Env> env_ = rocksdb::NewCompositeEnv(disk_);
  std::atomic<int> failures_ = 0;
  Inbox<absl::Status> failure_;
  std::unique_ptr<RocksDbStore> store_;
};

TEST_F(RocksDbDurabilityTest, AnswerAndReadsComeOnlyAfterTheLogIsSynced) {
  const ShardKey key = KeyOf("t", 1);
  disk_->HoldLogSyncs();
  std::atomic<bool> answered = false;
  Inbox<SwapOutcome> inbox;
  store_->CompareAndSwap(Create(key, "r1"), [&](SwapOutcome outcome) {
    answered = true;
    inbox.Put(std::move(outcome));
  });
  ASSERT_TRUE(disk_->AwaitHeldSync().ok()) << "the log was not synced";
  // The bytes are written, but not synced: nobody may see them.
  EXPECT_EQ(Load(store_.get(), key, "r1")->record, nullptr);
  EXPECT_TRUE(List(store_.get(), {.table = "t"})->records.empty());
  EXPECT_EQ(store_->Info().revision, 0);
  EXPECT_FALSE(answered);
  disk_->ReleaseLogSyncs();
  EXPECT_EQ(KindOf(inbox.Take()), "committed");
  EXPECT_NE(Load(store_.get(), key)->record, nullptr);
}

TEST_F(RocksDbDurabilityTest, ConflictWithAWriteInFlightIsAnsweredOnlyAfterItsSync) {
  const ShardKey key = KeyOf("t", 1);
  const ShardKey durable = KeyOf("t", 2);
  MustSwap(store_.get(), Create(durable, "r"));
  disk_->HoldLogSyncs();
  auto first = Start(Create(KeyOf("t", 7), "r"));
  ASSERT_TRUE(disk_->AwaitHeldSync().ok()) << "the log was not synced";
  // These make the next round. The last one's conflict is with what is durable.
  auto winner = Start(Create(key, "r1"));
  std::atomic<bool> answered = false;
  Inbox<SwapOutcome> loser;
  store_->CompareAndSwap(Create(key, "r2"), [&](SwapOutcome outcome) {
    answered = true;
    loser.Put(std::move(outcome));
  });
  auto independent = Start(Create(durable, "r3"));
  disk_->PassOneLogSync();
  EXPECT_EQ(KindOf(first->Take()), "committed");
  EXPECT_EQ(KindOf(independent->Take()), "conflict") << "it has nothing to wait for";
  ASSERT_TRUE(disk_->AwaitHeldSync().ok()) << "the log was not synced";
  EXPECT_FALSE(answered) << "the conflict was told before what it is with is durable";
  disk_->ReleaseLogSyncs();
  EXPECT_EQ(KindOf(winner->Take()), "committed");
  EXPECT_EQ(KindOf(loser.Take()), "conflict");
}

TEST_F(RocksDbDurabilityTest, WhatGathersDuringOneSyncSharesTheNext) {
  const int before = disk_->log_sync_count();
  disk_->HoldLogSyncs();
  std::vector<std::unique_ptr<Inbox<SwapOutcome>>> inboxes;
  inboxes.push_back(Start(Create(KeyOf("t", 0), "r")));
  ASSERT_TRUE(disk_->AwaitHeldSync().ok()) << "the log was not synced";
  for (uint32_t i = 1; i <= 200; ++i) inboxes.push_back(Start(Create(KeyOf("t", i), "r")));
  disk_->ReleaseLogSyncs();
  for (const auto& inbox : inboxes) EXPECT_EQ(KindOf(inbox->Take()), "committed");
  EXPECT_EQ(disk_->log_sync_count() - before, 2);
}

TEST_F(RocksDbDurabilityTest, IdThatIsUsedAgainInTheRoundThatForgetsItIsRemembered) {
  const ShardKey key = KeyOf("t", 1);
  ShardRecordPtr head;
  for (int i = 1; i <= 8; ++i) {
    head = MustSwap(store_.get(),
                    i == 1 ? Create(key, "r1") : Commit(key, head, absl::StrCat("r", i)));
  }
  RocksDbOptions options;
  options.retention.history_versions = 2;
  Open(std::move(options));
  disk_->HoldLogSyncs();
  std::vector<std::unique_ptr<Inbox<SwapOutcome>>> inboxes;
  inboxes.push_back(Start(Create(KeyOf("t", 7), "r")));
  ASSERT_TRUE(disk_->AwaitHeldSync().ok()) << "the log was not synced";
  // One round: the first forgets r1 to r7, the second uses r1 again, the third forgets r9.
  for (const char* id : {"r9", "r1", "r11"}) {
    SwapRequest commit = Commit(key, head, id);
    head = commit.next;
    inboxes.push_back(Start(std::move(commit)));
  }
  disk_->ReleaseLogSyncs();
  for (const auto& inbox : inboxes) EXPECT_EQ(KindOf(inbox->Take()), "committed");
  EXPECT_THAT(KeptVersions(store_.get(), key), ::testing::ElementsAre(11, 10));
  EXPECT_THAT(Remembered(store_.get(), key, {"r1", "r2", "r7", "r8", "r9", "r11"}),
              ::testing::ElementsAre("r1", "r11"));
}

TEST_F(RocksDbDurabilityTest, WhatIsOnDiskIsReadThereAndNeverByTheCaller) {
  const ShardKey key = KeyOf("t", 1);
  const ShardRecordPtr v1 = MustSwap(store_.get(), Claim(key, nullptr, "r1"));
  const ShardRecordPtr v2 = MustSwap(store_.get(), Commit(key, v1, "r2"));
  // Recovery writes tables; after opening once more nothing of them is in memory.
  Open(RocksDbOptions());
  Open(RocksDbOptions());
  disk_->TakeTableReaders();
  for (const char* request_id : {"", "r1", "r2", "r3"}) {
    const auto state = Load(store_.get(), key, request_id);
    ASSERT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->record->SerializeAsString(), v2->SerializeAsString());
    EXPECT_EQ(state->applied.has_value(), request_id[0] == 'r' && request_id[1] != '3');
  }
  EXPECT_EQ(Load(store_.get(), KeyOf("t", 2), "r1")->record, nullptr);
  EXPECT_EQ((*LoadVersion(store_.get(), key, 1))->SerializeAsString(), v1->SerializeAsString());
  EXPECT_TRUE(absl::IsNotFound(LoadVersion(store_.get(), key, 3).status()));
  EXPECT_THAT(KeptVersions(store_.get(), key), ::testing::ElementsAre(2, 1));
  EXPECT_EQ(KindOf(Swap(store_.get(), Commit(key, v2, "r3"))), "committed");
  const std::set<std::thread::id> readers = disk_->TakeTableReaders();
  EXPECT_FALSE(readers.empty()) << "nothing was read from the disk, so this test shows nothing";
  EXPECT_EQ(readers.count(std::this_thread::get_id()), 0) << "the caller waited for the disk";
}

TEST_F(RocksDbDurabilityTest, FailedSyncIsUnknownAndEndsTheStore) {
  MustSwap(store_.get(), Create(KeyOf("t", 1), "r"));
  disk_->FailLogSyncsAfter(0);
  const SwapOutcome outcome = Swap(store_.get(), Create(KeyOf("t", 2), "r"));
  ASSERT_EQ(KindOf(outcome), "unknown");
  EXPECT_TRUE(absl::IsUnavailable(std::get<SwapUnknown>(outcome).status));
  EXPECT_FALSE(failure_.Take().ok());
  ExpectEverythingFails();
  // A disk that works again changes nothing: nobody knows what it lost.
  disk_->Heal();
  ExpectEverythingFails();
}

TEST_F(RocksDbDurabilityTest, FailedWriteIsUnknownAndEndsTheStore) {
  disk_->FailAppendsTo(".log");
  EXPECT_EQ(KindOf(Swap(store_.get(), Create(KeyOf("t", 1), "r"))), "unknown");
  ExpectEverythingFails();
  disk_->Heal();
  ExpectEverythingFails();
}

TEST_F(RocksDbDurabilityTest, StoreOpensAgainAfterAFailedSync) {
  MustSwap(store_.get(), Create(KeyOf("t", 1), "r"));
  disk_->FailLogSyncsAfter(0);
  EXPECT_EQ(KindOf(Swap(store_.get(), Create(KeyOf("t", 2), "r"))), "unknown");
  store_.reset();
  disk_->Heal();
  Open(RocksDbOptions());
  EXPECT_NE(Load(store_.get(), KeyOf("t", 1))->record, nullptr);
  EXPECT_EQ(KindOf(Swap(store_.get(), Create(KeyOf("t", 3), "r"))), "committed");
}

TEST_F(RocksDbDurabilityTest, OnlyWhatMayHaveLandedIsUnknown) {
  const ShardKey key = KeyOf("t", 1);
  disk_->HoldLogSyncs();
  auto good = Start(Create(KeyOf("t", 7), "r"));
  ASSERT_TRUE(disk_->AwaitHeldSync().ok()) << "the log was not synced";
  disk_->FailLogSyncsAfter(1);
  // The round that fails: a swap, a conflict with it, and a conflict with what is durable.
  auto landing = Start(Create(key, "r1"));
  auto loser = Start(Create(key, "r2"));
  disk_->ReleaseLogSyncs();
  EXPECT_EQ(KindOf(good->Take()), "committed");
  EXPECT_EQ(KindOf(landing->Take()), "unknown");
  EXPECT_EQ(KindOf(loser->Take()), "not applied");
  ExpectEverythingFails();
}

TEST_F(RocksDbDurabilityTest, WhatWaitsBehindAFailedWriteIsNotApplied) {
  disk_->HoldLogSyncs();
  disk_->FailLogSyncsAfter(0);
  auto in_flight = Start(Create(KeyOf("t", 1), "r"));
  ASSERT_TRUE(disk_->AwaitHeldSync().ok()) << "the log was not synced";
  std::vector<std::unique_ptr<Inbox<SwapOutcome>>> waiting;
  for (uint32_t i = 2; i < 20; ++i) waiting.push_back(Start(Create(KeyOf("t", i), "r")));
  disk_->ReleaseLogSyncs();
  EXPECT_EQ(KindOf(in_flight->Take()), "unknown");
  for (const auto& inbox : waiting) EXPECT_EQ(KindOf(inbox->Take()), "not applied");
}

TEST_F(RocksDbDurabilityTest, ErrorInTheBackgroundEndsTheStore) {
  RocksDbOptions options;
  options.write_buffer_bytes = size_t{256} << 10U;
  Open(std::move(options));
  disk_->FailAppendsTo(".sst");
  // Until so much is in memory that a table is written, which fails.
  for (uint32_t shard = 0; disk_->failed_append_count() == 0 && shard < 10'000; ++shard) {
    SwapRequest request = Create(KeyOf("t", shard), "r");
    auto next = std::make_shared<storage::v1::ShardRecord>(*request.next);
    (*next->mutable_manifest()->mutable_annotations())["x"] = std::string(10'000, 'x');
    request.next = next;
    Swap(store_.get(), std::move(request));
  }
  // No further write is needed to learn of it.
  const std::optional<absl::Status> failure = failure_.TakeWithin(absl::Seconds(30));
  ASSERT_TRUE(failure.has_value()) << "nobody was told that a table could not be written";
  EXPECT_FALSE(failure->ok());
  ExpectEverythingFails();
  disk_->Heal();
  ExpectEverythingFails();
}

// Writers claim shards of their own until the machine stops; gives back the last version of each
// shard that was answered as committed, and what was answered as unknown on top of it.
struct Promise {
  uint64_t committed = 0;
  bool unknown_after = false;
};
std::map<uint32_t, Promise> WriteUntilItStops(RocksDbStore* store, testing::FaultFileSystem* disk,
                                              int swaps_before_stop) {
  constexpr uint32_t kWriters = 8;
  base::Mutex mutex;
  std::map<uint32_t, Promise> promises;
  std::atomic<int> left = swaps_before_stop;
  std::vector<std::thread> writers;
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      const ShardKey key = KeyOf("t", writer);
      Promise promise;
      ShardRecordPtr head = Load(store, key)->record;
      if (head != nullptr) promise.committed = head->manifest().version();
      while (true) {
        SwapRequest request = Claim(key, head, absl::StrCat("r", promise.committed + 1));
        ShardRecordPtr next = request.next;
        const SwapOutcome outcome = Swap(store, std::move(request));
        if (!std::holds_alternative<SwapCommitted>(outcome)) {
          EXPECT_NE(KindOf(outcome), "conflict") << "nobody else writes shard " << writer;
          promise.unknown_after = std::holds_alternative<SwapUnknown>(outcome);
          break;
        }
        promise.committed = next->manifest().version();
        head = std::move(next);
        if (--left == 0) disk->Stop();
      }
      const base::MutexLock lock(&mutex);
      promises[writer] = promise;
    });
  }
  for (std::thread& writer : writers) writer.join();
  return promises;
}

TEST_F(RocksDbDurabilityTest, LosingPowerLosesNothingThatWasAnswered) {
  uint64_t revision_before = 0;
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE(absl::StrCat("round ", round));
    const auto promises = WriteUntilItStops(store_.get(), disk_.get(), 40 + 37 * round);
    const uint64_t answered = store_->Info().revision;
    EXPECT_GT(answered, revision_before);
    store_.reset();
    disk_->LoseUnsynced();
    disk_->Heal();
    Open(RocksDbOptions());
    EXPECT_GE(store_->Info().revision, answered);
    for (const auto& [shard, promise] : promises) {
      const auto state = Load(store_.get(), KeyOf("t", shard));
      ASSERT_TRUE(state.ok()) << state.status();
      const uint64_t version = state->record->manifest().version();
      EXPECT_GE(version, promise.committed) << "shard " << shard << " lost an answered claim";
      EXPECT_LE(version, promise.committed + (promise.unknown_after ? 1 : 0)) << "shard " << shard;
    }
    revision_before = store_->Info().revision;
  }
}

TEST_F(RocksDbDurabilityTest, LosingPowerRightAfterMakingTheStoreLeavesAStore) {
  MustSwap(store_.get(), Create(KeyOf("t", 1), "r"));
  const auto id = store_->Info().store_id;
  disk_->Stop();
  store_.reset();
  disk_->LoseUnsynced();
  disk_->Heal();
  Open(RocksDbOptions());
  EXPECT_EQ(store_->Info().store_id, id);
  EXPECT_NE(Load(store_.get(), KeyOf("t", 1))->record, nullptr);
}

}  // namespace
}  // namespace claimd::store
