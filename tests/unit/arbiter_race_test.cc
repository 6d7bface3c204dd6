// What happens when somebody comes between load and compare-and-swap, or the store fails to say
// what it did. A peer is a second arbiter that writes to the store underneath.
#include <string>
#include <vector>

#include "absl/status/status.h"
#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"

#include "server/arbiter/errors.h"
#include "server/store/memory_store.h"
#include "tests/testing/interposing_store.h"
#include "tests/unit/arbiter_fixture.h"

namespace claimd::testing {
namespace {

using arbiter::ReasonOf;

class ArbiterRaceTest : public ::testing::Test {
 protected:
  // Runs 'peer_step' between load and swap of the next mutation of mine_.
  template <typename Step>
  void BetweenLoadAndSwap(Step peer_step) {
    store_.BeforeNextSwap([peer_step](const store::SwapRequest&) { peer_step(); });
  }

  std::string State() {
    const auto manifest = peer_.Get();
    return absl::StrCat(manifest.ok() ? manifest->ShortDebugString() : manifest.status().ToString(),
                        " revision=", memory_.Info().revision);
  }

  store::MemoryStore memory_;
  InterposingStore store_{&memory_};
  SyncArbiter mine_{&store_};
  SyncArbiter peer_{&memory_};
};

TEST_F(ArbiterRaceTest, APeerThatMakesTheShardUnderAnotherSpecIsAMismatch) {
  BetweenLoadAndSwap([this] { ASSERT_TRUE(peer_.Initialize(2).ok()); });
  EXPECT_EQ(ReasonOf(mine_.Claim(1).status()), "SHARD_SPEC_MISMATCH");
  EXPECT_EQ(peer_.Get()->version(), 1U);
}

TEST_F(ArbiterRaceTest, APeerThatClaimsUnderAnotherSpecIsAMismatch) {
  BetweenLoadAndSwap([this] { ASSERT_TRUE(peer_.Claim(2).ok()); });
  EXPECT_EQ(ReasonOf(mine_.Claim(1).status()), "SHARD_SPEC_MISMATCH");
  EXPECT_EQ(peer_.Get()->writer_epoch(), 1U);
}

TEST_F(ArbiterRaceTest, APeerThatInitialisesUnderAnotherSpecWinsOverInitialise) {
  BetweenLoadAndSwap([this] { ASSERT_TRUE(peer_.Initialize(2).ok()); });
  EXPECT_EQ(ReasonOf(mine_.Initialize(1).status()), "SHARD_SPEC_MISMATCH");
}

TEST_F(ArbiterRaceTest, APeerThatSealsRefusesTheClaim) {
  ASSERT_TRUE(peer_.Claim(1).ok());
  BetweenLoadAndSwap([this] { ASSERT_TRUE(peer_.Seal().ok()); });
  EXPECT_EQ(ReasonOf(mine_.Claim(1).status()), "SHARD_SEALED");
  EXPECT_EQ(peer_.Get()->writer_epoch(), 1U);
}

TEST_F(ArbiterRaceTest, AClaimLandsOnThePeersCommitAndKeepsIt) {
  ASSERT_TRUE(peer_.Claim(1).ok());
  BetweenLoadAndSwap([this] { ASSERT_TRUE(peer_.Commit(1, "from the peer").ok()); });
  const auto claim = mine_.Claim(1);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->writer_epoch(), 2U);
  EXPECT_EQ(claim->manifest().version(), 3U);
  EXPECT_EQ(claim->manifest().annotations().at("note"), "from the peer");
}

TEST_F(ArbiterRaceTest, AClaimThatAPeerBeatIsLostAndNotTriedAgain) {
  ASSERT_TRUE(peer_.Claim(1).ok());
  BetweenLoadAndSwap([this] { ASSERT_TRUE(peer_.Claim(1).ok()); });
  EXPECT_EQ(ReasonOf(mine_.Claim(1).status()), "CLAIM_LOST_RACE");
  EXPECT_EQ(store_.swap_count(), 1);
  EXPECT_EQ(peer_.Get()->writer_epoch(), 2U);
}

TEST_F(ArbiterRaceTest, APeerThatDropsAndMakesAnewBeatsTheClaimToo) {
  ASSERT_TRUE(peer_.Claim(1).ok());
  BetweenLoadAndSwap([this] {
    ASSERT_TRUE(peer_.Seal().ok());
    ASSERT_TRUE(peer_.Drop().ok());
    ASSERT_TRUE(peer_.Claim(1).ok());
  });
  EXPECT_EQ(ReasonOf(mine_.Claim(1).status()), "CLAIM_LOST_RACE");
}

TEST_F(ArbiterRaceTest, ACommitThatAPeerBeatIsAVersionConflictAndAClaimFencesIt) {
  ASSERT_TRUE(peer_.Claim(1).ok());
  BetweenLoadAndSwap([this] { ASSERT_TRUE(peer_.Commit(1, "first").ok()); });
  EXPECT_EQ(ReasonOf(mine_.Commit(1, "second").status()), "MANIFEST_VERSION_CONFLICT");
  BetweenLoadAndSwap([this] { ASSERT_TRUE(peer_.Claim(1).ok()); });
  EXPECT_EQ(ReasonOf(mine_.Commit(1, "third").status()), "WRITER_FENCED");
  EXPECT_EQ(peer_.Get()->annotations().at("note"), "first");
}

TEST_F(ArbiterRaceTest, SixteenBenignConflictsInARowAreContentionWithNothingWritten) {
  ASSERT_TRUE(peer_.Claim(1).ok());
  store_.BeforeEverySwap(
      [this](const store::SwapRequest&) { ASSERT_TRUE(peer_.Commit(1, "busy").ok()); });
  EXPECT_EQ(ReasonOf(mine_.Claim(1).status()), "MANIFEST_CONTENTION");
  EXPECT_EQ(store_.swap_count(), 16);
  EXPECT_EQ(peer_.Get()->writer_epoch(), 1U);
  EXPECT_EQ(peer_.Get()->version(), 17U);
}

TEST_F(ArbiterRaceTest, FifteenBenignConflictsAreSurvived) {
  ASSERT_TRUE(peer_.Claim(1).ok());
  for (int i = 0; i < 15; ++i) {
    BetweenLoadAndSwap([this] { ASSERT_TRUE(peer_.Commit(1, "busy").ok()); });
  }
  const auto claim = mine_.Claim(1);
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->manifest().version(), 17U);
}

