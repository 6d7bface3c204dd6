#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"

#include "server/base/mutex.h"
#include "server/store/manifest_store.h"
#include "server/store/memory_store.h"
#include "server/store/shard_key.h"
#include "tests/conformance/store_conformance.h"

namespace claimd::store {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

class ConcurrencyConformanceTest : public StoreConformanceTest {};

INSTANTIATE_TEST_SUITE_P(Concurrency, ConcurrencyConformanceTest, ::testing::ValuesIn(AllStores()),
                         NameOf);

// Counts down to nothing.
class Countdown {
 public:
  explicit Countdown(int count) : left_(count) {}
  void Down() ABSL_LOCKS_EXCLUDED(mutex_) {
    const base::MutexLock lock(&mutex_);
    if (--left_ == 0) done_.NotifyAll();
  }
  void Wait() ABSL_LOCKS_EXCLUDED(mutex_) {
    const base::MutexLock lock(&mutex_);
    while (left_ > 0) done_.Wait(&mutex_);
  }

 private:
  base::Mutex mutex_;
  base::CondVar done_;
  int left_ ABSL_GUARDED_BY(mutex_);
};

// Submits swaps without waiting, and gives back their outcomes in the order of submission.
std::vector<SwapOutcome> SwapAll(ManifestStore* store, std::vector<SwapRequest> requests) {
  std::vector<SwapOutcome> outcomes(requests.size());
  Countdown countdown(static_cast<int>(requests.size()));
  for (size_t i = 0; i < requests.size(); ++i) {
    store->CompareAndSwap(std::move(requests[i]), [&, i](SwapOutcome outcome) {
      outcomes[i] = std::move(outcome);
      countdown.Down();
    });
  }
  countdown.Wait();
  return outcomes;
}

TEST_P(ConcurrencyConformanceTest, ManyThreadsOnOneShardWriteEachVersionOnce) {
  constexpr int kThreads = 16;
  constexpr int kSwapsEach = 25;
  ManifestStore* store = Open({.history_versions = 1'000});
  const ShardKey key = KeyOf("t", 1);
  std::vector<std::vector<std::pair<uint64_t, uint64_t>>> won(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ShardRecordPtr head = Load(store, key)->record;
      for (int i = 0; i < kSwapsEach;) {
        SwapRequest request = Claim(key, head, absl::StrCat("r-", t, "-", i));
        ShardRecordPtr next = request.next;
        const SwapOutcome outcome = Swap(store, std::move(request));
        if (const auto* committed = std::get_if<SwapCommitted>(&outcome)) {
          won[t].emplace_back(next->manifest().version(), committed->revision);
          head = next;
          ++i;
        } else {
          head = std::get<SwapConflict>(outcome).current.record;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::pair<uint64_t, uint64_t>> all;
  for (const auto& of_thread : won) all.insert(all.end(), of_thread.begin(), of_thread.end());
  std::sort(all.begin(), all.end());
  ASSERT_EQ(all.size(), kThreads * kSwapsEach);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].first, i + 1) << "a version was given twice or left out";
    EXPECT_EQ(all[i].second, i + 1) << "revisions do not follow the versions";
  }
  EXPECT_EQ(KeptVersions(store, key).size(), all.size());
  EXPECT_EQ(KeptClaims(store, key).size(), all.size() - 1);
}

TEST_P(ConcurrencyConformanceTest, ManyShardsInFlightAtOnce) {
  constexpr uint32_t kShards = 3'000;  // More than one round takes.
  ManifestStore* store = Open();
  std::vector<SwapRequest> requests;
  requests.reserve(kShards);
  for (uint32_t i = 0; i < kShards; ++i) requests.push_back(Claim(KeyOf("t", i), nullptr, "r"));
  std::vector<std::string> kinds;
  for (const SwapOutcome& outcome : SwapAll(store, std::move(requests))) {
    kinds.push_back(KindOf(outcome));
  }
  EXPECT_THAT(kinds, Each("committed"));
  EXPECT_EQ(store->Info().revision, kShards);
  for (uint32_t i = 0; i < kShards; i += 97) {
    EXPECT_EQ(Load(store, KeyOf("t", i))->record->manifest().version(), 1);
  }
}

TEST_P(ConcurrencyConformanceTest, SwapsInFlightSeeThoseBeforeThem) {
  ManifestStore* store = Open({.history_versions = 4, .claim_history = 3});
  const ShardKey key = KeyOf("t", 1);
  std::vector<SwapRequest> requests;
  std::vector<std::string> ids;
  ShardRecordPtr head;
  for (int i = 1; i <= 50; ++i) {
    ids.push_back(absl::StrCat("r", i));
    requests.push_back(Claim(key, head, ids.back()));
    head = requests.back().next;
  }
  std::vector<std::string> kinds;
  for (const SwapOutcome& outcome : SwapAll(store, std::move(requests))) {
    kinds.push_back(KindOf(outcome));
  }
  EXPECT_THAT(kinds, Each("committed"));
  EXPECT_THAT(KeptVersions(store, key), ElementsAre(50, 49, 48, 47));
  EXPECT_THAT(KeptClaims(store, key), ElementsAre(49, 48, 47));
  EXPECT_THAT(Remembered(store, key, ids), ElementsAre("r47", "r48", "r49", "r50"));
}

TEST_P(ConcurrencyConformanceTest, OfSwapsInFlightOnOneVersionTheFirstWins) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  std::vector<SwapRequest> requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back(Claim(key, nullptr, absl::StrCat("r", i)));
  }
  requests.push_back(Claim(key, nullptr, "r0"));  // The winner's, repeated.
  const std::vector<SwapOutcome> outcomes = SwapAll(store, std::move(requests));
  EXPECT_EQ(KindOf(outcomes[0]), "committed");
  for (size_t i = 1; i < outcomes.size(); ++i) {
    ASSERT_EQ(KindOf(outcomes[i]), "conflict") << i;
    const ShardState& current = std::get<SwapConflict>(outcomes[i]).current;
    ASSERT_NE(current.record, nullptr);
    EXPECT_EQ(current.record->manifest().claim().request_id(), "r0");
    EXPECT_EQ(current.applied.has_value(), i == 20) << "only the repeated request was applied";
  }
}

TEST_P(ConcurrencyConformanceTest, GuardsSeeSwapsInFlight) {
  ManifestStore* store = Open();
  const ShardKey guard = KeyOf("guard", 1);
  const ShardRecordPtr guarded = MustSwap(store, Create(guard, "g1"));
  const auto with_guard = [&guard](uint32_t shard, uint64_t version) {
    SwapRequest request = Create(KeyOf("t", shard), "r");
    request.guards = {{.key = guard, .expected_version = version}};
    return request;
  };
  std::vector<SwapRequest> requests;
  requests.push_back(with_guard(1, 1));
  requests.push_back(Commit(guard, guarded, "g2"));
  requests.push_back(with_guard(2, 1));
  requests.push_back(with_guard(3, 2));
  std::vector<std::string> kinds;
  for (const SwapOutcome& outcome : SwapAll(store, std::move(requests))) {
    kinds.push_back(KindOf(outcome));
  }
  EXPECT_THAT(kinds, ElementsAre("committed", "committed", "conflict", "committed"));
}

TEST_P(ConcurrencyConformanceTest, ReadsShowHeadAndRequestOfOneMoment) {
  ManifestStore* store = Open({.history_versions = 2});
  const ShardKey key = KeyOf("t", 1);
  MustSwap(store, Create(key, "r1"));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    ShardRecordPtr head = Load(store, key)->record;
    for (uint64_t version = 2; version <= 300; ++version) {
      head = MustSwap(store, Commit(key, head, absl::StrCat("r", version)));
    }
    stop = true;
  });
  uint64_t last = 0;
  while (!stop) {
    const auto state = Load(store, key, absl::StrCat("r", last + 1));
    ASSERT_TRUE(state.ok()) << state.status();
    const uint64_t version = state->record->manifest().version();
    EXPECT_GE(version, last) << "a read went back";
    // Remembered exactly while its version is kept.
    const bool kept = version == last + 1 || version == last + 2;
    EXPECT_EQ(state->applied.has_value(), kept) << "request " << last + 1 << " at " << version;
    last = version;
  }
  writer.join();
}

