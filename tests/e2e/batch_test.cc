#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/state_fingerprint.h"

namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;

constexpr int kBatchMax = 1024;

class BatchTest : public SharedServerTest {
 protected:
  static grpc::Status StatusOf(const v1::BatchClaimEpochResult& result) {
    return AsGrpcStatus(result.status());
  }
};

TEST_F(BatchTest, EachClaimStandsAloneInItsPlace) {
  const Shard fresh = FreshShard();
  const Shard mismatched = FreshShard();
  const Shard sealed = FreshShard("customers");
  const Shard held = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(mismatched, "owner", 1).status));
  ASSERT_TRUE(IsOk(client().Claim(sealed, "owner", 1).status));
  ASSERT_TRUE(IsOk(client().Seal(sealed).status));
  ASSERT_TRUE(IsOk(client().Claim(held, "owner", 1).status));

  v1::BatchClaimEpochRequest batch;
  *batch.add_requests() = ClaimOf(fresh, "node", 1);
  *batch.add_requests() = ClaimOf(mismatched, "node", 0);
  *batch.add_requests() = ClaimOf(sealed, "node", 1);
  *batch.add_requests() = ClaimOf(held, "node", 1);
  const auto answer = client().Call(batch);
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), 4);
  EXPECT_EQ(answer.response.results(0).response().writer_epoch(), 1U);
  EXPECT_EQ(answer.response.results(0).response().manifest().shard_id(), fresh.id);
  EXPECT_TRUE(answer.response.results(0).response().created());
  EXPECT_TRUE(Refused(StatusOf(answer.response.results(1)), StatusCode::INVALID_ARGUMENT,
                      "SHARD_SPEC_MISMATCH", mismatched));
  EXPECT_TRUE(Refused(StatusOf(answer.response.results(2)), StatusCode::FAILED_PRECONDITION,
                      "SHARD_SEALED", sealed));
  EXPECT_EQ(answer.response.results(3).response().writer_epoch(), 2U);
  EXPECT_EQ(answer.response.results(3).response().previous_claim().claimant(), "owner");
}

TEST_F(BatchTest, BatchOfRefusalsHasNoEffect) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "owner", 1).status));
  const NothingMoves guard(client(), shard);
  v1::BatchClaimEpochRequest batch;
  *batch.add_requests() = ClaimOf(shard, "node", 0);
  *batch.add_requests() = ClaimOf(shard, "node", 2);
  const auto answer = client().Call(batch);
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), 2);
  for (const auto& result : answer.response.results()) {
    EXPECT_TRUE(Refused(StatusOf(result), StatusCode::INVALID_ARGUMENT, "SHARD_SPEC_MISMATCH"));
  }
}

TEST_F(BatchTest, SecondClaimOfAShardSeesTheFirst) {
  const Shard shard = FreshShard();
  v1::BatchClaimEpochRequest batch;
  *batch.add_requests() = ClaimOf(shard, "first", 1);
  *batch.add_requests() = ClaimOf(shard, "second", 2);
  *batch.add_requests() = ClaimOf(shard, "third", 1);
  auto only_if_free = ClaimOf(shard, "fourth", 1);
  only_if_free.set_mode(v1::CLAIM_MODE_IF_FREE);
  *batch.add_requests() = only_if_free;
  const auto answer = client().Call(batch);
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), 4);
  EXPECT_EQ(answer.response.results(0).response().writer_epoch(), 1U);
  EXPECT_TRUE(Refused(StatusOf(answer.response.results(1)), StatusCode::INVALID_ARGUMENT,
                      "SHARD_SPEC_MISMATCH", shard));
  EXPECT_EQ(answer.response.results(2).response().writer_epoch(), 2U);
  EXPECT_EQ(answer.response.results(2).response().previous_claim().claimant(), "first");
  EXPECT_TRUE(Refused(StatusOf(answer.response.results(3)), StatusCode::FAILED_PRECONDITION,
                      "SHARD_HELD", shard));
}

