#include <thread>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/server_process.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/state_fingerprint.h"

// Exactly once under retry: a mutation repeated with its request_id is answered as the first time
// and changes nothing (DESIGN §2.8).
namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;

class ReplayTest : public SharedServerTest {
 protected:
  // Sends the request again and expects the answer of the first time, without effect.
  template <typename Request, typename Response>
  static void ExpectSameAnswer(const Client& to, const Request& request, const Response& first) {
    const NothingMoves guard(to, Shard{request.table(), request.shard_id()});
    const auto again = to.Call(request);
    ASSERT_TRUE(IsOk(again.status)) << Request::descriptor()->name();
    EXPECT_EQ(Bytes(again.response), Bytes(first))
        << "first " << first.ShortDebugString() << "\nagain " << again.response.ShortDebugString();
  }

  template <typename Request>
  static Request WithId(Request request) {
    request.set_request_id(RandomUuid());
    return request;
  }
};

TEST_F(ReplayTest, ClaimGetsTheSameEpochAndMakesOneVersion) {
  const Shard shard = FreshShard();
  const auto request = WithId(ClaimOf(shard, "writer", 1));
  const auto first = client().Call(request);
  ASSERT_TRUE(IsOk(first.status));
  ExpectSameAnswer(client(), request, first.response);
  ExpectSameAnswer(client(), request, first.response);
}

TEST_F(ReplayTest, ClaimThatFencedSomebodyAnswersThePreviousClaimAgain) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "first").status));
  const auto request = WithId(ClaimOf(shard, "second"));
  const auto first = client().Call(request);
  ASSERT_EQ(first.response.previous_claim().claimant(), "first");
  ExpectSameAnswer(client(), request, first.response);
}

TEST_F(ReplayTest, ClaimIsAnsweredWhateverItsConditionsSayNow) {
  const Shard shard = FreshShard();
  auto request = WithId(ClaimOf(shard, "writer"));
  request.set_expected_epoch(0);
  request.set_mode(v1::CLAIM_MODE_IF_FREE);
  const auto first = client().Call(request);
  ASSERT_TRUE(IsOk(first.status));
  ExpectSameAnswer(client(), request, first.response);
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  const auto sealed = client().Call(request);
  ASSERT_TRUE(IsOk(sealed.status)) << "the claim was granted before the seal";
  EXPECT_EQ(sealed.response.writer_epoch(), 1U);
}

TEST_F(ReplayTest, ClaimIsAnsweredAfterTheWriterCommitted) {
  const Shard shard = FreshShard();
  const auto request = WithId(ClaimOf(shard, "writer"));
  const auto first = client().Call(request);
  ASSERT_TRUE(IsOk(client().Call(CommitAfter(first.response.manifest())).status));
  ExpectSameAnswer(client(), request, first.response);
}

TEST_F(ReplayTest, ClaimThatANewerOneReplacedIsSuperseded) {
  const Shard shard = FreshShard();
  const auto request = WithId(ClaimOf(shard, "first"));
  ASSERT_TRUE(IsOk(client().Call(request).status));
  ASSERT_TRUE(IsOk(client().Claim(shard, "second").status));
  const NothingMoves guard(client(), shard);
  const auto refused = client().Call(request);
  EXPECT_TRUE(Refused(refused.status, StatusCode::ABORTED, "CLAIM_SUPERSEDED", shard));
  EXPECT_EQ(Metadata(refused.status)["stored_writer_epoch"], "2");
  EXPECT_EQ(Metadata(refused.status)["claimant"], "second");
}

TEST_F(ReplayTest, CommitIsAnsweredAgainEvenAfterLaterCommitsAndAFence) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "writer");
  const auto request = WithId(FlushAfter(claim.response.manifest()));
  const auto first = client().Call(request);
  ASSERT_TRUE(IsOk(first.status));
  ExpectSameAnswer(client(), request, first.response);
  ASSERT_TRUE(IsOk(client().Call(FlushAfter(first.response.manifest())).status));
  ExpectSameAnswer(client(), request, first.response);
  ASSERT_TRUE(IsOk(client().Claim(shard, "second").status));
  ExpectSameAnswer(client(), request, first.response);
}

TEST_F(ReplayTest, ReleaseIsAnsweredAgain) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  auto request = WithId(For<v1::ReleaseEpochRequest>(shard));
  request.set_writer_epoch(1);
  const auto first = client().Call(request);
  ASSERT_TRUE(IsOk(first.status));
  ExpectSameAnswer(client(), request, first.response);
  ASSERT_TRUE(IsOk(client().Claim(shard, "second").status));
  ExpectSameAnswer(client(), request, first.response);
}

