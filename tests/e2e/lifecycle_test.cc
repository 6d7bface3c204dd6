#include <cstdint>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/state_fingerprint.h"

// Seal, unseal, drop and re-creation.
namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;

class LifecycleTest : public SharedServerTest {
 protected:
  // A shard whose first life ended at epoch 3 and version 5.
  static Shard DroppedShard() {
    Shard shard = FreshShard();
    for (const char* claimant : {"a", "b", "c"}) {
      EXPECT_TRUE(IsOk(client().Claim(shard, claimant, 1).status));
    }
    EXPECT_TRUE(IsOk(client().Seal(shard).status));
    EXPECT_TRUE(IsOk(client().Drop(shard).status));
    return shard;
  }
};

TEST_F(LifecycleTest, SealedShardRefusesClaimsAndLetsTheIncumbentCommit) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "incumbent").status));
  const auto sealed = client().Seal(shard);
  ASSERT_TRUE(IsOk(sealed.status));
  EXPECT_EQ(sealed.response.manifest().status(), v1::SHARD_STATUS_SEALED);
  EXPECT_EQ(sealed.response.manifest().version(), 2U);
  EXPECT_EQ(sealed.response.manifest().claim().claimant(), "incumbent");

  const auto commit = client().Call(FlushAfter(sealed.response.manifest()));
  ASSERT_TRUE(IsOk(commit.status));
  EXPECT_EQ(commit.response.manifest().status(), v1::SHARD_STATUS_SEALED);
  EXPECT_TRUE(IsOk(client().CheckFence(shard, 1).status));

  const NothingMoves guard(client(), shard);
  for (const auto mode :
       {v1::CLAIM_MODE_UNSPECIFIED, v1::CLAIM_MODE_PREEMPT, v1::CLAIM_MODE_IF_FREE}) {
    auto claim = ClaimOf(shard, "newcomer");
    claim.set_mode(mode);
    const auto refused = client().Call(claim);
    EXPECT_TRUE(Refused(refused.status, StatusCode::FAILED_PRECONDITION, "SHARD_SEALED", shard));
    EXPECT_EQ(Metadata(refused.status)["state"], "SHARD_STATUS_SEALED");
  }
}

TEST_F(LifecycleTest, CommitCannotTakeTheSealAway) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "incumbent");
  const auto sealed = client().Seal(shard);
  const NothingMoves guard(client(), shard);
  auto commit = CommitAfter(sealed.response.manifest());
  commit.mutable_manifest()->set_status(v1::SHARD_STATUS_ACTIVE);
  EXPECT_TRUE(Refused(client().Call(commit).status, StatusCode::INVALID_ARGUMENT,
                      "INVALID_MANIFEST", shard));
}

TEST_F(LifecycleTest, SealedShardCanBeReleased) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "incumbent").status));
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  auto release = For<v1::ReleaseEpochRequest>(shard);
  release.set_writer_epoch(1);
  const auto released = client().Call(release);
  ASSERT_TRUE(IsOk(released.status));
  EXPECT_EQ(released.response.manifest().status(), v1::SHARD_STATUS_SEALED);
}

TEST_F(LifecycleTest, UnsealedShardCanBeClaimedAgain) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "first").status));
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  const auto unsealed = client().Unseal(shard);
  ASSERT_TRUE(IsOk(unsealed.status));
  EXPECT_EQ(unsealed.response.manifest().status(), v1::SHARD_STATUS_ACTIVE);
  EXPECT_EQ(unsealed.response.manifest().claim().claimant(), "first");
  EXPECT_EQ(client().Claim(shard, "second").response.writer_epoch(), 2U);
}

TEST_F(LifecycleTest, SealingASealedAndUnsealingAnActiveShardKeepTheVersion) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  EXPECT_EQ(client().Unseal(shard).response.manifest().version(), 1U);
  EXPECT_EQ(client().Seal(shard).response.manifest().version(), 2U);
  const auto again = client().Seal(shard);
  EXPECT_TRUE(IsOk(again.status));
  EXPECT_EQ(again.response.manifest().version(), 2U);
}