TEST_F(BatchTest, ManyClaimsOfOneShardAreMadeInOrder) {
  const Shard shard = FreshShard();
  v1::BatchClaimEpochRequest batch;
  constexpr int kClaims = 200;
  for (int i = 0; i < kClaims; ++i) *batch.add_requests() = ClaimOf(shard, absl::StrCat("n", i));
  const auto answer = client().Call(batch);
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), kClaims);
  for (int i = 0; i < kClaims; ++i) {
    EXPECT_EQ(answer.response.results(i).response().writer_epoch(), static_cast<uint64_t>(i) + 1);
  }
}

TEST_F(BatchTest, SameRequestIdTwiceInOneBatchIsOneClaim) {
  const Shard shard = FreshShard();
  auto claim = ClaimOf(shard, "node");
  claim.set_request_id(RandomUuid());
  v1::BatchClaimEpochRequest batch;
  *batch.add_requests() = claim;
  *batch.add_requests() = claim;
  const auto answer = client().Call(batch);
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), 2);
  EXPECT_EQ(answer.response.results(0).response().writer_epoch(), 1U);
  EXPECT_EQ(answer.response.results(1).response().writer_epoch(), 1U);
  EXPECT_EQ(client().Get(shard).response.manifest().version(), 1U);
}

TEST_F(BatchTest, LargestBatchIsGrantedWhole) {
  v1::BatchClaimEpochRequest batch;
  for (int i = 0; i < kBatchMax; ++i) *batch.add_requests() = ClaimOf(FreshShard(), "node", 1);
  const auto answer = client().Call(batch);
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), kBatchMax);
  for (int i = 0; i < kBatchMax; ++i) {
    ASSERT_EQ(answer.response.results(i).response().writer_epoch(), 1U) << i;
    EXPECT_EQ(answer.response.results(i).response().manifest().shard_id(),
              batch.requests(i).shard_id());
  }
}

TEST_F(BatchTest, RepeatedBatchIsAnsweredAsTheFirstTime) {
  v1::BatchClaimEpochRequest batch;
  for (int i = 0; i < 10; ++i) {
    auto claim = ClaimOf(FreshShard(), "node");
    claim.set_request_id(RandomUuid());
    *batch.add_requests() = claim;
  }
  const auto first = client().Call(batch);
  ASSERT_TRUE(IsOk(first.status));
  const uint64_t revision = Revision(client());
  const auto again = client().Call(batch);
  EXPECT_EQ(Bytes(again.response), Bytes(first.response));
  EXPECT_EQ(Revision(client()), revision);
}

TEST_F(BatchTest, AnswerStaysSmallWhenTheManifestsAreLarge) {
  constexpr int kShards = 8;
  constexpr size_t kLarge = 900'000;
  v1::BatchClaimEpochRequest batch;
  for (int i = 0; i < kShards; ++i) {
    const Shard shard = FreshShard();
    auto commit = CommitAfter(client().Claim(shard, "writer").response.manifest());
    (*commit.mutable_manifest()->mutable_annotations())["blob"] = std::string(kLarge, 'x');
    ASSERT_TRUE(IsOk(client().Call(commit).status));
    *batch.add_requests() = ClaimOf(shard, "node");
  }
  const auto answer = client().Call(batch);
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), kShards);
  EXPECT_LE(answer.response.ByteSizeLong(), size_t{3} << 20U);
  int omitted = 0;
  for (const auto& result : answer.response.results()) {
    EXPECT_EQ(result.response().writer_epoch(), 2U);
    EXPECT_NE(result.manifest_omitted(), result.response().has_manifest());
    if (result.manifest_omitted()) ++omitted;
  }
  EXPECT_GT(omitted, 0);
  EXPECT_LT(omitted, kShards);
}

TEST_F(BatchTest, BatchOfLongRefusalsStillArrives) {
  Shard shard = FreshShard(std::string(512, 't'));
  ASSERT_TRUE(IsOk(client().Claim(shard, std::string(256, 'c'), 1).status));
  v1::BatchClaimEpochRequest batch;
  for (int i = 0; i < kBatchMax; ++i) *batch.add_requests() = ClaimOf(shard, "node", 2);
  const auto answer = client().Call(batch);
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), kBatchMax);
  EXPECT_TRUE(Refused(StatusOf(answer.response.results(kBatchMax - 1)),
                      StatusCode::INVALID_ARGUMENT, "SHARD_SPEC_MISMATCH", shard));
}

}  // namespace
}  // namespace claimd::e2e
