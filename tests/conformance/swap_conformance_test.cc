#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"
#include "tests/conformance/store_conformance.h"

namespace claimd::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

INSTANTIATE_TEST_SUITE_P(Swap, StoreConformanceTest, ::testing::ValuesIn(AllStores()), NameOf);

const SwapConflict& ConflictIn(const SwapOutcome& outcome) {
  static const auto* const none = new SwapConflict();
  EXPECT_EQ(KindOf(outcome), "conflict");
  const auto* conflict = std::get_if<SwapConflict>(&outcome);
  return conflict == nullptr ? *none : *conflict;
}

TEST_P(StoreConformanceTest, ShardThatWasNeverMadeIsAbsent) {
  ManifestStore* store = Open();
  const auto state = Load(store, KeyOf("t", 1), "r");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->record, nullptr);
  EXPECT_FALSE(state->applied.has_value());
  EXPECT_TRUE(absl::IsNotFound(LoadVersion(store, KeyOf("t", 1), 1).status()));
  EXPECT_THAT(KeptVersions(store, KeyOf("t", 1)), IsEmpty());
  EXPECT_THAT(KeptClaims(store, KeyOf("t", 1)), IsEmpty());
}

TEST_P(StoreConformanceTest, SwapOnNothingMakesTheShard) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  SwapRequest create = Create(key, "r1");
  (*std::const_pointer_cast<storage::v1::ShardRecord>(create.next)
        ->mutable_manifest()
        ->mutable_shard_field_values())["7"] = std::string("\x00\xff", 2);
  const ShardRecordPtr made = MustSwap(store, create);
  const auto state = Load(store, key);
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_NE(state->record, nullptr);
  EXPECT_EQ(state->record->SerializeAsString(), made->SerializeAsString());
  EXPECT_FALSE(state->applied.has_value()) << "no request id was asked about";
}

TEST_P(StoreConformanceTest, TombstoneIsNotAbsence) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  const ShardRecordPtr made = MustSwap(store, Create(key, "r1"));
  const ShardRecordPtr tombstone = MustSwap(store, Drop(key, made, "r2"));
  const auto state = Load(store, key);
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_NE(state->record, nullptr);
  EXPECT_EQ(state->record->manifest().status(), v1::SHARD_STATUS_DROPPED);
  EXPECT_EQ(ConflictIn(Swap(store, Create(key, "r3"))).current.record->manifest().version(), 2);
}

TEST_P(StoreConformanceTest, SwapOnAnotherVersionConflictsWithWhatIsThere) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  const ShardRecordPtr v1 = MustSwap(store, Create(key, "r1"));
  const ShardRecordPtr v2 = MustSwap(store, Commit(key, v1, "r2"));
  const SwapOutcome stale = Swap(store, Commit(key, v1, "r3"));
  ASSERT_NE(ConflictIn(stale).current.record, nullptr);
  EXPECT_EQ(ConflictIn(stale).current.record->SerializeAsString(), v2->SerializeAsString());
  EXPECT_FALSE(ConflictIn(stale).current.applied.has_value());
  EXPECT_EQ(KindOf(Swap(store, Create(key, "r4"))), "conflict");
}

TEST_P(StoreConformanceTest, SwapOnAVersionOfAnAbsentShardConflictsWithNothing) {
  ManifestStore* store = Open();
  const ShardRecordPtr elsewhere = MustSwap(store, Create(KeyOf("t", 1), "r1"));
  SwapRequest request = Commit(KeyOf("t", 1), elsewhere, "r2");
  request.key = KeyOf("t", 2);
  auto next = std::make_shared<storage::v1::ShardRecord>(*request.next);
  next->mutable_manifest()->set_shard_id(Create(request.key, "x").next->manifest().shard_id());
  request.next = next;
  EXPECT_EQ(ConflictIn(Swap(store, request)).current.record, nullptr);
}

TEST_P(StoreConformanceTest, ConflictHasNoEffect) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  const ShardRecordPtr v1 = MustSwap(store, Claim(key, nullptr, "r1"));
  const ShardRecordPtr v2 = MustSwap(store, Commit(key, v1, "r2"));
  const uint64_t revision = store->Info().revision;
  EXPECT_EQ(KindOf(Swap(store, Claim(key, v1, "r3"))), "conflict");
  EXPECT_EQ(store->Info().revision, revision);
  EXPECT_EQ(Load(store, key)->record->SerializeAsString(), v2->SerializeAsString());
  EXPECT_THAT(KeptVersions(store, key), ElementsAre(2, 1));
  EXPECT_THAT(KeptClaims(store, key), IsEmpty());
  EXPECT_THAT(Remembered(store, key, {"r1", "r2", "r3"}), ElementsAre("r1", "r2"));
}

