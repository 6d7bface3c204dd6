#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
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

constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kEpochJumpMax = uint64_t{1} << 20U;

class FencingTest : public SharedServerTest {
 protected:
  static void ExpectFenced(const grpc::Status& status, const Shard& shard, uint64_t writer_epoch,
                           uint64_t stored_epoch, const std::string& claimant) {
    EXPECT_TRUE(Refused(status, StatusCode::FAILED_PRECONDITION, "WRITER_FENCED", shard));
    auto metadata = Metadata(status);
    EXPECT_EQ(metadata["writer_epoch"], absl::StrCat(writer_epoch));
    EXPECT_EQ(metadata["stored_writer_epoch"], absl::StrCat(stored_epoch));
    EXPECT_EQ(metadata["claimant"], claimant);
  }
};

TEST_F(FencingTest, SecondClaimFencesTheFirstWriterWhateverVersionItSends) {
  const Shard shard = FreshShard();
  const auto first = client().Claim(shard, "first");
  const auto second = client().Claim(shard, "second");
  ASSERT_TRUE(IsOk(second.status));
  const NothingMoves guard(client(), shard);

  ExpectFenced(client().CheckFence(shard, 1).status, shard, 1, 2, "second");
  auto commit = CommitAfter(first.response.manifest());
  for (const uint64_t version : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{9}, kMaxNumber}) {
    commit.mutable_manifest()->set_version(version);
    ExpectFenced(client().Call(commit).status, shard, 1, 2, "second");
  }
  auto release = For<v1::ReleaseEpochRequest>(shard);
  release.set_writer_epoch(1);
  ExpectFenced(client().Call(release).status, shard, 1, 2, "second");
}

TEST_F(FencingTest, FencedWriterThatCopiesTheNewManifestIsStillFenced) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "first").status));
  const auto second = client().Claim(shard, "second");
  const NothingMoves guard(client(), shard);
  auto commit = CommitAfter(second.response.manifest());
  commit.set_writer_epoch(1);
  ExpectFenced(client().Call(commit).status, shard, 1, 2, "second");
}

TEST_F(FencingTest, EpochZeroIsFencedOnceTheShardIsClaimed) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  ExpectFenced(client().CheckFence(shard, 0).status, shard, 0, 1, "writer");
}

TEST_F(FencingTest, CheckFenceAnswersVersionAndClaimOfTheOwner) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "writer");
  ASSERT_TRUE(IsOk(client().Call(CommitAfter(claim.response.manifest())).status));
  const auto fence = client().CheckFence(shard, 1);
  ASSERT_TRUE(IsOk(fence.status));
  EXPECT_EQ(fence.response.version(), 2U);
  EXPECT_EQ(fence.response.claim().claimant(), "writer");
}

TEST_F(FencingTest, EpochAboveTheStoredOneIsFromTheFuture) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "writer");
  const NothingMoves guard(client(), shard);
  for (const uint64_t epoch : {uint64_t{2}, kMaxNumber}) {
    const auto fence = client().CheckFence(shard, epoch);
    EXPECT_TRUE(Refused(fence.status, StatusCode::INVALID_ARGUMENT, "EPOCH_FROM_FUTURE", shard));
    auto commit = CommitAfter(claim.response.manifest());
    commit.set_writer_epoch(epoch);
    EXPECT_TRUE(Refused(client().Call(commit).status, StatusCode::INVALID_ARGUMENT,
                        "EPOCH_FROM_FUTURE", shard));
    auto release = For<v1::ReleaseEpochRequest>(shard);
    release.set_writer_epoch(epoch);
    EXPECT_TRUE(Refused(client().Call(release).status, StatusCode::INVALID_ARGUMENT,
                        "EPOCH_FROM_FUTURE", shard));
  }
}