TEST_F(ArbiterRaceTest, AnUnknownOutcomeThatLandedIsTheClaim) {
  store_.DecideSwaps({SwapFate::kUnknownLanded});
  const auto claim = mine_.Claim(1, "id");
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->writer_epoch(), 1U);
  EXPECT_TRUE(claim->created());
  EXPECT_EQ(store_.swap_count(), 1);
  EXPECT_EQ(peer_.Get()->version(), 1U);
}

TEST_F(ArbiterRaceTest, AnUnknownOutcomeThatLandedUnderALaterClaimIsSuperseded) {
  store_.DecideSwaps({SwapFate::kUnknownLanded});
  ASSERT_TRUE(peer_.Claim(1).ok());
  store_.DecideLoads({absl::OkStatus(), absl::UnavailableError("away")});
  EXPECT_EQ(ReasonOf(mine_.Claim(1, "id").status()), "OUTCOME_UNKNOWN");
  ASSERT_TRUE(peer_.Claim(1).ok());
  EXPECT_EQ(ReasonOf(mine_.Claim(1, "id").status()), "CLAIM_SUPERSEDED");
  EXPECT_EQ(peer_.Get()->writer_epoch(), 3U);
}

TEST_F(ArbiterRaceTest, AnUnknownOutcomeThatDidNotLandIsTriedAgain) {
  store_.DecideSwaps({SwapFate::kUnknownNotLanded, SwapFate::kUnknownNotLanded});
  const auto claim = mine_.Claim(1, "id");
  ASSERT_TRUE(claim.ok()) << claim.status();
  EXPECT_EQ(claim->writer_epoch(), 1U);
  EXPECT_EQ(store_.swap_count(), 3);
}

