#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/state_fingerprint.h"

// What the histories of versions and claims answer, and how much of them is kept.
namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;
using ::testing::ElementsAre;

std::vector<uint64_t> VersionsOf(const std::vector<v1::ShardManifest>& manifests) {
  std::vector<uint64_t> versions;
  versions.reserve(manifests.size());
  for (const auto& manifest : manifests) versions.push_back(manifest.version());
  return versions;
}

class HistoryTest : public SharedServerTest {};

TEST_F(HistoryTest, EveryVersionStaysAsItWasAnswered) {
  const Shard shard = FreshShard();
  std::vector<v1::ShardManifest> answered;
  answered.push_back(client().Claim(shard, "a").response.manifest());
  answered.push_back(client().Call(FlushAfter(answered.back())).response.manifest());
  answered.push_back(client().Claim(shard, "b").response.manifest());
  answered.push_back(client().Seal(shard).response.manifest());
  answered.push_back(client().Unseal(shard).response.manifest());

  const auto listed = AllVersions(client(), shard);
  ASSERT_THAT(VersionsOf(listed), ElementsAre(5, 4, 3, 2, 1));
  for (size_t i = 0; i < answered.size(); ++i) {
    EXPECT_EQ(Bytes(listed[answered.size() - 1 - i]), Bytes(answered[i]));
    auto get = For<v1::GetManifestRequest>(shard);
    get.set_version(i + 1);
    EXPECT_EQ(Bytes(client().Call(get).response.manifest()), Bytes(answered[i]));
  }
}

TEST_F(HistoryTest, BasicViewLeavesOutSsTablesOnly) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "writer");
  auto flush = FlushAfter(claim.response.manifest());
  (*flush.mutable_manifest()->mutable_annotations())["a"] = "b";
  auto expected = client().Call(flush).response.manifest();
  expected.clear_sstables();
  const auto basic = client().Call(For<v1::ListManifestVersionsRequest>(shard));
  ASSERT_TRUE(IsOk(basic.status));
  EXPECT_EQ(Bytes(basic.response.manifests(0)), Bytes(expected));
}

TEST_F(HistoryTest, VersionThatIsNotThereIsNotFound) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  auto get = For<v1::GetManifestRequest>(shard);
  get.set_version(2);
  const auto refused = client().Call(get);
  EXPECT_TRUE(Refused(refused.status, StatusCode::NOT_FOUND, "VERSION_NOT_FOUND", shard));
  const Shard unknown = FreshShard();
  EXPECT_TRUE(
      Refused(client().Get(unknown).status, StatusCode::NOT_FOUND, "SHARD_NOT_FOUND", unknown));
  EXPECT_TRUE(Refused(client().Call(For<v1::ListManifestVersionsRequest>(unknown)).status,
                      StatusCode::NOT_FOUND, "SHARD_NOT_FOUND", unknown));
  EXPECT_TRUE(Refused(client().Call(For<v1::ListClaimsRequest>(unknown)).status,
                      StatusCode::NOT_FOUND, "SHARD_NOT_FOUND", unknown));
}

TEST_F(HistoryTest, ClaimsSayWhoHeldTheShardAndWhyNoLonger) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "a").status));
  ASSERT_TRUE(IsOk(client().Claim(shard, "b").status));
  auto release = For<v1::ReleaseEpochRequest>(shard);
  release.set_writer_epoch(2);
  ASSERT_TRUE(IsOk(client().Call(release).status));
  ASSERT_TRUE(IsOk(client().Claim(shard, "c").status));

  const auto claims = AllClaims(client(), shard);
  ASSERT_EQ(claims.size(), 3U);
  EXPECT_EQ(claims[0].claim().claimant(), "c");
  EXPECT_EQ(claims[0].end_reason(), v1::CLAIM_END_REASON_UNSPECIFIED);
  EXPECT_FALSE(claims[0].has_end_time());
  EXPECT_EQ(claims[1].claim().claimant(), "b");
  EXPECT_EQ(claims[1].end_reason(), v1::CLAIM_END_REASON_RELEASED);
  EXPECT_EQ(claims[1].next_writer_epoch(), 0U);
  EXPECT_TRUE(claims[1].has_end_time());
  EXPECT_EQ(claims[2].claim().claimant(), "a");
  EXPECT_EQ(claims[2].claim().writer_epoch(), 1U);
  EXPECT_EQ(claims[2].end_reason(), v1::CLAIM_END_REASON_SUPERSEDED);
  EXPECT_EQ(claims[2].next_writer_epoch(), 2U);
}