TEST_F(ReplayTest, SealAndUnsealAreAnsweredAgainAndDoNotComeBack) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  const auto seal = WithId(For<v1::SealShardRequest>(shard));
  const auto sealed = client().Call(seal);
  ExpectSameAnswer(client(), seal, sealed.response);
  const auto unseal = WithId(For<v1::UnsealShardRequest>(shard));
  const auto unsealed = client().Call(unseal);
  ASSERT_TRUE(IsOk(unsealed.status));
  ExpectSameAnswer(client(), unseal, unsealed.response);
  ExpectSameAnswer(client(), seal, sealed.response);
  EXPECT_TRUE(IsOk(client().Claim(shard, "next").status)) << "the old seal did not come back";
}

TEST_F(ReplayTest, SealThatFoundNothingToDoDoesNotSealLater) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  const auto seal = WithId(For<v1::SealShardRequest>(shard));
  const auto sealed = client().Call(seal);
  ASSERT_TRUE(IsOk(sealed.status));
  EXPECT_EQ(sealed.response.manifest().version(), 2U) << "sealing a sealed shard changes nothing";
  ASSERT_TRUE(IsOk(client().Unseal(shard).status));
  ExpectSameAnswer(client(), seal, sealed.response);
  EXPECT_TRUE(IsOk(client().Claim(shard, "next").status));
}

TEST_F(ReplayTest, DropIsAnsweredAgainAlsoAfterTheShardWasMadeAnew) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  const auto drop = WithId(For<v1::DropShardRequest>(shard));
  const auto dropped = client().Call(drop);
  ASSERT_TRUE(IsOk(dropped.status));
  ExpectSameAnswer(client(), drop, dropped.response);
  const auto second_life = client().Claim(shard, "second life", 9);
  ASSERT_TRUE(IsOk(second_life.status));
  ExpectSameAnswer(client(), drop, dropped.response);
  EXPECT_TRUE(IsOk(client().CheckFence(shard, 2).status));
}

TEST_F(ReplayTest, StaleClaimOfTheFirstLifeDoesNotMakeTheShardAgain) {
  const Shard shard = FreshShard();
  const auto request = WithId(ClaimOf(shard, "first life"));
  ASSERT_TRUE(IsOk(client().Call(request).status));
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  ASSERT_TRUE(IsOk(client().Drop(shard).status));
  {
    const NothingMoves guard(client(), shard);
    EXPECT_TRUE(
        Refused(client().Call(request).status, StatusCode::ABORTED, "CLAIM_SUPERSEDED", shard));
  }
  ASSERT_TRUE(IsOk(client().Claim(shard, "second life").status));
  const NothingMoves guard(client(), shard);
  EXPECT_TRUE(
      Refused(client().Call(request).status, StatusCode::ABORTED, "CLAIM_SUPERSEDED", shard));
}

TEST_F(ReplayTest, DifferentRequestIdsAreTwoClaimsThoughAllElseIsEqual) {
  const Shard shard = FreshShard();
  auto request = WithId(ClaimOf(shard, "twin", 1));
  EXPECT_EQ(client().Call(request).response.writer_epoch(), 1U);
  request.set_request_id(RandomUuid());
  EXPECT_EQ(client().Call(request).response.writer_epoch(), 2U);
  request.clear_request_id();
  EXPECT_EQ(client().Call(request).response.writer_epoch(), 3U);
  EXPECT_EQ(client().Call(request).response.writer_epoch(), 4U);
}

TEST_F(ReplayTest, OneIdServesDifferentShards) {
  auto request = WithId(ClaimOf(FreshShard(), "writer"));
  EXPECT_TRUE(IsOk(client().Call(request).status));
  request.set_shard_id(RandomUuid());
  EXPECT_EQ(client().Call(request).response.writer_epoch(), 1U);
}

TEST_F(ReplayTest, IdOfAClaimIsRefusedForAnyOtherCall) {
  const Shard shard = FreshShard();
  const auto claim = WithId(ClaimOf(shard, "writer"));
  const auto granted = client().Call(claim);
  ASSERT_TRUE(IsOk(granted.status));
  const NothingMoves guard(client(), shard);
  const auto expect_reused = [&](const grpc::Status& status) {
    EXPECT_TRUE(Refused(status, StatusCode::INVALID_ARGUMENT, "REQUEST_ID_REUSED", shard));
  };
  auto commit = CommitAfter(granted.response.manifest());
  commit.set_request_id(claim.request_id());
  expect_reused(client().Call(commit).status);
  auto release = For<v1::ReleaseEpochRequest>(shard);
  release.set_writer_epoch(1);
  release.set_request_id(claim.request_id());
  expect_reused(client().Call(release).status);
  auto seal = For<v1::SealShardRequest>(shard);
  seal.set_request_id(claim.request_id());
  expect_reused(client().Call(seal).status);
  auto unseal = For<v1::UnsealShardRequest>(shard);
  unseal.set_request_id(claim.request_id());
  expect_reused(client().Call(unseal).status);
  auto other_claimant = claim;
  other_claimant.set_claimant("somebody else");
  expect_reused(client().Call(other_claimant).status);
}