TEST_P(StoreConformanceTest, ConflictTellsWhatTheRequestDid) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  const ShardRecordPtr v1 = MustSwap(store, Create(key, "r1"));
  const ShardRecordPtr v2 = MustSwap(store, Commit(key, v1, "r2"));
  MustSwap(store, Commit(key, v2, "r3"));
  const SwapOutcome again = Swap(store, Commit(key, v1, "r2"));
  ASSERT_TRUE(ConflictIn(again).current.applied.has_value());
  EXPECT_EQ(ConflictIn(again).current.applied->version(), 2);
  EXPECT_EQ(ConflictIn(again).current.record->manifest().version(), 3);
}

TEST_P(StoreConformanceTest, SwapThatLeavesOutVersionsIsNotApplied) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  const ShardRecordPtr v1 = MustSwap(store, Create(key, "r1"));
  SwapRequest request = Commit(key, v1, "r2");
  auto next = std::make_shared<storage::v1::ShardRecord>(*request.next);
  next->mutable_manifest()->set_version(3);
  request.next = next;
  EXPECT_EQ(KindOf(Swap(store, request)), "not applied");
  EXPECT_THAT(KeptVersions(store, key), ElementsAre(1));
}

TEST_P(StoreConformanceTest, SwapWithTheHeadOfAnotherShardIsNotApplied) {
  ManifestStore* store = Open();
  SwapRequest request = Create(KeyOf("t", 1), "r1");
  request.key = KeyOf("t", 2);
  EXPECT_EQ(KindOf(Swap(store, request)), "not applied");
  EXPECT_EQ(Load(store, KeyOf("t", 2))->record, nullptr);
}

TEST_P(StoreConformanceTest, ImportKeepsItsVersionAndGoesOnFromIt) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  const ShardRecordPtr imported = MustSwap(store, Import(key, 37, "r1"));
  EXPECT_THAT(KeptVersions(store, key), ElementsAre(37));
  EXPECT_TRUE(absl::IsNotFound(LoadVersion(store, key, 36).status()));
  MustSwap(store, Commit(key, imported, "r2"));
  EXPECT_THAT(KeptVersions(store, key), ElementsAre(38, 37));
}

TEST_P(StoreConformanceTest, VersionsUpToTheLargestAreKept) {
  ManifestStore* store = Open({.history_versions = 2});
  const ShardKey key = KeyOf("t", 1);
  const ShardRecordPtr imported = MustSwap(store, Import(key, UINT64_MAX - 2, "r1"));
  const ShardRecordPtr next = MustSwap(store, Commit(key, imported, "r2"));
  MustSwap(store, Commit(key, next, "r3"));
  EXPECT_THAT(KeptVersions(store, key), ElementsAre(UINT64_MAX, UINT64_MAX - 1));
}

TEST_P(StoreConformanceTest, EachChangeHasALargerRevision) {
  ManifestStore* store = Open();
  uint64_t last = store->Info().revision;
  for (uint32_t i = 0; i < 5; ++i) {
    const SwapOutcome outcome = Swap(store, Create(KeyOf("t", i), "r"));
    const auto* committed = std::get_if<SwapCommitted>(&outcome);
    ASSERT_NE(committed, nullptr);
    EXPECT_GT(committed->revision, last);
    EXPECT_EQ(store->Info().revision, committed->revision);
    last = committed->revision;
  }
}

TEST_P(StoreConformanceTest, RequestIsRememberedWithAllItSaid) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  SwapRequest claim = Claim(key, nullptr, "r1");
  claim.applied.set_created(true);
  MustSwap(store, claim);
  const auto state = Load(store, key, "r1");
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_TRUE(state->applied.has_value());
  EXPECT_EQ(state->applied->SerializeAsString(), claim.applied.SerializeAsString());
}

TEST_P(StoreConformanceTest, RequestIsRememberedForItsShardOnly) {
  ManifestStore* store = Open();
  MustSwap(store, Create(KeyOf("t", 1), "r1"));
  MustSwap(store, Create(KeyOf("t", 2), "r2"));
  MustSwap(store, Create(KeyOf("u", 1), "r3"));
  EXPECT_THAT(Remembered(store, KeyOf("t", 1), {"r1", "r2", "r3", "r", "r11"}), ElementsAre("r1"));
}

TEST_P(StoreConformanceTest, SameIdInTwoTablesIsTwoShards) {
  ManifestStore* store = Open();
  MustSwap(store, Create(KeyOf("a", 1), "r"));
  EXPECT_EQ(Load(store, KeyOf("ab", 1))->record, nullptr);
  const ShardRecordPtr other = MustSwap(store, Create(KeyOf("ab", 1), "r"));
  MustSwap(store, Commit(KeyOf("ab", 1), other, "r2"));
  EXPECT_EQ(Load(store, KeyOf("a", 1))->record->manifest().version(), 1);
}

