#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "server/base/mutex.h"
#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/server_process.h"
#include "tests/e2e/harness/state_fingerprint.h"

// Nothing that was answered is lost by kill -9 at any moment.
namespace claimd::e2e {
namespace {

constexpr int kCycles = 8;
constexpr int kWriters = 8;
constexpr int kOwnShards = 3;

// What clients were answered, over all lives of the server. Thread-safe.
class Answers {
 public:
  void Granted(const v1::ShardManifest& manifest) {
    const base::MutexLock lock(&mutex_);
    const bool fresh = epochs_[manifest.shard_id()].insert(manifest.writer_epoch()).second;
    if (!fresh) repeated_.push_back(absl::StrCat("epoch ", manifest.ShortDebugString()));
    RecordLocked(manifest);
  }
  void Committed(const v1::ShardManifest& manifest) {
    const base::MutexLock lock(&mutex_);
    RecordLocked(manifest);
  }
  // Blocks until this many answers came in all.
  void WaitForCount(int count) {
    const base::MutexLock lock(&mutex_);
    while (count_ < count) changed_.Wait(&mutex_);
  }
  int count() {
    const base::MutexLock lock(&mutex_);
    return count_;
  }
  // Epochs or versions that were answered twice with different content.
  std::vector<std::string> repeated() {
    const base::MutexLock lock(&mutex_);
    return repeated_;
  }
  // Bytes of each answered version, by shard.
  std::map<std::string, std::map<uint64_t, std::string>> versions() {
    const base::MutexLock lock(&mutex_);
    return versions_;
  }
  std::map<std::string, std::set<uint64_t>> epochs() {
    const base::MutexLock lock(&mutex_);
    return epochs_;
  }

 private:
  void RecordLocked(const v1::ShardManifest& manifest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto [kept, fresh] =
        versions_[manifest.shard_id()].emplace(manifest.version(), Bytes(manifest));
    if (!fresh) repeated_.push_back(absl::StrCat("version ", manifest.ShortDebugString()));
    ++count_;
    changed_.NotifyAll();
  }

  base::Mutex mutex_;
  base::CondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> repeated_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::map<uint64_t, std::string>> versions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::set<uint64_t>> epochs_ ABSL_GUARDED_BY(mutex_);
};

// Claims and commits in turn on shards of its own and on one that all share, until the server is
// gone. Answers the claim whose outcome it does not know, if that is how it ended.
class Writer {
 public:
  Writer(int number, const Shard& shared, Answers* answers) : answers_(answers) {
    for (int i = 0; i < kOwnShards; ++i) shards_.push_back(FreshShard("durable"));
    shards_.push_back(shared);
    name_ = absl::StrCat("writer-", number);
  }

  void Run(const std::string& address) {
    const Client client(address);
    for (size_t i = 0;; ++i) {
      const Shard& shard = shards_[i % shards_.size()];
      auto claim = ClaimOf(shard, name_, 1);
      claim.set_request_id(RandomUuid());
      const auto granted = client.Call(claim);
      if (granted.ok()) answers_->Granted(granted.response.manifest());
      if (IsGone(granted.status)) {
        in_doubt_ = claim;
        return;
      }
      if (!granted.ok()) continue;
      const auto committed = client.Call(FlushAfter(granted.response.manifest()));
      if (committed.ok()) answers_->Committed(committed.response.manifest());
      if (IsGone(committed.status)) {
        in_doubt_.Clear();
        return;
      }
    }
  }

  // Repeats the claim in doubt twice: both answers must agree.
  void Settle(const Client& client) {
    if (in_doubt_.request_id().empty()) return;
    const auto first = client.Call(in_doubt_);
    const auto second = client.Call(in_doubt_);
    EXPECT_EQ(first.status.error_code(), second.status.error_code()) << Describe(first.status);
    if (!first.ok()) {
      // On the shared shard somebody else may have claimed behind it.
      EXPECT_EQ(Reason(first.status), "CLAIM_SUPERSEDED") << Describe(first.status);
    } else {
      EXPECT_EQ(Bytes(first.response), Bytes(second.response));
      answers_->Granted(first.response.manifest());
    }
    in_doubt_.Clear();
  }

 private:
  static bool IsGone(const grpc::Status& status) {
    return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
           status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  }

  std::vector<Shard> shards_;
  std::string name_;
  Answers* const answers_;
  v1::ClaimEpochRequest in_doubt_;
};

void ExpectEverythingAnsweredIsThere(const Client& client, Answers* answers) {
  for (const auto& [shard_id, answered] : answers->versions()) {
    const Shard shard{"durable", shard_id};
    const auto head = client.Get(shard);
    ASSERT_TRUE(IsOk(head.status)) << shard_id << " was answered, and is gone";
    EXPECT_GE(head.response.manifest().version(), answered.rbegin()->first) << shard_id;
    const auto epochs = answers->epochs();
    EXPECT_GE(head.response.manifest().writer_epoch(), *epochs.at(shard_id).rbegin()) << shard_id;

    uint64_t expected = head.response.manifest().version();
    for (const v1::ShardManifest& kept : AllVersions(client, shard)) {
      EXPECT_EQ(kept.version(), expected--) << shard_id << " has a gap";
      const auto found = answered.find(kept.version());
      if (found != answered.end()) {
        EXPECT_EQ(Bytes(kept), found->second) << shard_id << " changed version " << kept.version();
      }
    }
  }
}

TEST(DurabilityTest, KillAtAnyMomentLosesNothingThatWasAnswered) {
  auto started = ServerProcess::Start();
  ASSERT_TRUE(started.ok()) << started.status();
  ServerProcess& server = **started;
  const Shard shared = FreshShard("durable");
  Answers answers;
  std::vector<std::unique_ptr<Writer>> writers;
  writers.reserve(kWriters);
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(std::make_unique<Writer>(i, shared, &answers));
  }

  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> moment(1, 400);
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    SCOPED_TRACE(absl::StrCat("cycle ", cycle));
    std::vector<std::thread> threads;
    threads.reserve(writers.size());
    for (const auto& writer : writers) {
      threads.emplace_back([&] { writer->Run(server.address()); });
    }
    answers.WaitForCount(answers.count() + moment(random));
    server.Kill9();
    for (std::thread& thread : threads) thread.join();

    const absl::Status restarted = server.Restart();
    ASSERT_TRUE(restarted.ok()) << restarted;
    const Client client(server.address());
    ASSERT_NO_FATAL_FAILURE(ExpectEverythingAnsweredIsThere(client, &answers));
    for (const auto& writer : writers) writer->Settle(client);
    EXPECT_TRUE(answers.repeated().empty()) << answers.repeated().front();
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(server.Stop()->code, 0);
}

TEST(DurabilityTest, CleanStopKeepsEverything) {
  auto started = ServerProcess::Start();
  ASSERT_TRUE(started.ok()) << started.status();
  ServerProcess& server = **started;
  const Shard shard = FreshShard();
  StateFingerprint before;
  {
    const Client client(server.address());
    const auto claim = client.Claim(shard, "writer");
    ASSERT_TRUE(IsOk(client.Call(FlushAfter(claim.response.manifest())).status));
    ASSERT_TRUE(IsOk(client.Claim(shard, "second").status));
    before = FingerprintOf(client, shard);
  }
  EXPECT_EQ(server.Stop()->code, 0);
  ASSERT_TRUE(server.Restart().ok());
  EXPECT_EQ(FingerprintOf(Client(server.address()), shard), before);
}

}  // namespace
}  // namespace claimd::e2e