TEST_F(ArbiterRaceTest, AnOutcomeThatStaysUnknownIsSaidToBeUnknown) {
  store_.DecideSwapsFromNowOn(SwapFate::kUnknownNotLanded);
  const auto claim = mine_.Claim(1, "id");
  EXPECT_EQ(ReasonOf(claim.status()), "OUTCOME_UNKNOWN");
  EXPECT_EQ(claim.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_LE(store_.swap_count(), 16);
}

TEST_F(ArbiterRaceTest, AnUnknownOutcomeIsNotTurnedIntoAFailureByTheNextTry) {
  store_.DecideSwaps({SwapFate::kUnknownNotLanded, SwapFate::kNotApplied});
  EXPECT_EQ(ReasonOf(mine_.Claim(1, "id").status()), "OUTCOME_UNKNOWN");
}

TEST_F(ArbiterRaceTest, ARetryWithTheSameIdSettlesAnUnknownOutcome) {
  store_.DecideSwaps({SwapFate::kUnknownLanded});
  store_.DecideLoads({absl::OkStatus(), absl::UnavailableError("away")});
  ASSERT_EQ(ReasonOf(mine_.Claim(1, "id").status()), "OUTCOME_UNKNOWN");
  const auto retry = mine_.Claim(1, "id");
  ASSERT_TRUE(retry.ok()) << retry.status();
  EXPECT_EQ(retry->writer_epoch(), 1U);
  EXPECT_EQ(peer_.Get()->version(), 1U);
}

TEST_F(ArbiterRaceTest, ACommitOfUnknownOutcomeIsExactlyOnce) {
  ASSERT_TRUE(peer_.Claim(1).ok());
  store_.DecideSwaps({SwapFate::kUnknownLanded});
  const auto commit = mine_.Commit(1, "once", "id");
  ASSERT_TRUE(commit.ok()) << commit.status();
  EXPECT_EQ(commit->manifest().version(), 2U);
  EXPECT_EQ(peer_.Get()->version(), 2U);
}

TEST_F(ArbiterRaceTest, ALoserOfUnknownOutcomeIsToldOfTheLossOnceItIsSure) {
  // The try cannot land any more once a peer's version stands in its place.
  store_.DecideSwaps({SwapFate::kUnknownNotLanded});
  BetweenLoadAndSwap([this] { ASSERT_TRUE(peer_.Claim(1).ok()); });
  EXPECT_EQ(ReasonOf(mine_.Claim(1, "id").status()), "CLAIM_LOST_RACE");
}

TEST_F(ArbiterRaceTest, AReadErrorIsNotAbsence) {
  ASSERT_TRUE(peer_.Claim(1).ok());
  const std::string before = State();
  store_.DecideLoadsFromNowOn(absl::UnavailableError("disk is slow"));
  EXPECT_EQ(ReasonOf(mine_.Claim(1).status()), "STORE_UNAVAILABLE");
  EXPECT_EQ(ReasonOf(mine_.Initialize(1).status()), "STORE_UNAVAILABLE");
  EXPECT_EQ(ReasonOf(mine_.CheckFence(1).status()), "STORE_UNAVAILABLE");
  EXPECT_EQ(ReasonOf(mine_.Get().status()), "STORE_UNAVAILABLE");
  store_.DecideLoadsFromNowOn(absl::DataLossError("undecodable"));
  EXPECT_EQ(ReasonOf(mine_.Claim(2).status()), "STORE_CORRUPT");
  EXPECT_EQ(mine_.CheckFence(1).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(store_.swap_count(), 0);
  EXPECT_EQ(State(), before);
}

TEST_F(ArbiterRaceTest, AFailedWriteIsSaidToBeUnavailable) {
  store_.DecideSwaps({SwapFate::kNotApplied});
  EXPECT_EQ(ReasonOf(mine_.Claim(1).status()), "STORE_UNAVAILABLE");
  EXPECT_EQ(ReasonOf(peer_.Get().status()), "SHARD_NOT_FOUND");
}

TEST_F(ArbiterRaceTest, RefusalsMoveNothing) {
  ASSERT_TRUE(peer_.Claim(1).ok());
  const std::string before = State();
  EXPECT_FALSE(mine_.Claim(0).ok());
  EXPECT_FALSE(mine_.Initialize(2).ok());
  EXPECT_FALSE(mine_.Commit(2, "x").ok());
  EXPECT_FALSE(mine_.Release(0).ok());
  EXPECT_FALSE(mine_.Drop().ok());
  EXPECT_FALSE(mine_.CheckFence(2).ok());
  EXPECT_EQ(store_.swap_count(), 0);
  EXPECT_EQ(State(), before);
}

}  // namespace
}  // namespace claimd::testing