TEST_F(ReplayTest, IdOfACommitIsRefusedForAnotherCommit) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "writer");
  const auto commit = WithId(CommitAfter(claim.response.manifest()));
  const auto first = client().Call(commit);
  ASSERT_TRUE(IsOk(first.status));
  const NothingMoves guard(client(), shard);
  auto next = CommitAfter(first.response.manifest());
  next.set_request_id(commit.request_id());
  EXPECT_TRUE(Refused(client().Call(next).status, StatusCode::INVALID_ARGUMENT, "REQUEST_ID_REUSED",
                      shard));
  auto other_content = FlushAfter(claim.response.manifest());
  other_content.set_request_id(commit.request_id());
  EXPECT_TRUE(Refused(client().Call(other_content).status, StatusCode::INVALID_ARGUMENT,
                      "REQUEST_ID_REUSED", shard))
      << "the same version with other content is another commit";
}

TEST_F(ReplayTest, SameIdSentByManyAtOnceIsOneClaim) {
  const Shard shard = FreshShard();
  const auto request = WithId(ClaimOf(shard, "writer"));
  constexpr int kThreads = 16;
  std::vector<Answer<v1::ClaimEpochResponse>> answers(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (auto& answer : answers) {
    threads.emplace_back([&answer, &request] {
      const Client own(server().address());
      answer = own.Call(request);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& answer : answers) {
    ASSERT_TRUE(IsOk(answer.status));
    EXPECT_EQ(answer.response.writer_epoch(), 1U);
  }
  EXPECT_EQ(client().Get(shard).response.manifest().version(), 1U);
}

TEST_F(ReplayTest, EveryKindIsAnsweredAgainAfterKillAndRestart) {
  auto started = ServerProcess::Start();
  ASSERT_TRUE(started.ok()) << started.status();
  ServerProcess& own = **started;
  const Client before(own.address());

  const Shard held = FreshShard();
  const auto superseded = WithId(ClaimOf(held, "first"));
  ASSERT_TRUE(IsOk(before.Call(superseded).status));
  const auto claim = WithId(ClaimOf(held, "second"));
  const auto claimed = before.Call(claim);
  const auto commit = WithId(FlushAfter(claimed.response.manifest()));
  const auto committed = before.Call(commit);

  const Shard gone = FreshShard();
  ASSERT_TRUE(IsOk(before.Claim(gone, "writer").status));
  auto release = WithId(For<v1::ReleaseEpochRequest>(gone));
  release.set_writer_epoch(1);
  const auto released = before.Call(release);
  const auto seal = WithId(For<v1::SealShardRequest>(gone));
  const auto sealed = before.Call(seal);
  const auto unseal = WithId(For<v1::UnsealShardRequest>(gone));
  const auto unsealed = before.Call(unseal);

  const Shard dropped = FreshShard();
  ASSERT_TRUE(IsOk(before.Claim(dropped, "writer").status));
  ASSERT_TRUE(IsOk(before.Seal(dropped).status));
  const auto drop = WithId(For<v1::DropShardRequest>(dropped));
  const auto tombstone = before.Call(drop);
  ASSERT_TRUE(IsOk(tombstone.status));

  own.Kill9();
  const absl::Status restarted = own.Restart();
  ASSERT_TRUE(restarted.ok()) << restarted;
  const Client after(own.address());

  ExpectSameAnswer(after, claim, claimed.response);
  ExpectSameAnswer(after, commit, committed.response);
  ExpectSameAnswer(after, release, released.response);
  ExpectSameAnswer(after, seal, sealed.response);
  ExpectSameAnswer(after, unseal, unsealed.response);
  ExpectSameAnswer(after, drop, tombstone.response);
  EXPECT_TRUE(
      Refused(after.Call(superseded).status, StatusCode::ABORTED, "CLAIM_SUPERSEDED", held));
  EXPECT_EQ(after.Claim(held, "third").response.writer_epoch(), 3U);
}

}  // namespace
}  // namespace claimd::e2e