TEST_F(FencingTest, UnknownAndDroppedShardsAreNeverNotFenced) {
  const Shard unknown = FreshShard();
  for (const uint64_t epoch : {uint64_t{0}, uint64_t{1}}) {
    EXPECT_TRUE(Refused(client().CheckFence(unknown, epoch).status, StatusCode::NOT_FOUND,
                        "SHARD_NOT_FOUND", unknown));
  }
  const Shard dropped = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(dropped, "writer").status));
  ASSERT_TRUE(IsOk(client().Seal(dropped).status));
  ASSERT_TRUE(IsOk(client().Drop(dropped).status));
  EXPECT_TRUE(Refused(client().CheckFence(dropped, 1).status, StatusCode::NOT_FOUND,
                      "SHARD_NOT_FOUND", dropped));
}

TEST_F(FencingTest, ReleaseClearsTheClaimAndKeepsTheEpoch) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "writer");
  auto release = For<v1::ReleaseEpochRequest>(shard);
  release.set_writer_epoch(1);
  const auto released = client().Call(release);
  ASSERT_TRUE(IsOk(released.status));
  EXPECT_FALSE(released.response.manifest().has_claim());
  EXPECT_EQ(released.response.manifest().writer_epoch(), 1U);
  EXPECT_EQ(released.response.manifest().version(), 2U);

  const auto fence = client().CheckFence(shard, 1);
  ASSERT_TRUE(IsOk(fence.status)) << "a release does not fence";
  EXPECT_FALSE(fence.response.has_claim());

  const auto next = client().Claim(shard, "next");
  EXPECT_EQ(next.response.writer_epoch(), 2U);
  ExpectFenced(client().CheckFence(shard, 1).status, shard, 1, 2, "next");
}

TEST_F(FencingTest, ReleaseOfAnUnknownShardIsAnError) {
  const Shard shard = FreshShard();
  EXPECT_TRUE(Refused(client().Call(For<v1::ReleaseEpochRequest>(shard)).status,
                      StatusCode::NOT_FOUND, "SHARD_NOT_FOUND", shard));
}

TEST_F(FencingTest, EpochFloorLiftsTheEpochAboveIt) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  auto request = ClaimOf(shard, "restored");
  request.set_epoch_floor(41);
  const auto lifted = client().Call(request);
  ASSERT_TRUE(IsOk(lifted.status));
  EXPECT_EQ(lifted.response.writer_epoch(), 42U);
  EXPECT_EQ(lifted.response.manifest().version(), 2U);
  ExpectFenced(client().CheckFence(shard, 41).status, shard, 41, 42, "restored");

  request.set_epoch_floor(7);
  EXPECT_EQ(client().Call(request).response.writer_epoch(), 43U) << "a lower floor changes nothing";
}

TEST_F(FencingTest, EpochFloorWorksOnAFreshShard) {
  const Shard shard = FreshShard();
  auto request = ClaimOf(shard, "restored");
  request.set_epoch_floor(kEpochJumpMax);
  const auto claim = client().Call(request);
  ASSERT_TRUE(IsOk(claim.status));
  EXPECT_EQ(claim.response.writer_epoch(), kEpochJumpMax + 1);
  EXPECT_EQ(claim.response.manifest().version(), 1U);
}

TEST_F(FencingTest, EpochFloorTooFarUpIsRefusedWithoutEffect) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  const NothingMoves guard(client(), shard);
  for (const uint64_t floor : {kEpochJumpMax + 2, kMaxNumber - 1, kMaxNumber}) {
    auto request = ClaimOf(shard, "writer");
    request.set_epoch_floor(floor);
    const auto refused = client().Call(request);
    EXPECT_TRUE(
        Refused(refused.status, StatusCode::INVALID_ARGUMENT, "EPOCH_FLOOR_TOO_HIGH", shard));
    EXPECT_THAT(BadFields(refused.status), ::testing::ElementsAre("epoch_floor"));
  }
}

TEST_F(FencingTest, RefusedFloorDoesNotMakeAShard) {
  const Shard shard = FreshShard();
  const NothingMoves guard(client(), shard);
  auto request = ClaimOf(shard, "writer");
  request.set_epoch_floor(kEpochJumpMax + 1);
  EXPECT_TRUE(Refused(client().Call(request).status, StatusCode::INVALID_ARGUMENT,
                      "EPOCH_FLOOR_TOO_HIGH", shard));
}

}  // namespace
}  // namespace claimd::e2e
