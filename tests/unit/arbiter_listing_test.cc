#include <set>
#include <string>

#include "absl/strings/str_format.h"
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/errors.h"
#include "server/store/memory_store.h"
#include "tests/unit/arbiter_fixture.h"

namespace claimd::testing {
namespace {

using arbiter::ReasonOf;

class ArbiterListingTest : public ::testing::Test {
 protected:
  void MakeShards(int count) {
    for (int i = 0; i < count; ++i) {
      v1::ClaimEpochRequest request = ClaimRequest(i % 2);
      request.set_shard_id(absl::StrFormat("00000000-0000-4000-8000-%012d", i));
      request.set_claimant(i % 3 == 0 ? "three" : "other");
      ASSERT_TRUE(arbiter_.Claim(request).ok());
    }
  }

  store::MemoryStore memory_;
  SyncArbiter arbiter_{&memory_};
};

TEST_F(ArbiterListingTest, PagesHoldEachShardOnce) {
  MakeShards(25);
  v1::ListShardsRequest request;
  request.set_table("t");
  request.set_page_size(10);
  std::set<std::string> seen;
  int pages = 0;
  do {
    const auto page = arbiter_.ListShards(request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const auto& shard : page->shards()) EXPECT_TRUE(seen.insert(shard.shard_id()).second);
    request.set_page_token(page->next_page_token());
    ASSERT_LT(++pages, 10);
  } while (!request.page_token().empty());
  EXPECT_EQ(seen.size(), 25U);
}

TEST_F(ArbiterListingTest, FiltersHold) {
  MakeShards(12);
  v1::ListShardsRequest request;
  request.set_table("t");
  request.set_claimant("three");
  request.set_shard_spec_id(0);
  EXPECT_EQ(arbiter_.ListShards(request)->shards_size(), 2) << "shards 0 and 6";
  request.set_status(v1::SHARD_STATUS_SEALED);
  EXPECT_EQ(arbiter_.ListShards(request)->shards_size(), 0);
}

TEST_F(ArbiterListingTest, DroppedShardsAreListedOnlyWhenAskedFor) {
  ASSERT_TRUE(arbiter_.Claim(1).ok());
  ASSERT_TRUE(arbiter_.Seal().ok());
  ASSERT_TRUE(arbiter_.Drop().ok());
  v1::ListShardsRequest request;
  request.set_table("t");
  EXPECT_EQ(arbiter_.ListShards(request)->shards_size(), 0);
  request.set_status(v1::SHARD_STATUS_DROPPED);
  EXPECT_EQ(arbiter_.ListShards(request)->shards_size(), 1);
}

TEST_F(ArbiterListingTest, ATokenServesOnlyItsOwnListing) {
  MakeShards(5);
  v1::ListShardsRequest request;
  request.set_table("t");
  request.set_page_size(2);
  const std::string token = arbiter_.ListShards(request)->next_page_token();
  ASSERT_FALSE(token.empty());
  request.set_page_token(token);
  request.set_claimant("three");
  EXPECT_EQ(arbiter_.ListShards(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.clear_claimant();
  request.set_table("u");
  EXPECT_EQ(ReasonOf(arbiter_.ListShards(request).status()), "INVALID_REQUEST");
  store::MemoryStore elsewhere;
  SyncArbiter stranger(&elsewhere);
  request.set_table("t");
  EXPECT_EQ(ReasonOf(stranger.ListShards(request).status()), "INVALID_REQUEST");
  EXPECT_TRUE(arbiter_.ListShards(request).ok());
}

TEST_F(ArbiterListingTest, ClaimsAreListedNewestFirstWithTheirEnds) {
  ASSERT_TRUE(arbiter_.Claim(1, "a").ok());
  ASSERT_TRUE(arbiter_.Claim(1, "b").ok());
  ASSERT_TRUE(arbiter_.Release(2).ok());
  ASSERT_TRUE(arbiter_.Claim(1, "c").ok());
  auto request = About<v1::ListClaimsRequest>();
  request.set_page_size(1);
  std::string listed;
  do {
    const auto page = arbiter_.ListClaims(request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const auto& entry : page->claims()) {
      listed += entry.claim().request_id() + ":" + v1::ClaimEndReason_Name(entry.end_reason()) +
                (entry.has_end_time() ? " " : "(held) ");
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(listed,
            "c:CLAIM_END_REASON_UNSPECIFIED(held) b:CLAIM_END_REASON_RELEASED "
            "a:CLAIM_END_REASON_SUPERSEDED ");
}

TEST_F(ArbiterListingTest, VersionsAreListedNewestFirst) {
  ASSERT_TRUE(arbiter_.Claim(1).ok());
  ASSERT_TRUE(arbiter_.Commit(1, "x").ok());
  ASSERT_TRUE(arbiter_.Release(1).ok());
  auto request = About<v1::ListManifestVersionsRequest>();
  request.set_page_size(2);
  auto page = arbiter_.ListVersions(request);
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->manifests_size(), 2);
  EXPECT_EQ(page->manifests(0).version(), 3U);
  request.set_page_token(page->next_page_token());
  page = arbiter_.ListVersions(request);
  ASSERT_TRUE(page.ok());
  ASSERT_EQ(page->manifests_size(), 1);
  EXPECT_EQ(page->manifests(0).version(), 1U);
  request.set_shard_id("99999999-2222-4333-8444-555555555555");
  request.clear_page_token();
  EXPECT_EQ(ReasonOf(arbiter_.ListVersions(request).status()), "SHARD_NOT_FOUND");
}

}  // namespace
}  // namespace claimd::testing