TEST_F(LifecycleTest, UnknownShardCannotBeSealedUnsealedOrDropped) {
  const Shard shard = FreshShard();
  const NothingMoves guard(client(), shard);
  EXPECT_TRUE(
      Refused(client().Seal(shard).status, StatusCode::NOT_FOUND, "SHARD_NOT_FOUND", shard));
  EXPECT_TRUE(
      Refused(client().Unseal(shard).status, StatusCode::NOT_FOUND, "SHARD_NOT_FOUND", shard));
  EXPECT_TRUE(
      Refused(client().Drop(shard).status, StatusCode::NOT_FOUND, "SHARD_NOT_FOUND", shard));
}

TEST_F(LifecycleTest, OnlyASealedShardCanBeDropped) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  const NothingMoves guard(client(), shard);
  const auto refused = client().Drop(shard);
  EXPECT_TRUE(Refused(refused.status, StatusCode::FAILED_PRECONDITION, "SHARD_NOT_SEALED", shard));
  EXPECT_EQ(Metadata(refused.status)["state"], "SHARD_STATUS_ACTIVE");
}

TEST_F(LifecycleTest, DropChecksTheExpectedEpoch) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  auto drop = For<v1::DropShardRequest>(shard);
  for (const uint64_t wrong : {uint64_t{0}, uint64_t{2}}) {
    const NothingMoves guard(client(), shard);
    drop.set_expected_epoch(wrong);
    EXPECT_TRUE(Refused(client().Call(drop).status, StatusCode::ABORTED, "EPOCH_MISMATCH", shard));
  }
  drop.set_expected_epoch(1);
  EXPECT_TRUE(IsOk(client().Call(drop).status));
}

TEST_F(LifecycleTest, DropLeavesATombstoneWithVersionAndEpoch) {
  const Shard shard = FreshShard();
  auto claim = ClaimOf(shard, "writer", 1);
  (*claim.mutable_shard_field_values())["bucket"] = "1";
  ASSERT_TRUE(IsOk(client().Call(claim).status));
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  const auto dropped = client().Drop(shard);
  ASSERT_TRUE(IsOk(dropped.status));
  const v1::ShardManifest& tombstone = dropped.response.manifest();
  EXPECT_EQ(tombstone.status(), v1::SHARD_STATUS_DROPPED);
  EXPECT_EQ(tombstone.version(), 3U);
  EXPECT_EQ(tombstone.writer_epoch(), 1U);
  EXPECT_EQ(tombstone.table(), shard.table);
  EXPECT_EQ(tombstone.shard_id(), shard.id);
  EXPECT_FALSE(tombstone.has_claim());
}

TEST_F(LifecycleTest, DroppedShardIsGoneForEverythingButItsClaims) {
  const Shard shard = DroppedShard();
  const NothingMoves guard(client(), shard);
  const auto expect_gone = [&](const grpc::Status& status) {
    EXPECT_TRUE(Refused(status, StatusCode::NOT_FOUND, "SHARD_NOT_FOUND", shard));
  };
  expect_gone(client().Seal(shard).status);
  expect_gone(client().Unseal(shard).status);
  expect_gone(client().Drop(shard).status);
  expect_gone(client().Get(shard).status);
  expect_gone(client().CheckFence(shard, 3).status);
  v1::ShardManifest manifest;
  manifest.set_table(shard.table);
  manifest.set_shard_id(shard.id);
  manifest.set_version(5);
  manifest.set_writer_epoch(3);
  expect_gone(client().Call(CommitAfter(manifest)).status);
  auto release = For<v1::ReleaseEpochRequest>(shard);
  release.set_writer_epoch(3);
  expect_gone(client().Call(release).status);

  const auto claims = AllClaims(client(), shard);
  ASSERT_EQ(claims.size(), 3U);
  EXPECT_EQ(claims[0].claim().claimant(), "c");
  EXPECT_EQ(claims[0].end_reason(), v1::CLAIM_END_REASON_DROPPED);
  EXPECT_EQ(claims[1].end_reason(), v1::CLAIM_END_REASON_SUPERSEDED);
}

