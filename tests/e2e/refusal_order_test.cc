#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/state_fingerprint.h"

// Of several reasons to refuse a claim the first one is told: sealed, mismatch, expected epoch,
// held.
namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;

class RefusalOrderTest : public SharedServerTest {
 protected:
  // A claim that is refused for all reasons that the shard has to offer.
  static v1::ClaimEpochRequest WrongInEveryWay(const Shard& shard) {
    auto request = ClaimOf(shard, "intruder", 2);
    request.set_expected_epoch(99);
    request.set_mode(v1::CLAIM_MODE_IF_FREE);
    return request;
  }
};

TEST_F(RefusalOrderTest, SealedWinsOverMismatch) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "holder", 1).status));
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  const NothingMoves guard(client(), shard);
  EXPECT_TRUE(Refused(client().Call(WrongInEveryWay(shard)).status, StatusCode::FAILED_PRECONDITION,
                      "SHARD_SEALED", shard));
}

TEST_F(RefusalOrderTest, MismatchWinsOverExpectedEpoch) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "holder", 1).status));
  const NothingMoves guard(client(), shard);
  EXPECT_TRUE(Refused(client().Call(WrongInEveryWay(shard)).status, StatusCode::INVALID_ARGUMENT,
                      "SHARD_SPEC_MISMATCH", shard));
}

TEST_F(RefusalOrderTest, FingerprintMismatchWinsOverExpectedEpoch) {
  const Shard shard = FreshShard();
  auto holder = ClaimOf(shard, "holder", 2);
  holder.set_shard_spec_fingerprint("a");
  ASSERT_TRUE(IsOk(client().Call(holder).status));
  const NothingMoves guard(client(), shard);
  auto request = WrongInEveryWay(shard);
  request.set_shard_spec_fingerprint("b");
  EXPECT_TRUE(Refused(client().Call(request).status, StatusCode::INVALID_ARGUMENT,
                      "SHARD_SPEC_FINGERPRINT_MISMATCH", shard));
}

TEST_F(RefusalOrderTest, ExpectedEpochWinsOverHeld) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "holder", 2).status));
  const NothingMoves guard(client(), shard);
  const auto refused = client().Call(WrongInEveryWay(shard));
  EXPECT_TRUE(Refused(refused.status, StatusCode::ABORTED, "EPOCH_MISMATCH", shard));
  EXPECT_EQ(Metadata(refused.status)["stored_writer_epoch"], "1");
  EXPECT_EQ(Metadata(refused.status)["stored_version"], "1");
}

TEST_F(RefusalOrderTest, HeldComesLast) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "holder", 2).status));
  const NothingMoves guard(client(), shard);
  auto request = WrongInEveryWay(shard);
  request.set_expected_epoch(1);
  const auto refused = client().Call(request);
  EXPECT_TRUE(Refused(refused.status, StatusCode::FAILED_PRECONDITION, "SHARD_HELD", shard));
  EXPECT_EQ(Metadata(refused.status)["claimant"], "holder");
  EXPECT_EQ(Metadata(refused.status).count("lease_remaining"), 1U);
}

TEST_F(RefusalOrderTest, ExpectedEpochZeroMeansNewOrNeverClaimed) {
  const Shard fresh = FreshShard();
  auto request = ClaimOf(fresh, "writer");
  request.set_expected_epoch(0);
  EXPECT_EQ(client().Call(request).response.writer_epoch(), 1U);
  EXPECT_TRUE(Refused(client().Call(request).status, StatusCode::ABORTED, "EPOCH_MISMATCH", fresh));

  const Shard initialized = FreshShard();
  ASSERT_TRUE(IsOk(client().Call(For<v1::InitializeShardRequest>(initialized)).status));
  auto second = ClaimOf(initialized, "writer");
  second.set_expected_epoch(0);
  const auto claim = client().Call(second);
  EXPECT_EQ(claim.response.writer_epoch(), 1U);
  EXPECT_EQ(claim.response.manifest().version(), 2U);
  EXPECT_FALSE(claim.response.created());
}

TEST_F(RefusalOrderTest, ExpectedEpochOfAnAbsentShardIsNotMade) {
  const Shard shard = FreshShard();
  auto request = ClaimOf(shard, "writer");
  request.set_expected_epoch(5);
  const NothingMoves guard(client(), shard);
  EXPECT_TRUE(Refused(client().Call(request).status, StatusCode::ABORTED, "EPOCH_MISMATCH", shard));
}

TEST_F(RefusalOrderTest, IfFreeIsGrantedOnNewNeverClaimedAndReleasedShards) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Call(For<v1::InitializeShardRequest>(shard)).status));
  auto request = ClaimOf(shard, "writer");
  request.set_mode(v1::CLAIM_MODE_IF_FREE);
  const auto first = client().Call(request);
  ASSERT_TRUE(IsOk(first.status));

  auto release = For<v1::ReleaseEpochRequest>(shard);
  release.set_writer_epoch(first.response.writer_epoch());
  ASSERT_TRUE(IsOk(client().Call(release).status));
  const auto second = client().Call(request);
  ASSERT_TRUE(IsOk(second.status));
  EXPECT_EQ(second.response.writer_epoch(), 2U);
  EXPECT_FALSE(second.response.has_previous_claim());

  auto fresh = ClaimOf(FreshShard(), "writer");
  fresh.set_mode(v1::CLAIM_MODE_IF_FREE);
  EXPECT_TRUE(IsOk(client().Call(fresh).status));
}

TEST_F(RefusalOrderTest, PreemptIsTheDefaultAndAnswersWhomItFenced) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "first").status));
  const auto second = client().Claim(shard, "second");
  ASSERT_TRUE(IsOk(second.status));
  EXPECT_EQ(second.response.writer_epoch(), 2U);
  EXPECT_EQ(second.response.previous_claim().claimant(), "first");
  EXPECT_EQ(second.response.previous_claim().writer_epoch(), 1U);
  auto explicit_mode = ClaimOf(shard, "third");
  explicit_mode.set_mode(v1::CLAIM_MODE_PREEMPT);
  EXPECT_EQ(client().Call(explicit_mode).response.writer_epoch(), 3U);
}

}  // namespace
}  // namespace claimd::e2e
