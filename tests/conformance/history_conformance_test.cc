#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"

#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"
#include "tests/conformance/store_conformance.h"

namespace claimd::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HistoryConformanceTest : public StoreConformanceTest {
 protected:
  const ShardKey key_ = KeyOf("t", 1);
};

INSTANTIATE_TEST_SUITE_P(History, HistoryConformanceTest, ::testing::ValuesIn(AllStores()), NameOf);

// "r1" … "rN".
std::vector<std::string> Ids(int count) {
  std::vector<std::string> ids;
  for (int i = 1; i <= count; ++i) ids.push_back(absl::StrCat("r", i));
  return ids;
}

TEST_P(HistoryConformanceTest, KeepsExactlySoManyVersionsWithTheirRequestIds) {
  ManifestStore* store = Open({.history_versions = 3});
  ShardRecordPtr head = MustSwap(store, Create(key_, "r1"));
  head = MustSwap(store, Commit(key_, head, "r2"));
  head = MustSwap(store, Commit(key_, head, "r3"));
  EXPECT_THAT(KeptVersions(store, key_), ElementsAre(3, 2, 1));
  EXPECT_THAT(Remembered(store, key_, Ids(3)), ElementsAre("r1", "r2", "r3"));
  head = MustSwap(store, Commit(key_, head, "r4"));
  EXPECT_THAT(KeptVersions(store, key_), ElementsAre(4, 3, 2));
  EXPECT_THAT(Remembered(store, key_, Ids(4)), ElementsAre("r2", "r3", "r4"));
  EXPECT_TRUE(absl::IsNotFound(LoadVersion(store, key_, 1).status()));
}

TEST_P(HistoryConformanceTest, WithOneVersionOnlyTheHeadIsKept) {
  ManifestStore* store = Open({.history_versions = 1});
  ShardRecordPtr head = MustSwap(store, Create(key_, "r1"));
  head = MustSwap(store, Commit(key_, head, "r2"));
  head = MustSwap(store, Commit(key_, head, "r3"));
  EXPECT_THAT(KeptVersions(store, key_), ElementsAre(3));
  EXPECT_THAT(Remembered(store, key_, Ids(3)), ElementsAre("r3"));
}

TEST_P(HistoryConformanceTest, VersionNeverChangesWhileItIsKept) {
  ManifestStore* store = Open({.history_versions = 3});
  ShardRecordPtr head = MustSwap(store, Create(key_, "r1"));
  const std::string first = head->SerializeAsString();
  for (const char* id : {"r2", "r3"}) {
    head = MustSwap(store, Claim(key_, head, id));
    const auto kept = LoadVersion(store, key_, 1);
    ASSERT_TRUE(kept.ok()) << kept.status();
    EXPECT_EQ((*kept)->SerializeAsString(), first);
  }
}

TEST_P(HistoryConformanceTest, RequestIdOfAHeldClaimOutlivesItsVersion) {
  ManifestStore* store = Open({.history_versions = 2});
  ShardRecordPtr head = MustSwap(store, Claim(key_, nullptr, "claim"));
  for (int i = 1; i <= 5; ++i) head = MustSwap(store, Commit(key_, head, absl::StrCat("r", i)));
  EXPECT_THAT(KeptVersions(store, key_), ElementsAre(6, 5));
  EXPECT_THAT(Remembered(store, key_, {"claim", "r3", "r4", "r5"}),
              ElementsAre("claim", "r4", "r5"));
}

TEST_P(HistoryConformanceTest, RequestIdOfAClaimGoesWithItsEntryOfTheClaimHistory) {
  ManifestStore* store = Open({.history_versions = 2, .claim_history = 2});
  ShardRecordPtr head;
  for (int i = 1; i <= 4; ++i) head = MustSwap(store, Claim(key_, head, absl::StrCat("r", i)));
  // r4 holds; r3 and r2 have ended and are kept.
  EXPECT_THAT(KeptClaims(store, key_), ElementsAre(3, 2));
  EXPECT_THAT(Remembered(store, key_, Ids(4)), ElementsAre("r2", "r3", "r4"));
  head = MustSwap(store, Release(key_, head, "release"));
  EXPECT_THAT(KeptClaims(store, key_), ElementsAre(4, 3));
  EXPECT_THAT(Remembered(store, key_, Ids(4)), ElementsAre("r3", "r4"));
}