TEST_P(StoreConformanceTest, LargeManifestComesBackWhole) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  SwapRequest request = Create(key, "r1");
  auto next = std::make_shared<storage::v1::ShardRecord>(*request.next);
  (*next->mutable_manifest()->mutable_annotations())["x"] = std::string(size_t{1} << 20U, 'x');
  request.next = next;
  const ShardRecordPtr made = MustSwap(store, request);
  MustSwap(store, Commit(key, made, "r2"));
  const auto old = LoadVersion(store, key, 1);
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ((*old)->SerializeAsString(), made->SerializeAsString());
}

TEST_P(StoreConformanceTest, GuardThatHoldsLetsTheSwapThrough) {
  ManifestStore* store = Open();
  MustSwap(store, Create(KeyOf("guard", 1), "g1"));
  SwapRequest request = Create(KeyOf("t", 1), "r1");
  request.guards = {{.key = KeyOf("guard", 1), .expected_version = 1},
                    {.key = KeyOf("guard", 2), .expected_version = 0}};
  EXPECT_EQ(KindOf(Swap(store, request)), "committed");
}

TEST_P(StoreConformanceTest, GuardThatDoesNotHoldStopsTheSwap) {
  ManifestStore* store = Open();
  const ShardRecordPtr guard = MustSwap(store, Create(KeyOf("guard", 1), "g1"));
  const ShardRecordPtr head = MustSwap(store, Create(KeyOf("t", 1), "r1"));
  MustSwap(store, Commit(KeyOf("guard", 1), guard, "g2"));
  const uint64_t revision = store->Info().revision;
  SwapRequest request = Commit(KeyOf("t", 1), head, "r2");
  request.guards = {{.key = KeyOf("guard", 1), .expected_version = 1}};
  // The conflict shows the shard that was to be changed, not the guard.
  EXPECT_EQ(ConflictIn(Swap(store, request)).current.record->SerializeAsString(),
            head->SerializeAsString());
  request.guards = {{.key = KeyOf("guard", 1), .expected_version = 0}};
  EXPECT_EQ(KindOf(Swap(store, request)), "conflict");
  request.guards = {{.key = KeyOf("guard", 2), .expected_version = 1}};
  EXPECT_EQ(KindOf(Swap(store, request)), "conflict");
  EXPECT_EQ(store->Info().revision, revision);
  EXPECT_EQ(Load(store, KeyOf("t", 1))->record->manifest().version(), 1);
}

TEST_P(StoreConformanceTest, StoresHaveIdentitiesOfTheirOwn) {
  ManifestStore* store = Open();
  const StoreInfo info = store->Info();
  const std::string token_key = store->TokenKey();
  EXPECT_GE(token_key.size(), 32);
  EXPECT_TRUE(store->Health().ok());
  EXPECT_FALSE(info.kind.empty());
  EXPECT_GT(info.format_version, 0);
  const ScopedDirectory elsewhere;
  auto other = GetParam().open(elsewhere.At("store"), {});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE((*other)->Info().store_id, info.store_id);
  EXPECT_NE((*other)->TokenKey(), token_key);
}

TEST_P(StoreConformanceTest, EverythingIsThereAfterReopening) {
  ManifestStore* store = Open();
  const ShardKey key = KeyOf("t", 1);
  const ShardRecordPtr v1 = MustSwap(store, Claim(key, nullptr, "r1"));
  const ShardRecordPtr v2 = MustSwap(store, Claim(key, v1, "r2"));
  const ShardRecordPtr v3 = MustSwap(store, Remember(key, v2, "r3"));
  MustSwap(store, Create(KeyOf("t", 2), "r4"));
  const StoreInfo before = store->Info();
  const std::string token_key = store->TokenKey();
  if (!GetParam().durable) {
    EXPECT_EQ(Open()->Info().revision, 0) << "it keeps more than it declares";
    return;
  }
  for (int i = 0; i < 3; ++i) {
    store = Open();
    EXPECT_EQ(store->Info().store_id, before.store_id);
    EXPECT_EQ(store->Info().revision, before.revision);
    EXPECT_EQ(store->TokenKey(), token_key);
    EXPECT_EQ(Load(store, key)->record->SerializeAsString(), v3->SerializeAsString());
    EXPECT_THAT(KeptVersions(store, key), ElementsAre(2, 1));
    EXPECT_THAT(KeptClaims(store, key), ElementsAre(1));
    EXPECT_THAT(Remembered(store, key, {"r1", "r2", "r3", "r4"}), ElementsAre("r1", "r2", "r3"));
  }
  const SwapOutcome next = Swap(store, Commit(key, v3, "r5"));
  ASSERT_EQ(KindOf(next), "committed");
  EXPECT_GT(std::get<SwapCommitted>(next).revision, before.revision);
}

}  // namespace
}  // namespace claimd::store