TEST_F(LifecycleTest, ClaimMakesADroppedShardAnewUnderAnotherSpec) {
  const Shard shard = DroppedShard();
  const auto claim = client().Claim(shard, "second life", 2);
  ASSERT_TRUE(IsOk(claim.status));
  EXPECT_TRUE(claim.response.created());
  EXPECT_EQ(claim.response.writer_epoch(), 4U) << "epochs go on";
  EXPECT_EQ(claim.response.manifest().version(), 6U) << "versions go on";
  EXPECT_EQ(claim.response.manifest().shard_spec_id(), 2U);
  EXPECT_EQ(claim.response.manifest().current_generation(), 1U);
  EXPECT_EQ(claim.response.manifest().sstables_size(), 0);
  EXPECT_TRUE(Refused(client().Claim(shard, "old spec", 1).status, StatusCode::INVALID_ARGUMENT,
                      "SHARD_SPEC_MISMATCH", shard));
}

TEST_F(LifecycleTest, EveryEpochOfTheFirstLifeIsFencedInTheSecond) {
  const Shard claimed = DroppedShard();
  const auto claim = client().Claim(claimed, "second life");
  const Shard initialized = DroppedShard();
  const auto made = client().Call(For<v1::InitializeShardRequest>(initialized));
  ASSERT_TRUE(IsOk(made.status));
  EXPECT_EQ(made.response.manifest().version(), 6U);
  EXPECT_FALSE(made.response.manifest().has_claim());

  for (uint64_t epoch = 0; epoch <= 3; ++epoch) {
    EXPECT_TRUE(Refused(client().CheckFence(claimed, epoch).status, StatusCode::FAILED_PRECONDITION,
                        "WRITER_FENCED", claimed));
    EXPECT_TRUE(Refused(client().CheckFence(initialized, epoch).status,
                        StatusCode::FAILED_PRECONDITION, "WRITER_FENCED", initialized));
    auto commit = CommitAfter(claim.response.manifest());
    commit.set_writer_epoch(epoch);
    EXPECT_TRUE(Refused(client().Call(commit).status, StatusCode::FAILED_PRECONDITION,
                        "WRITER_FENCED", claimed));
  }
}

TEST_F(LifecycleTest, ExpectedEpochOfATombstoneIsItsEpoch) {
  const Shard shard = DroppedShard();
  auto claim = ClaimOf(shard, "second life");
  claim.set_expected_epoch(0);
  {
    const NothingMoves guard(client(), shard);
    EXPECT_TRUE(Refused(client().Call(claim).status, StatusCode::ABORTED, "EPOCH_MISMATCH", shard));
  }
  claim.set_expected_epoch(3);
  EXPECT_EQ(client().Call(claim).response.writer_epoch(), 4U);
}

TEST_F(LifecycleTest, ManyLivesNeverRepeatAnEpochOrAVersion) {
  const Shard shard = FreshShard();
  uint64_t epoch = 0;
  uint64_t version = 0;
  for (uint32_t life = 0; life < 5; ++life) {
    const auto claim = client().Claim(shard, "writer", life);
    ASSERT_TRUE(IsOk(claim.status));
    EXPECT_EQ(claim.response.writer_epoch(), ++epoch);
    EXPECT_EQ(claim.response.manifest().version(), ++version);
    EXPECT_EQ(client().Seal(shard).response.manifest().version(), ++version);
    EXPECT_EQ(client().Drop(shard).response.manifest().version(), ++version);
  }
}

}  // namespace
}  // namespace claimd::e2e
