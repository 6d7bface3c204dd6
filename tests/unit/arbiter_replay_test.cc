// A mutation repeated with the same request id is answered as the first time (DESIGN §2.8).
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"

#include "server/arbiter/errors.h"
#include "server/store/memory_store.h"
#include "tests/unit/arbiter_fixture.h"

namespace claimd::testing {
namespace {

using arbiter::ReasonOf;

class ArbiterReplayTest : public ::testing::Test {
 protected:
  uint64_t Revision() { return memory_.Info().revision; }

  store::MemoryStore memory_{{.history_versions = 4, .claim_history = 3}};
  SyncArbiter arbiter_{&memory_};
};

TEST_F(ArbiterReplayTest, AClaimIsAnsweredAsTheFirstTimeAlsoAfterACommit) {
  ASSERT_TRUE(arbiter_.Claim(1, "a").ok());
  const auto first = arbiter_.Claim(1, "b");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(arbiter_.Commit(2, "note").ok());
  const uint64_t revision = Revision();
  arbiter_.clock().Advance(absl::Hours(1));
  const auto again = arbiter_.Claim(1, "b");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ShortDebugString(), first->ShortDebugString());
  EXPECT_EQ(again->previous_claim().request_id(), "a");
  EXPECT_EQ(Revision(), revision);
}

TEST_F(ArbiterReplayTest, AClaimWhoseVersionIsNoLongerKeptIsAnsweredByTheHead) {
  const auto first = arbiter_.Claim(1, "a");
  ASSERT_TRUE(first.ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(arbiter_.Commit(1, std::to_string(i)).ok());
  const auto again = arbiter_.Claim(1, "a");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->writer_epoch(), 1U);
  EXPECT_EQ(again->manifest().version(), 11U);
}

TEST_F(ArbiterReplayTest, EveryMutationIsAnsweredAsTheFirstTime) {
  ASSERT_TRUE(arbiter_.Claim(1, "claim").ok());
  const auto commit = arbiter_.Commit(1, "note", "commit");
  const auto release = arbiter_.Release(1, "release");
  const auto seal = arbiter_.Seal("seal");
  ASSERT_TRUE(commit.ok() && release.ok() && seal.ok());
  const uint64_t revision = Revision();

  auto repeated = About<v1::CommitManifestRequest>();
  repeated.set_writer_epoch(1);
  repeated.set_request_id("commit");
  *repeated.mutable_manifest() = commit->manifest();
  EXPECT_EQ(arbiter_.Commit(repeated)->ShortDebugString(), commit->ShortDebugString());
  EXPECT_EQ(arbiter_.Release(1, "release")->ShortDebugString(), release->ShortDebugString());
  EXPECT_EQ(arbiter_.Seal("seal")->ShortDebugString(), seal->ShortDebugString());
  const auto unseal = arbiter_.Unseal("unseal");
  ASSERT_TRUE(unseal.ok());
  EXPECT_EQ(arbiter_.Unseal("unseal")->ShortDebugString(), unseal->ShortDebugString());
  EXPECT_EQ(Revision(), revision + 1);
  EXPECT_EQ(arbiter_.Get()->status(), v1::SHARD_STATUS_ACTIVE) << "the old seal did not come back";
}

TEST_F(ArbiterReplayTest, ARequestThatFoundNothingToChangeStaysAnswered) {
  ASSERT_TRUE(arbiter_.Claim(1).ok());
  ASSERT_TRUE(arbiter_.Seal("first").ok());
  const auto second = arbiter_.Seal("second");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->manifest().version(), 2U) << "nothing changed, so no version";
  ASSERT_TRUE(arbiter_.Unseal("third").ok());
  EXPECT_TRUE(arbiter_.Seal("second").ok());
  EXPECT_EQ(arbiter_.Get()->status(), v1::SHARD_STATUS_ACTIVE);
}

