#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/client.h"
#include "tests/client/tcp_proxy.h"
#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/server_process.h"

// The library against the real server.
namespace claimd {
namespace {

using ::claimd::e2e::FreshShard;
using ::claimd::e2e::RandomUuid;
using ::claimd::e2e::ServerProcess;
using ::claimd::e2e::Shard;
using ::claimd::testing::TcpProxy;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

ClientOptions OptionsFor(const std::string& target, const std::string& claimant) {
  ClientOptions options;
  options.targets = {target};
  options.claimant = claimant;
  // A slow machine must not make a test fail.
  options.retry.total_budget = absl::Minutes(5);
  options.retry.attempt_timeout = absl::Minutes(1);
  return options;
}

Client ConnectTo(const std::string& target, const std::string& claimant = "a") {
  return Client::Connect(OptionsFor(target, claimant)).value();
}

int PortOf(const std::string& address) {
  int port = 0;
  if (!absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) abort();
  return port;
}

class RealServerTest : public ::testing::Test {
 protected:
  void StartServer(std::vector<std::string> flags = {}) {
    ServerProcess::Options options;
    options.flags = std::move(flags);
    auto server = ServerProcess::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string target() const { return server_->address(); }

  std::unique_ptr<ServerProcess> server_;
};

// Every epoch that was granted was seen by the caller that asked for it, although most answers'
// connections were reset at some moment or other.
TEST_F(RealServerTest, NoEpochIsLostOrSkippedThroughConnectionsThatDie) {
  StartServer();
  constexpr int kThreads = 8;
  constexpr int kShardsPerThread = 5;
  constexpr int kClaimsPerShard = 25;
  std::mt19937 random(20'240'601);  // NOLINT(cert-msc51-cpp): the same run each time.
  std::uniform_int_distribution<size_t> bytes(300, 4'000);
  TcpProxy proxy(
      {.server_port = PortOf(target()), .bytes_before_reset = [&] { return bytes(random); }});

  std::vector<std::vector<Shard>> shards(kThreads);
  std::vector<std::vector<std::vector<uint64_t>>> seen(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kShardsPerThread; ++i) shards[t].push_back(FreshShard());
    seen[t].resize(kShardsPerThread);
    threads.emplace_back([&, t] {
      const Client client = ConnectTo(proxy.target());
      for (int round = 0; round < kClaimsPerShard; ++round) {
        for (int i = 0; i < kShardsPerThread; ++i) {
          const auto claim = client.Claim(shards[t][i].table, shards[t][i].id, 1);
          ASSERT_TRUE(claim.ok()) << claim.status();
          seen[t][i].push_back(claim->epoch());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_THAT(proxy.connections(), Gt(100)) << "the proxy did not reset enough to prove anything";
  const Client direct = ConnectTo(target());
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kShardsPerThread; ++i) {
      ASSERT_THAT(seen[t][i], SizeIs(kClaimsPerShard));
      for (uint64_t n = 0; n < kClaimsPerShard; ++n) EXPECT_EQ(seen[t][i][n], n + 1);
      const auto stored = direct.Get(shards[t][i].table, shards[t][i].id);
      ASSERT_TRUE(stored.ok()) << stored.status();
      EXPECT_EQ(stored->writer_epoch, uint64_t{kClaimsPerShard});
      EXPECT_EQ(stored->version, uint64_t{kClaimsPerShard});
    }
  }
}

TEST_F(RealServerTest, CommitsFromManyThreadsAllLandWithoutGap) {
  StartServer({"--history-versions=1000"});
  constexpr int kThreads = 8;
  constexpr int kCommits = 20;
  const Shard shard = FreshShard();
  const Client client = ConnectTo(target());
  ShardClaim claim = client.Claim(shard.table, shard.id, 1).value();
  // A job that commits under the same epoch without a claim of its own, so that conflicts happen.
  ShardClaim job = ConnectTo(target()).Attach(shard.table, shard.id, claim.epoch()).value();

  std::vector<std::vector<uint64_t>> versions(kThreads + 1);
  const auto commit = [&versions](ShardClaim* through, int t) {
    for (int i = 0; i < kCommits; ++i) {
      const auto committed = through->Commit([t, i](ShardManifest* manifest) {
        manifest->annotations[absl::StrCat(t, "/", i)] = "";
        return absl::OkStatus();
      });
      ASSERT_TRUE(committed.ok()) << committed.status();
      versions[static_cast<size_t>(t)].push_back(committed->version);
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(commit, &claim, t);
  threads.emplace_back(commit, &job, kThreads);
  for (std::thread& thread : threads) thread.join();

  constexpr size_t kTotal = size_t{kThreads + 1} * kCommits;
  std::set<uint64_t> distinct;
  for (const auto& of_thread : versions) distinct.insert(of_thread.begin(), of_thread.end());
  ASSERT_THAT(distinct, SizeIs(kTotal));
  EXPECT_EQ(*distinct.begin(), 2U);
  EXPECT_EQ(*distinct.rbegin(), kTotal + 1);
  const ShardManifest stored = client.Get(shard.table, shard.id).value();
  EXPECT_EQ(stored.version, kTotal + 1);
  EXPECT_THAT(stored.annotations, SizeIs(kTotal));
  EXPECT_THAT(client.Versions(shard.table, shard.id).ToVector().value(), SizeIs(kTotal + 1));
  EXPECT_TRUE(claim.CheckFence().ok());
}

TEST_F(RealServerTest, ACommitThroughConnectionsThatDieIsAppliedOnce) {
  StartServer();
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same run each time.
  std::uniform_int_distribution<size_t> bytes(300, 3'000);
  TcpProxy proxy(
      {.server_port = PortOf(target()), .bytes_before_reset = [&] { return bytes(random); }});
  const Shard shard = FreshShard();
  ShardClaim claim = ConnectTo(proxy.target()).Claim(shard.table, shard.id, 1).value();
  constexpr uint64_t kCommits = 100;
  for (uint64_t i = 0; i < kCommits; ++i) {
    const auto committed = claim.Commit([](ShardManifest* manifest) {
      ++manifest->wal_entry_position_last_seen;
      return absl::OkStatus();
    });
    ASSERT_TRUE(committed.ok()) << committed.status();
  }
  const ShardManifest stored = ConnectTo(target()).Get(shard.table, shard.id).value();
  EXPECT_EQ(stored.wal_entry_position_last_seen, kCommits);
  EXPECT_EQ(stored.version, kCommits + 1);
  EXPECT_THAT(proxy.connections(), Gt(10));
}

TEST_F(RealServerTest, ARestartUnderLiveClaimsIsRiddenOut) {
  StartServer();
  // A restarted server has another port; the proxy keeps the address.
  TcpProxy proxy({.server_port = PortOf(target()), .bytes_before_reset = nullptr});
  const Shard shard = FreshShard();
  ShardClaim claim = ConnectTo(proxy.target()).Claim(shard.table, shard.id, 1).value();
  server_->Kill9();
  absl::StatusOr<ShardManifest> committed = absl::UnknownError("");
  std::thread writer([&] {
    committed = claim.Commit([](ShardManifest* manifest) {
      manifest->annotations["after"] = "crash";
      return absl::OkStatus();
    });
  });
  const absl::Status restarted = server_->Restart();
  proxy.set_server_port(PortOf(target()));
  writer.join();
  ASSERT_TRUE(restarted.ok()) << restarted;
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_EQ(committed->version, 2U);
  EXPECT_EQ(claim.epoch(), 1U);
  EXPECT_TRUE(claim.CheckFence().ok());

  ASSERT_TRUE(server_->Stop().ok());
  ASSERT_TRUE(server_->Restart().ok());
  proxy.set_server_port(PortOf(target()));
  EXPECT_TRUE(claim.CheckFence().ok());
}

TEST_F(RealServerTest, AServerThatStaysAwayIsNamedWhenTheBudgetIsOver) {
  StartServer();
  const Shard shard = FreshShard();
  ShardClaim claim = ConnectTo(target()).Claim(shard.table, shard.id, 1).value();
  ASSERT_TRUE(server_->Stop().ok());
  CallOptions call;
  call.timeout = absl::Milliseconds(500);
  const absl::Status status = claim.CheckFence(call);
  EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("gave up after"));
  EXPECT_FALSE(claim.fenced());
}

TEST_F(RealServerTest, TheNewestClaimFencesTheOlderOne) {
  StartServer();
  const Shard shard = FreshShard();
  ShardClaim older = ConnectTo(target(), "older").Claim(shard.table, shard.id, 1).value();
  ShardClaim newer = ConnectTo(target(), "newer").Claim(shard.table, shard.id, 1).value();
  EXPECT_TRUE(older.created());
  EXPECT_FALSE(newer.created());
  EXPECT_EQ(newer.previous_claim()->claimant, "older");
  const auto details = ErrorDetails::From(older.CheckFence());
  EXPECT_EQ(details.reason, ErrorReason::kWriterFenced);
  EXPECT_EQ(details.writer_epoch, 1U);
  EXPECT_EQ(details.stored_writer_epoch, 2U);
  EXPECT_EQ(details.claimant, "newer");
  EXPECT_TRUE(older.fenced());
  EXPECT_TRUE(newer.CheckFence().ok());
}

TEST_F(RealServerTest, ASpecMismatchNamesBothSpecs) {
  StartServer();
  const Shard shard = FreshShard();
  const Client client = ConnectTo(target());
  ASSERT_TRUE(client.Claim(shard.table, shard.id, 1).ok());
  const auto details =
      ErrorDetails::From(client.Claim(shard.table, shard.id, std::nullopt).status());
  EXPECT_EQ(details.reason, ErrorReason::kShardSpecMismatch);
  EXPECT_EQ(details.incoming_shard_spec_id, 0U);
  EXPECT_EQ(details.stored_shard_spec_id, 1U);
  EXPECT_EQ(details.shard_id, shard.id);
}

TEST_F(RealServerTest, ManyShardsAreClaimedAndListed) {
  StartServer();
  const Client client = ConnectTo(target());
  std::vector<ClaimTarget> targets(1'500);
  std::set<std::string> ids;
  for (ClaimTarget& shard : targets) {
    shard.table = "many";
    shard.shard_id = RandomUuid();
    ids.insert(shard.shard_id);
  }
  for (const auto& claim : client.ClaimAll(targets)) ASSERT_TRUE(claim.ok()) << claim.status();
  ListOptions list;
  list.page_size = 400;
  std::set<std::string> listed;
  for (const auto& shard : client.List("many", list)) {
    ASSERT_TRUE(shard.ok()) << shard.status();
    EXPECT_TRUE(listed.insert(shard->shard_id).second);
  }
  EXPECT_EQ(listed, ids);
}

TEST_F(RealServerTest, AShardsLifeFromInitializeToDrop) {
  StartServer();
  const Shard shard = FreshShard();
  const Client client = ConnectTo(target());
  InitializeOptions identity;
  identity.shard_field_values = {{"bucket", std::string("\0\xff", 2)}};
  const ShardManifest made = client.Initialize(shard.table, shard.id, 3, identity).value();
  EXPECT_EQ(made.version, 1U);
  EXPECT_EQ(made.writer_epoch, 0U);
  EXPECT_EQ(made.shard_field_values, identity.shard_field_values);
  ShardClaim claim = client.Claim(shard.table, shard.id, 3).value();
  EXPECT_EQ(client.CheckFence(shard.table, shard.id, 1).value().version, 2U);
  EXPECT_TRUE(claim.Release().ok());
  EXPECT_EQ(client.Seal(shard.table, shard.id).value().status, ShardStatus::kSealed);
  EXPECT_EQ(ErrorDetails::From(client.Claim(shard.table, shard.id, 3).status()).reason,
            ErrorReason::kShardSealed);
  EXPECT_EQ(client.Unseal(shard.table, shard.id).value().status, ShardStatus::kActive);
  EXPECT_EQ(ErrorDetails::From(client.Drop(shard.table, shard.id).status()).reason,
            ErrorReason::kShardNotSealed);
  ASSERT_TRUE(client.Seal(shard.table, shard.id).ok());
  EXPECT_EQ(client.Get(shard.table, shard.id, 1).value().writer_epoch, 0U);
  EXPECT_EQ(client.Drop(shard.table, shard.id, 1).value().status, ShardStatus::kDropped);
  EXPECT_EQ(ErrorDetails::From(client.Get(shard.table, shard.id).status()).reason,
            ErrorReason::kShardNotFound);
  const auto claims = client.Claims(shard.table, shard.id).ToVector().value();
  ASSERT_THAT(claims, SizeIs(1));
  EXPECT_EQ(claims[0].claim.claimant, "a");
  EXPECT_EQ(claims[0].end_reason, ClaimEndReason::kReleased);
}

TEST_F(RealServerTest, ManifestsAreTakenOverAsTheyAre) {
  StartServer();
  const Shard shard = FreshShard();
  ShardManifest manifest;
  manifest.table = shard.table;
  manifest.shard_id = shard.id;
  manifest.version = 41;
  manifest.shard_spec_id = 1;
  manifest.writer_epoch = 7;
  manifest.current_generation = 2;
  manifest.sstables.push_back({1, "one", 5, {}, {}, ""});
  const Client client = ConnectTo(target());
  const auto taken = client.Import({manifest, manifest});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_THAT(*taken, ElementsAre(absl::OkStatus(), absl::OkStatus()));
  const ShardManifest stored = client.Get(shard.table, shard.id).value();
  EXPECT_EQ(stored.version, 41U);
  EXPECT_EQ(stored.sstables, manifest.sstables);
  EXPECT_EQ(client.Claim(shard.table, shard.id, 1).value().epoch(), 8U);
  manifest.sstables.clear();
  EXPECT_EQ(ErrorDetails::From(client.Import({manifest}).value().at(0)).reason,
            ErrorReason::kShardExists);
}

TEST_F(RealServerTest, TheServerTellsAboutItself) {
  StartServer();
  const Client client = ConnectTo(target());
  const ServerInfo info = client.GetServerInfo().value();
  EXPECT_EQ(info.store_kind, "rocksdb");
  EXPECT_THAT(info.max_manifest_bytes, Gt(0U));
  EXPECT_EQ(client.CheckHealth().value(), Health::kServing);
  EXPECT_EQ(client.CheckHealth("claimd.v1.ShardArbiter").value(), Health::kServing);
  EXPECT_EQ(client.CheckHealth("no.such.Service").value(), Health::kServiceUnknown);
}

}  // namespace
}  // namespace claimd