TEST_P(ConcurrencyConformanceTest, EveryCallbackRunsOnce) {
  constexpr size_t kThreads = 4;
  constexpr size_t kRounds = 50;
  constexpr size_t kCalls = 6;
  ManifestStore* store = Open();
  std::vector<std::atomic<int>> runs(kThreads * kRounds * kCalls);
  Countdown countdown(static_cast<int>(runs.size()));
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < kRounds; ++i) {
        const ShardKey key = KeyOf("t", static_cast<uint32_t>(i));
        std::atomic<int>* run = &runs[(t * kRounds + i) * kCalls];
        const auto once = [&countdown](std::atomic<int>* counter) {
          return [&countdown, counter](const auto& /*answer*/) {
            ++*counter;
            countdown.Down();
          };
        };
        store->CompareAndSwap(Create(key, absl::StrCat("r", t)), once(run));
        store->Load(key, "r0", once(run + 1));
        store->LoadVersion(key, 1, once(run + 2));
        store->List({.table = "t"}, once(run + 3));
        store->ListVersions({.key = key}, once(run + 4));
        store->ListClaims({.key = key}, once(run + 5));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  countdown.Wait();
  Close();
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 1);
}

TEST_P(ConcurrencyConformanceTest, ClosingAnswersAllThatIsInFlight) {
  constexpr uint32_t kCalls = 500;
  ManifestStore* store = Open();
  std::atomic<uint32_t> committed = 0;
  std::atomic<uint32_t> answered = 0;
  for (uint32_t i = 0; i < kCalls; ++i) {
    store->CompareAndSwap(Create(KeyOf("t", i), "r"), [&](const SwapOutcome& outcome) {
      if (std::holds_alternative<SwapCommitted>(outcome)) ++committed;
      ++answered;
    });
    store->List({.table = "t", .results_max = 1}, [&](const auto& /*page*/) { ++answered; });
  }
  Close();
  EXPECT_EQ(answered, 2 * kCalls);
  if (!GetParam().durable) return;
  store = Open();
  EXPECT_EQ(store->Info().revision, committed) << "what was answered as committed must be there";
}

