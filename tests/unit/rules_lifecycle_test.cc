// Initialise, release, seal, unseal, drop, import.
#include <string>

#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/errors.h"
#include "server/arbiter/invariants.h"
#include "server/arbiter/rules.h"
#include "tests/unit/rules_test_util.h"

namespace claimd::arbiter {
namespace {

v1::InitializeShardRequest InitializeRequest(uint32_t spec) {
  v1::InitializeShardRequest request;
  request.set_table("t");
  request.set_shard_id(kId);
  request.set_shard_spec_id(spec);
  return request;
}

TEST(ApplyInitializeTest, MakesAShardThatNobodyClaimed) {
  const auto change = ApplyInitialize(At(nullptr), InitializeRequest(1));
  ASSERT_TRUE(change.ok() && change->has_value());
  EXPECT_EQ((*change)->next.manifest().version(), 1U);
  EXPECT_EQ((*change)->next.manifest().writer_epoch(), 0U);
  EXPECT_FALSE((*change)->next.manifest().has_claim());
}

TEST(ApplyInitializeTest, TheSameIdentityAgainChangesNothing) {
  const ShardRecord head = LiveHead();
  const auto change = ApplyInitialize(At(&head), InitializeRequest(1));
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_FALSE(change->has_value());
}

TEST(ApplyInitializeTest, AnotherIdentityIsRefused) {
  const ShardRecord head = LiveHead();
  EXPECT_EQ(ReasonOf(ApplyInitialize(At(&head), InitializeRequest(0)).status()),
            "SHARD_SPEC_MISMATCH");
  v1::InitializeShardRequest request = InitializeRequest(1);
  (*request.mutable_shard_field_values())["a"] = "b";
  EXPECT_EQ(ReasonOf(ApplyInitialize(At(&head), request).status()), "SHARD_IDENTITY_CONFLICT");
}

TEST(ApplyInitializeTest, ADroppedShardMadeAnewFencesItsFirstLife) {
  const ShardRecord tombstone = Tombstone();
  const auto change = ApplyInitialize(At(&tombstone), InitializeRequest(2));
  ASSERT_TRUE(change.ok() && change->has_value());
  const v1::ShardManifest& next = (*change)->next.manifest();
  EXPECT_EQ(next.version(), 10U);
  EXPECT_EQ(next.writer_epoch(), 5U);
  EXPECT_EQ(ReasonOf(CheckEpoch(At(&tombstone).key, next, 4)), "WRITER_FENCED");
  EXPECT_TRUE(CheckTransition(&tombstone, (*change)->next).ok());
}

v1::ReleaseEpochRequest ReleaseRequest(uint64_t epoch) {
  v1::ReleaseEpochRequest request;
  request.set_writer_epoch(epoch);
  return request;
}

TEST(ApplyReleaseTest, ClearsTheClaimAndKeepsTheEpoch) {
  const ShardRecord head = LiveHead();
  const auto change = ApplyRelease(At(&head), ReleaseRequest(3));
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_FALSE(change->next.manifest().has_claim());
  EXPECT_EQ(change->next.manifest().writer_epoch(), 3U);
  EXPECT_EQ(change->ended_claim->end_reason(), v1::CLAIM_END_REASON_RELEASED);
  EXPECT_EQ(change->ended_claim->next_writer_epoch(), 0U);
}

TEST(ApplyReleaseTest, OnlyTheStoredEpochReleases) {
  const ShardRecord head = LiveHead();
  const ShardRecord tombstone = Tombstone();
  EXPECT_EQ(ReasonOf(ApplyRelease(At(&head), ReleaseRequest(2)).status()), "WRITER_FENCED");
  EXPECT_EQ(ReasonOf(ApplyRelease(At(&head), ReleaseRequest(4)).status()), "EPOCH_FROM_FUTURE");
  EXPECT_EQ(ReasonOf(ApplyRelease(At(nullptr), ReleaseRequest(1)).status()), "SHARD_NOT_FOUND");
  EXPECT_EQ(ReasonOf(ApplyRelease(At(&tombstone), ReleaseRequest(4)).status()), "SHARD_NOT_FOUND");
}

TEST(ApplySealTest, SealsAndUnsealsAndRemembersWhatChangedNothing) {
  const ShardRecord head = LiveHead();
  const auto sealed = ApplySeal(At(&head));
  ASSERT_TRUE(sealed.ok());
  EXPECT_EQ(sealed->next.manifest().status(), v1::SHARD_STATUS_SEALED);
  EXPECT_EQ(sealed->next.manifest().version(), 6U);
  EXPECT_TRUE(sealed->next.manifest().has_claim()) << "the incumbent has to drain";
  Situation again = At(&sealed->next);
  again.request_id = "second";
  const auto twice = ApplySeal(again);
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(twice->next.manifest().ShortDebugString(), sealed->next.manifest().ShortDebugString());
  ASSERT_EQ(twice->next.request_ids_size(), 2);
  EXPECT_EQ(twice->next.request_ids(1), "second");
  EXPECT_TRUE(CheckTransition(&sealed->next, twice->next).ok());
  const auto unsealed = ApplyUnseal(At(&sealed->next));
  ASSERT_TRUE(unsealed.ok());
  EXPECT_EQ(unsealed->next.manifest().status(), v1::SHARD_STATUS_ACTIVE);
  EXPECT_EQ(unsealed->next.manifest().version(), 7U);
}

TEST(ApplySealTest, ALoopOfSealsDoesNotGrowTheHead) {
  ShardRecord head = LiveHead();
  for (int i = 0; i < 100; ++i) {
    Situation at = At(&head);
    at.request_id = "seal-" + std::to_string(i);
    ShardRecord next = ApplySeal(at)->next;
    head.Swap(&next);
  }
  EXPECT_LE(head.request_ids_size(), 18);
  EXPECT_EQ(head.request_ids(0), "seal-0") << "the one that made the version is kept";
  EXPECT_EQ(head.request_ids(head.request_ids_size() - 1), "seal-99");
}

TEST(ApplyDropTest, LeavesOnlyVersionAndEpoch) {
  ShardRecord head = LiveHead();
  EXPECT_EQ(ReasonOf(ApplyDrop(At(&head), {}).status()), "SHARD_NOT_SEALED");
  head.mutable_manifest()->set_status(v1::SHARD_STATUS_SEALED);
  v1::DropShardRequest request;
  request.set_expected_epoch(2);
  EXPECT_EQ(ReasonOf(ApplyDrop(At(&head), request).status()), "EPOCH_MISMATCH");
  request.set_expected_epoch(3);
  const auto change = ApplyDrop(At(&head), request);
  ASSERT_TRUE(change.ok()) << change.status();
  const v1::ShardManifest& tombstone = change->next.manifest();
  EXPECT_EQ(tombstone.status(), v1::SHARD_STATUS_DROPPED);
  EXPECT_EQ(tombstone.version(), 6U);
  EXPECT_EQ(tombstone.writer_epoch(), 3U);
  EXPECT_EQ(tombstone.sstables_size(), 0);
  EXPECT_EQ(tombstone.annotations_size(), 0);
  EXPECT_EQ(change->ended_claim->end_reason(), v1::CLAIM_END_REASON_DROPPED);
  EXPECT_EQ(change->next.first_version(), 6U);
  EXPECT_TRUE(CheckTransition(&head, change->next).ok());
  EXPECT_EQ(ReasonOf(ApplyDrop(At(&change->next), request).status()), "SHARD_NOT_FOUND");
}

v1::ShardManifest Importable() {
  v1::ShardManifest manifest = LiveHead().manifest();
  manifest.clear_claim();
  return manifest;
}

TEST(ApplyImportTest, KeepsVersionEpochAndSsTables) {
  const v1::ShardManifest manifest = Importable();
  const auto change = ApplyImport(At(nullptr), manifest, TestLimits());
  ASSERT_TRUE(change.ok() && change->has_value());
  EXPECT_EQ((*change)->next.manifest().ShortDebugString(), manifest.ShortDebugString());
  EXPECT_EQ((*change)->next.first_version(), 5U);
}

TEST(ApplyImportTest, OnlyOntoAShardThatDoesNotExistUnlessItIsTheSame) {
  v1::ShardManifest manifest = Importable();
  manifest.clear_update_time();
  const auto first = ApplyImport(At(nullptr), manifest, TestLimits());
  ASSERT_TRUE(first.ok());
  const ShardRecord stored = (*first)->next;
  Situation later = At(&stored);
  later.now += absl::Hours(1);
  const auto again = ApplyImport(later, manifest, TestLimits());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->has_value());
  manifest.set_writer_epoch(8);
  EXPECT_EQ(ReasonOf(ApplyImport(later, manifest, TestLimits()).status()), "SHARD_EXISTS");
  const ShardRecord tombstone = Tombstone();
  EXPECT_EQ(ReasonOf(ApplyImport(At(&tombstone), manifest, TestLimits()).status()), "SHARD_EXISTS");
}

TEST(ApplyImportTest, RefusesWhatAShardCannotBe) {
  const auto refusal = [](auto spoil) {
    v1::ShardManifest manifest = Importable();
    spoil(&manifest);
    return ReasonOf(ApplyImport(At(nullptr), manifest, TestLimits()).status());
  };
  EXPECT_EQ(refusal([](auto* m) { m->set_version(0); }), "INVALID_MANIFEST");
  EXPECT_EQ(refusal([](auto* m) { m->set_version(kMax); }), "INVALID_MANIFEST");
  EXPECT_EQ(refusal([](auto* m) { m->set_writer_epoch(kMax); }), "INVALID_MANIFEST");
  EXPECT_EQ(refusal([](auto* m) { m->set_current_generation(0); }), "INVALID_MANIFEST");
  EXPECT_EQ(refusal([](auto* m) { m->set_status(v1::SHARD_STATUS_DROPPED); }), "INVALID_MANIFEST");
  EXPECT_EQ(refusal([](auto* m) { m->set_status(static_cast<v1::ShardStatus>(9)); }),
            "INVALID_MANIFEST");
  EXPECT_EQ(refusal([](auto* m) { m->mutable_claim()->set_writer_epoch(2); }), "INVALID_MANIFEST");
  EXPECT_EQ(refusal([](auto* m) { m->add_sstables()->set_generation(2); }), "INVALID_MANIFEST");
  EXPECT_EQ(refusal([](auto* m) { m->set_status(v1::SHARD_STATUS_SEALED); }), "");
}

}  // namespace
}  // namespace claimd::arbiter