TEST_F(ArbiterReplayTest, ADropIsAnsweredAgainEvenWhenTheShardWasMadeAnew) {
  ASSERT_TRUE(arbiter_.Claim(1, "life one").ok());
  ASSERT_TRUE(arbiter_.Seal("seal").ok());
  const auto drop = arbiter_.Drop("drop");
  ASSERT_TRUE(drop.ok());
  EXPECT_EQ(arbiter_.Drop("drop")->ShortDebugString(), drop->ShortDebugString());
  EXPECT_EQ(ReasonOf(arbiter_.Claim(1, "life one").status()), "CLAIM_SUPERSEDED")
      << "a late retry must not make the shard again";
  ASSERT_TRUE(arbiter_.Claim(2, "life two").ok());
  EXPECT_EQ(arbiter_.Drop("drop")->ShortDebugString(), drop->ShortDebugString());
  EXPECT_EQ(arbiter_.Get()->shard_spec_id(), 2U);
  EXPECT_EQ(arbiter_.Get()->version(), 4U);
  EXPECT_EQ(ReasonOf(arbiter_.CheckFence(1).status()), "WRITER_FENCED");
}

TEST_F(ArbiterReplayTest, SameBytesUnderTwoIdsAreTwoClaims) {
  EXPECT_EQ(arbiter_.Claim(1, "a")->writer_epoch(), 1U);
  EXPECT_EQ(arbiter_.Claim(1, "b")->writer_epoch(), 2U);
  EXPECT_EQ(ReasonOf(arbiter_.Claim(1, "a").status()), "CLAIM_SUPERSEDED");
}

TEST_F(ArbiterReplayTest, WithoutAnIdEachCallIsACallOfItsOwn) {
  EXPECT_EQ(arbiter_.Claim(1)->writer_epoch(), 1U);
  const auto second = arbiter_.Claim(1);
  EXPECT_EQ(second->writer_epoch(), 2U);
  EXPECT_FALSE(second->manifest().claim().request_id().empty());
}

TEST_F(ArbiterReplayTest, OneIdForTwoKindsOfCallIsRefused) {
  ASSERT_TRUE(arbiter_.Claim(1, "id").ok());
  EXPECT_EQ(ReasonOf(arbiter_.Seal("id").status()), "REQUEST_ID_REUSED");
  EXPECT_EQ(ReasonOf(arbiter_.Commit(1, "x", "id").status()), "REQUEST_ID_REUSED");
}

TEST_F(ArbiterReplayTest, AReleasedClaimRepeatedIsStillTheSameClaim) {
  ASSERT_TRUE(arbiter_.Claim(1, "a").ok());
  ASSERT_TRUE(arbiter_.Release(1).ok());
  const auto again = arbiter_.Claim(1, "a");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->writer_epoch(), 1U);
  EXPECT_FALSE(arbiter_.Get()->has_claim()) << "it changed nothing";
}

TEST_F(ArbiterReplayTest, ABatchMakesClaimsOfOneShardInOrderAndEachOnItsOwn) {
  const v1::ClaimEpochRequest good = ClaimRequest(1, "a");
  const v1::ClaimEpochRequest bad = ClaimRequest(2, "b");
  const v1::ClaimEpochRequest next = ClaimRequest(1, "c");
  v1::ClaimEpochRequest elsewhere = ClaimRequest(7, "d");
  elsewhere.set_table("other");
  arbiter::Arbiter::BatchResults results;
  int answers = 0;
  arbiter_.arbiter().BatchClaimEpoch({&good, &bad, &elsewhere, &next, &good},
                                     [&](arbiter::Arbiter::BatchResults all) {
                                       results = std::move(all);
                                       ++answers;
                                     });
  ASSERT_EQ(answers, 1);
  ASSERT_EQ(results.size(), 5U);
  EXPECT_EQ(results[0]->writer_epoch(), 1U);
  EXPECT_EQ(ReasonOf(results[1].status()), "SHARD_SPEC_MISMATCH");
  EXPECT_EQ(results[2]->writer_epoch(), 1U);
  EXPECT_EQ(results[3]->writer_epoch(), 2U);
  EXPECT_EQ(ReasonOf(results[4].status()), "CLAIM_SUPERSEDED");
}

TEST_F(ArbiterReplayTest, ALongBatchOfRefusalsNeedsNoDeepStack) {
  ASSERT_TRUE(arbiter_.Claim(1).ok());
  const v1::ClaimEpochRequest refused = ClaimRequest(2);
  const std::vector<const v1::ClaimEpochRequest*> requests(100'000, &refused);
  size_t count = 0;
  arbiter_.arbiter().BatchClaimEpoch(
      requests, [&](arbiter::Arbiter::BatchResults all) { count = all.size(); });
  EXPECT_EQ(count, requests.size());
}

}  // namespace
}  // namespace claimd::testing