// A random swap on one of a few shards, mostly right, sometimes stale.
SwapRequest RandomSwap(ManifestStore* model, std::mt19937* random, int number) {
  const ShardKey key = KeyOf("t", (*random)() % 3);
  const std::string id = absl::StrCat("r", (*random)() % 8 == 0 ? number / 2 : number);
  ShardRecordPtr head = Load(model, key)->record;
  if (head == nullptr) {
    return (*random)() % 2 == 0 ? Claim(key, nullptr, id) : Import(key, 1 + (*random)() % 9, id);
  }
  if (head->manifest().status() == v1::SHARD_STATUS_DROPPED) return Recreate(key, head, id);
  if ((*random)() % 8 == 0) {
    const auto older = LoadVersion(model, key, head->manifest().version() - 1);
    if (older.ok()) return Commit(key, *older, id);
  }
  SwapRequest request;
  switch ((*random)() % 12) {
    case 0:
      request = Drop(key, head, id);
      break;
    case 1:
    case 2:
      request = Release(key, head, id);
      break;
    case 3:
    case 4:
      request = Remember(key, head, id, 3);
      break;
    case 5:
    case 6:
    case 7:
      request = Commit(key, head, id);
      break;
    default:
      request = Claim(key, head, id);
  }
  if ((*random)() % 6 == 0) {
    request.guards = {{.key = KeyOf("t", (*random)() % 3), .expected_version = (*random)() % 9}};
  }
  return request;
}

void ExpectSameOutcome(const SwapOutcome& actual, const SwapOutcome& expected) {
  ASSERT_EQ(KindOf(actual), KindOf(expected));
  if (const auto* committed = std::get_if<SwapCommitted>(&expected)) {
    EXPECT_EQ(std::get<SwapCommitted>(actual).revision, committed->revision);
  }
  if (const auto* conflict = std::get_if<SwapConflict>(&expected)) {
    const ShardState& current = std::get<SwapConflict>(actual).current;
    ASSERT_EQ(current.record == nullptr, conflict->current.record == nullptr);
    if (current.record != nullptr) {
      EXPECT_EQ(current.record->SerializeAsString(), conflict->current.record->SerializeAsString());
    }
    ASSERT_EQ(current.applied.has_value(), conflict->current.applied.has_value());
    if (current.applied.has_value()) {
      EXPECT_EQ(current.applied->SerializeAsString(),
                conflict->current.applied->SerializeAsString());
    }
  }
}

// Random swaps, some waited for and some not, end like the same swaps one after the other on the
// simplest store.
TEST_P(ConcurrencyConformanceTest, RandomSwapsEndLikeThoseOfTheMemoryStore) {
  const RetentionOptions retention{.history_versions = 3, .claim_history = 2};
  ManifestStore* store = Open(retention);
  MemoryStore model(retention);
  constexpr uint32_t kSeed = 20'240'229;
  std::mt19937 random(kSeed);  // NOLINT(cert-msc51-cpp): the same run each time
  std::vector<std::string> ids;
  for (int round = 0, number = 0; round < 150; ++round) {
    std::vector<SwapRequest> requests;
    std::vector<SwapOutcome> expected;
    const size_t in_flight = 1 + random() % 12;
    while (requests.size() < in_flight) {
      ids.push_back(absl::StrCat("r", ++number));
      requests.push_back(RandomSwap(&model, &random, number));
      SwapRequest copy = requests.back();
      expected.push_back(Swap(&model, std::move(copy)));
    }
    const std::vector<SwapOutcome> actual = SwapAll(store, std::move(requests));
    for (size_t i = 0; i < actual.size(); ++i) {
      SCOPED_TRACE(absl::StrCat("round ", round, " swap ", i, " of ", in_flight));
      ExpectSameOutcome(actual[i], expected[i]);
    }
    if (HasFailure()) return;
  }
  for (uint32_t shard = 0; shard < 3; ++shard) {
    const ShardKey key = KeyOf("t", shard);
    EXPECT_EQ(KeptVersions(store, key), KeptVersions(&model, key)) << shard;
    EXPECT_EQ(KeptClaims(store, key), KeptClaims(&model, key)) << shard;
    EXPECT_EQ(Remembered(store, key, ids), Remembered(&model, key, ids)) << shard;
  }
}

}  // namespace
}  // namespace claimd::store