TEST_F(HistoryTest, PagesOfVersionsAndClaimsJoinWithoutGap) {
  const Shard shard = FreshShard();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(IsOk(client().Claim(shard, absl::StrCat(i)).status));
  auto versions = For<v1::ListManifestVersionsRequest>(shard);
  versions.set_page_size(3);
  std::vector<v1::ShardManifest> all_versions;
  int pages = 0;
  do {
    const auto page = client().Call(versions);
    ASSERT_TRUE(IsOk(page.status));
    EXPECT_LE(page.response.manifests_size(), 3);
    all_versions.insert(all_versions.end(), page.response.manifests().begin(),
                        page.response.manifests().end());
    versions.set_page_token(page.response.next_page_token());
    // What is written meanwhile is newer than where the listing stands.
    ASSERT_TRUE(IsOk(client().Claim(shard, "meanwhile").status));
  } while (!versions.page_token().empty() && ++pages < 20);
  EXPECT_THAT(VersionsOf(all_versions), ElementsAre(10, 9, 8, 7, 6, 5, 4, 3, 2, 1));

  auto claims = For<v1::ListClaimsRequest>(shard);
  claims.set_page_size(4);
  std::vector<uint64_t> epochs;
  do {
    const auto page = client().Call(claims);
    ASSERT_TRUE(IsOk(page.status));
    EXPECT_LE(page.response.claims_size(), 4);
    for (const auto& record : page.response.claims()) {
      epochs.push_back(record.claim().writer_epoch());
    }
    claims.set_page_token(page.response.next_page_token());
    if (epochs.size() == 4U) {
      ASSERT_TRUE(IsOk(client().Claim(shard, "meanwhile").status));
    }
  } while (!claims.page_token().empty() && epochs.size() < 100U);
  EXPECT_THAT(epochs, ElementsAre(14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1));
}

class RetentionTest : public SharedServerTest {
 protected:
  static void SetUpTestSuite() {
    ServerProcess::Options options;
    options.flags = {"--history-versions=4", "--claim-history=6"};
    StartServer(options);
  }
};

TEST_F(RetentionTest, OnlyTheNewestVersionsAndClaimsAreKept) {
  const Shard shard = FreshShard();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  EXPECT_THAT(VersionsOf(AllVersions(client(), shard)), ElementsAre(20, 19, 18, 17));
  auto get = For<v1::GetManifestRequest>(shard);
  get.set_version(16);
  EXPECT_TRUE(
      Refused(client().Call(get).status, StatusCode::NOT_FOUND, "VERSION_NOT_FOUND", shard));
  // Six that ended, and the one that holds.
  const auto claims = AllClaims(client(), shard);
  ASSERT_EQ(claims.size(), 7U);
  EXPECT_EQ(claims.front().claim().writer_epoch(), 20U);
  EXPECT_EQ(claims.back().claim().writer_epoch(), 14U);
}

TEST_F(RetentionTest, LimitsInForceAreTold) {
  const auto info = client().Call(v1::GetServerInfoRequest());
  EXPECT_EQ(info.response.limits().history_versions(), 4U);
  EXPECT_EQ(info.response.limits().claim_history(), 6U);
}

TEST_F(RetentionTest, ClaimIsReplayedAfterItsVersionFellOut) {
  const Shard shard = FreshShard();
  auto request = ClaimOf(shard, "writer");
  request.set_request_id(RandomUuid());
  auto manifest = client().Call(request).response.manifest();
  for (int i = 0; i < 10; ++i) {
    manifest = client().Call(CommitAfter(manifest)).response.manifest();
  }
  ASSERT_EQ(manifest.version(), 11U);
  const NothingMoves guard(client(), shard);
  const auto again = client().Call(request);
  ASSERT_TRUE(IsOk(again.status));
  EXPECT_EQ(again.response.writer_epoch(), 1U);
  EXPECT_EQ(again.response.manifest().version(), 11U) << "the newest, as its own is not kept";
}

TEST_F(RetentionTest, SupersededClaimIsRememberedWhileItsRecordIsKept) {
  const Shard shard = FreshShard();
  auto request = ClaimOf(shard, "first");
  request.set_request_id(RandomUuid());
  ASSERT_TRUE(IsOk(client().Call(request).status));
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(IsOk(client().Claim(shard, "later").status));
  ASSERT_EQ(AllClaims(client(), shard).back().claim().claimant(), "first");
  EXPECT_TRUE(
      Refused(client().Call(request).status, StatusCode::ABORTED, "CLAIM_SUPERSEDED", shard));
  ASSERT_TRUE(IsOk(client().Claim(shard, "later").status));
  ASSERT_EQ(AllClaims(client(), shard).back().claim().claimant(), "later");
  EXPECT_EQ(client().Call(request).response.writer_epoch(), 9U)
      << "forgotten with its record, so it is a new claim";
}

TEST_F(RetentionTest, CommitIdIsForgottenWithItsVersion) {
  const Shard shard = FreshShard();
  auto manifest = client().Claim(shard, "writer").response.manifest();
  auto first = CommitAfter(manifest);
  first.set_request_id(RandomUuid());
  manifest = client().Call(first).response.manifest();
  for (int i = 0; i < 4; ++i) {
    manifest = client().Call(CommitAfter(manifest)).response.manifest();
  }
  const NothingMoves guard(client(), shard);
  EXPECT_TRUE(Refused(client().Call(first).status, StatusCode::ABORTED, "MANIFEST_VERSION_CONFLICT",
                      shard));
}

}  // namespace
}  // namespace claimd::e2e