TEST_P(HistoryConformanceTest, IdThatWasUsedAgainIsNotForgottenWithItsOldClaim) {
  ManifestStore* store = Open({.history_versions = 2, .claim_history = 1});
  ShardRecordPtr head = MustSwap(store, Claim(key_, nullptr, "again"));
  head = MustSwap(store, Claim(key_, head, "again"));    // ends claim 1
  head = MustSwap(store, Claim(key_, head, "another"));  // ends claim 2, claim 1 falls out
  EXPECT_THAT(KeptClaims(store, key_), ElementsAre(2));
  EXPECT_THAT(Remembered(store, key_, {"again"}), ElementsAre("again"));
}

TEST_P(HistoryConformanceTest, ClaimHistoryTellsHowEachClaimEnded) {
  ManifestStore* store = Open();
  ShardRecordPtr head = MustSwap(store, Claim(key_, nullptr, "r1"));
  head = MustSwap(store, Claim(key_, head, "r2"));
  head = MustSwap(store, Release(key_, head, "r3"));
  head = MustSwap(store, Commit(key_, head, "r4"));
  const auto page = ListClaims(store, {.key = key_});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->claims.size(), 2);
  EXPECT_EQ(page->next_before, 0);
  EXPECT_EQ(page->claims[0].sequence, 2);
  EXPECT_EQ(page->claims[0].record.claim().request_id(), "r2");
  EXPECT_EQ(page->claims[0].record.end_reason(), v1::CLAIM_END_REASON_RELEASED);
  EXPECT_EQ(page->claims[1].sequence, 1);
  EXPECT_EQ(page->claims[1].record.end_reason(), v1::CLAIM_END_REASON_SUPERSEDED);
}

TEST_P(HistoryConformanceTest, SwapThatOnlyRemembersKeepsTheVersion) {
  ManifestStore* store = Open({.history_versions = 2});
  ShardRecordPtr head = MustSwap(store, Create(key_, "r1"));
  const uint64_t revision = store->Info().revision;
  head = MustSwap(store, Remember(key_, head, "r2"));
  EXPECT_GT(store->Info().revision, revision);
  EXPECT_THAT(KeptVersions(store, key_), ElementsAre(1));
  EXPECT_EQ(Load(store, key_)->record->SerializeAsString(), head->SerializeAsString());
  EXPECT_THAT(Remembered(store, key_, Ids(2)), ElementsAre("r1", "r2"));
  // Both go when their version goes.
  head = MustSwap(store, Commit(key_, head, "r3"));
  EXPECT_THAT(Remembered(store, key_, Ids(3)), ElementsAre("r1", "r2", "r3"));
  head = MustSwap(store, Commit(key_, head, "r4"));
  EXPECT_THAT(Remembered(store, key_, Ids(4)), ElementsAre("r3", "r4"));
}

TEST_P(HistoryConformanceTest, SwapThatOnlyRemembersNeedsTheVersion) {
  ManifestStore* store = Open();
  const ShardRecordPtr v1 = MustSwap(store, Create(key_, "r1"));
  MustSwap(store, Commit(key_, v1, "r2"));
  EXPECT_EQ(KindOf(Swap(store, Remember(key_, v1, "r3"))), "conflict");
}

TEST_P(HistoryConformanceTest, IdsThatTheHeadNoLongerNamesAreForgotten) {
  ManifestStore* store = Open();
  ShardRecordPtr head = MustSwap(store, Claim(key_, nullptr, "r1"));
  head = MustSwap(store, Remember(key_, head, "r2", 2));
  head = MustSwap(store, Remember(key_, head, "r3", 2));
  EXPECT_THAT(Remembered(store, key_, Ids(3)), ElementsAre("r1", "r3"));
}

TEST_P(HistoryConformanceTest, DropRemovesVersionsAndKeepsClaims) {
  ManifestStore* store = Open();
  ShardRecordPtr head = MustSwap(store, Claim(key_, nullptr, "claim1"));
  head = MustSwap(store, Commit(key_, head, "commit"));
  head = MustSwap(store, Claim(key_, head, "claim2"));
  head = MustSwap(store, Remember(key_, head, "noop"));
  head = MustSwap(store, Drop(key_, head, "drop"));
  EXPECT_THAT(KeptVersions(store, key_), ElementsAre(4));
  EXPECT_TRUE(absl::IsNotFound(LoadVersion(store, key_, 3).status()));
  EXPECT_THAT(KeptClaims(store, key_), ElementsAre(2, 1));
  EXPECT_THAT(Remembered(store, key_, {"claim1", "commit", "claim2", "noop", "drop"}),
              ElementsAre("claim1", "claim2", "drop"));
}

TEST_P(HistoryConformanceTest, ShardThatIsMadeAgainGoesOnFromTheTombstone) {
  ManifestStore* store = Open({.history_versions = 3});
  ShardRecordPtr head = MustSwap(store, Create(key_, "r1"));
  head = MustSwap(store, Commit(key_, head, "r2"));
  head = MustSwap(store, Drop(key_, head, "drop"));
  head = MustSwap(store, Recreate(key_, head, "r4"));
  EXPECT_THAT(KeptVersions(store, key_), ElementsAre(4, 3));
  EXPECT_THAT(Remembered(store, key_, {"r1", "r2", "drop", "r4"}), ElementsAre("drop", "r4"));
  head = MustSwap(store, Commit(key_, head, "r5"));
  head = MustSwap(store, Commit(key_, head, "r6"));
  EXPECT_THAT(KeptVersions(store, key_), ElementsAre(6, 5, 4));
  EXPECT_THAT(Remembered(store, key_, {"drop", "r4", "r5", "r6"}), ElementsAre("r4", "r5", "r6"));
}

TEST_P(HistoryConformanceTest, DropAgainAfterMakingAgainLeavesNothingOfEitherLife) {
  ManifestStore* store = Open();
  ShardRecordPtr head = MustSwap(store, Create(key_, "r1"));
  head = MustSwap(store, Drop(key_, head, "r2"));
  head = MustSwap(store, Recreate(key_, head, "r3"));
  head = MustSwap(store, Drop(key_, head, "r4"));
  EXPECT_THAT(KeptVersions(store, key_), ElementsAre(4));
  EXPECT_THAT(Remembered(store, key_, Ids(4)), ElementsAre("r4"));
}

TEST_P(HistoryConformanceTest, NeighboursKeepTheirHistory) {
  ManifestStore* store = Open({.history_versions = 2});
  std::vector<ShardKey> keys = {KeyOf("t", 1), KeyOf("t", 2), KeyOf("ta", 1)};
  std::vector<ShardRecordPtr> heads(keys.size());
  for (int round = 1; round <= 3; ++round) {
    for (size_t i = 0; i < keys.size(); ++i) {
      heads[i] = MustSwap(store, Claim(keys[i], heads[i], absl::StrCat("r", round)));
    }
  }
  MustSwap(store, Drop(keys[1], heads[1], "drop"));
  EXPECT_THAT(KeptVersions(store, keys[0]), ElementsAre(3, 2));
  EXPECT_THAT(KeptVersions(store, keys[1]), ElementsAre(4));
  EXPECT_THAT(KeptVersions(store, keys[2]), ElementsAre(3, 2));
  EXPECT_THAT(KeptClaims(store, keys[2]), ElementsAre(2, 1));
}

TEST_P(HistoryConformanceTest, PagesOfVersionsAreBoundedByBytes) {
  ManifestStore* store = Open();
  ShardRecordPtr head = MustSwap(store, Create(key_, "r1"));
  head = MustSwap(store, Commit(key_, head, "r2"));
  head = MustSwap(store, Commit(key_, head, "r3"));
  const auto page = ListVersions(store, {.key = key_, .bytes_max = 1});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->records.size(), 1);
  EXPECT_EQ(page->records[0]->manifest().version(), 3);
  EXPECT_EQ(page->next_before, 3);
  const auto last = ListVersions(store, {.key = key_, .before = 2, .bytes_max = 1});
  ASSERT_TRUE(last.ok()) << last.status();
  ASSERT_EQ(last->records.size(), 1);
  EXPECT_EQ(last->next_before, 0);
}

TEST_P(HistoryConformanceTest, PagesOfClaimsAreBoundedByBytes) {
  ManifestStore* store = Open();
  ShardRecordPtr head;
  for (const char* id : {"r1", "r2", "r3"}) head = MustSwap(store, Claim(key_, head, id));
  const auto page = ListClaims(store, {.key = key_, .bytes_max = 1});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->claims.size(), 1);
  EXPECT_EQ(page->next_before, 2);
}

TEST_P(HistoryConformanceTest, VersionsBeforeOneThatIsYetToComeStartWithTheHead) {
  ManifestStore* store = Open();
  ShardRecordPtr head = MustSwap(store, Create(key_, "r1"));
  head = MustSwap(store, Commit(key_, head, "r2"));
  const auto page = ListVersions(store, {.key = key_, .before = 100});
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->records.size(), 2);
  EXPECT_EQ(page->records[0]->manifest().version(), 2);
  const auto none = ListVersions(store, {.key = key_, .before = 1});
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(none->records, IsEmpty());
}

}  // namespace
}  // namespace claimd::store
