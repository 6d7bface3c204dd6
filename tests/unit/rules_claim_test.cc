#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/errors.h"
#include "server/arbiter/invariants.h"
#include "server/arbiter/rules.h"
#include "tests/unit/rules_test_util.h"

namespace claimd::arbiter {
namespace {

// Reason of the refusal, "" if the claim is granted.
std::string Refusal(const ShardRecord* head, const v1::ClaimEpochRequest& request,
                    std::optional<uint64_t> aimed = std::nullopt) {
  return ReasonOf(ApplyClaim(At(head), request, aimed, TestLimits()).status());
}

TEST(ApplyClaimTest, MakesAShardThatWasNeverMade) {
  v1::ClaimEpochRequest request = ClaimRequest(7);
  (*request.mutable_shard_field_values())["bucket"] = "\x01";
  request.set_shard_spec_fingerprint("hash");
  const auto change = ApplyClaim(At(nullptr), request, std::nullopt, TestLimits());
  ASSERT_TRUE(change.ok()) << change.status();
  const v1::ShardManifest& made = change->next.manifest();
  EXPECT_EQ(made.version(), 1U);
  EXPECT_EQ(made.writer_epoch(), 1U);
  EXPECT_EQ(made.current_generation(), 1U);
  EXPECT_EQ(made.shard_spec_id(), 7U);
  EXPECT_EQ(made.shard_field_values().at("bucket"), "\x01");
  EXPECT_EQ(made.shard_spec_fingerprint(), "hash");
  EXPECT_EQ(made.claim().claimant(), "me");
  EXPECT_EQ(made.claim().request_id(), "request");
  EXPECT_EQ(made.create_time().seconds(), 100);
  EXPECT_TRUE(change->applied.created());
  EXPECT_TRUE(CheckTransition(nullptr, change->next).ok());
}

TEST(ApplyClaimTest, KeepsAllElseAndEndsTheClaimBefore) {
  const ShardRecord head = LiveHead();
  const auto change = ApplyClaim(At(&head), ClaimRequest(1), std::nullopt, TestLimits());
  ASSERT_TRUE(change.ok()) << change.status();
  v1::ShardManifest expected = head.manifest();
  expected.set_version(6);
  expected.set_writer_epoch(4);
  *expected.mutable_claim() = change->next.manifest().claim();
  expected.mutable_update_time()->set_seconds(100);
  EXPECT_EQ(change->next.manifest().DebugString(), expected.DebugString());
  EXPECT_EQ(change->next.manifest().claim().writer_epoch(), 4U);
  ASSERT_TRUE(change->ended_claim.has_value());
  EXPECT_EQ(change->ended_claim->claim().claimant(), "holder");
  EXPECT_EQ(change->ended_claim->end_reason(), v1::CLAIM_END_REASON_SUPERSEDED);
  EXPECT_EQ(change->ended_claim->next_writer_epoch(), 4U);
  EXPECT_EQ(change->next.ended_claims(), 3U);
  EXPECT_EQ(change->applied.ended_claim_sequence(), 3U);
  EXPECT_FALSE(change->applied.created());
  EXPECT_TRUE(CheckTransition(&head, change->next).ok());
}

TEST(ApplyClaimTest, RefusesAnotherSpecAndZeroIsNoWildcard) {
  ShardRecord head = LiveHead();
  EXPECT_EQ(Refusal(&head, ClaimRequest(0)), "SHARD_SPEC_MISMATCH");
  EXPECT_EQ(Refusal(&head, ClaimRequest(2)), "SHARD_SPEC_MISMATCH");
  v1::ClaimEpochRequest absent = ClaimRequest(0);
  absent.clear_shard_spec_id();
  EXPECT_EQ(Refusal(&head, absent), "SHARD_SPEC_MISMATCH");
  head.mutable_manifest()->set_shard_spec_id(0);
  EXPECT_EQ(Refusal(&head, ClaimRequest(1)), "SHARD_SPEC_MISMATCH");
  EXPECT_EQ(Refusal(&head, absent), "");
}

TEST(ApplyClaimTest, ComparesFingerprintsWhenBothSidesHaveOne) {
  ShardRecord head = LiveHead();
  v1::ClaimEpochRequest request = ClaimRequest(1);
  request.set_shard_spec_fingerprint("8 buckets");
  EXPECT_EQ(Refusal(&head, request), "") << "the stored side has none";
  head.mutable_manifest()->set_shard_spec_fingerprint("4 buckets");
  EXPECT_EQ(Refusal(&head, request), "SHARD_SPEC_FINGERPRINT_MISMATCH");
  EXPECT_EQ(Refusal(&head, ClaimRequest(1)), "") << "the claim has none";
  request.set_shard_spec_fingerprint("4 buckets");
  EXPECT_EQ(Refusal(&head, request), "");
}

TEST(ApplyClaimTest, FieldValuesThatAreGivenMustBeTheStoredOnes) {
  ShardRecord head = LiveHead();
  (*head.mutable_manifest()->mutable_shard_field_values())["bucket"] = "3";
  v1::ClaimEpochRequest request = ClaimRequest(1);
  EXPECT_EQ(Refusal(&head, request), "");
  (*request.mutable_shard_field_values())["bucket"] = "4";
  EXPECT_EQ(Refusal(&head, request), "SHARD_IDENTITY_CONFLICT");
  (*request.mutable_shard_field_values())["bucket"] = "3";
  EXPECT_EQ(Refusal(&head, request), "");
}

TEST(ApplyClaimTest, RefusalsComeInTheOrderOfTheDesign) {
  ShardRecord head = LiveHead();
  v1::ClaimEpochRequest request = ClaimRequest(2);
  request.set_expected_epoch(1);
  request.set_mode(v1::CLAIM_MODE_IF_FREE);
  request.set_epoch_floor(kMax);
  head.mutable_manifest()->set_status(v1::SHARD_STATUS_SEALED);
  EXPECT_EQ(Refusal(&head, request), "SHARD_SEALED");
  head.mutable_manifest()->set_status(v1::SHARD_STATUS_ACTIVE);
  EXPECT_EQ(Refusal(&head, request), "SHARD_SPEC_MISMATCH");
  request.set_shard_spec_id(1);
  EXPECT_EQ(Refusal(&head, request), "EPOCH_MISMATCH");
  request.set_expected_epoch(3);
  EXPECT_EQ(Refusal(&head, request), "SHARD_HELD");
  request.set_mode(v1::CLAIM_MODE_PREEMPT);
  EXPECT_EQ(Refusal(&head, request), "EPOCH_FLOOR_TOO_HIGH");
}

TEST(ApplyClaimTest, IfFreeIsGrantedAfterARelease) {
  ShardRecord head = LiveHead();
  v1::ClaimEpochRequest request = ClaimRequest(1);
  request.set_mode(v1::CLAIM_MODE_IF_FREE);
  EXPECT_EQ(Refusal(&head, request), "SHARD_HELD");
  head.mutable_manifest()->clear_claim();
  EXPECT_EQ(Refusal(&head, request), "");
}

TEST(ApplyClaimTest, GoesAboveTheFloorButNotFurtherThanTheJumpAllowed) {
  const ShardRecord head = LiveHead();
  v1::ClaimEpochRequest request = ClaimRequest(1);
  request.set_epoch_floor(1'003);
  const auto change = ApplyClaim(At(&head), request, std::nullopt, TestLimits());
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->next.manifest().writer_epoch(), 1'004U);
  request.set_epoch_floor(1'004);
  EXPECT_EQ(Refusal(&head, request), "EPOCH_FLOOR_TOO_HIGH");
  request.set_epoch_floor(2);
  EXPECT_EQ(
      ApplyClaim(At(&head), request, std::nullopt, TestLimits())->next.manifest().writer_epoch(),
      4U);
}

TEST(ApplyClaimTest, NeitherEpochNorVersionWraps) {
  ShardRecord head = LiveHead();
  head.mutable_manifest()->set_writer_epoch(kMax);
  head.mutable_manifest()->mutable_claim()->set_writer_epoch(kMax);
  EXPECT_EQ(Refusal(&head, ClaimRequest(1)), "EPOCH_EXHAUSTED");
  head = LiveHead();
  head.mutable_manifest()->set_version(kMax);
  EXPECT_EQ(Refusal(&head, ClaimRequest(1)), "VERSION_EXHAUSTED");
  head = Tombstone();
  head.mutable_manifest()->set_version(kMax);
  EXPECT_EQ(Refusal(&head, ClaimRequest(1)), "VERSION_EXHAUSTED");
}

TEST(ApplyClaimTest, WhoeverReachedTheAimedEpochWonTheRace) {
  ShardRecord head = LiveHead();
  EXPECT_EQ(Refusal(&head, ClaimRequest(1), 4), "") << "epoch 3 did not move";
  EXPECT_EQ(Refusal(&head, ClaimRequest(1), 3), "CLAIM_LOST_RACE");
  EXPECT_EQ(Refusal(&head, ClaimRequest(2), 3), "SHARD_SPEC_MISMATCH");
  head.mutable_manifest()->set_status(v1::SHARD_STATUS_SEALED);
  EXPECT_EQ(Refusal(&head, ClaimRequest(1), 3), "SHARD_SEALED");
  const ShardRecord tombstone = Tombstone();
  EXPECT_EQ(Refusal(&tombstone, ClaimRequest(1), 4), "CLAIM_LOST_RACE");
}

TEST(ApplyClaimTest, ADroppedShardGoesOnFromItsTombstoneUnderAnySpec) {
  const ShardRecord tombstone = Tombstone();
  const auto change = ApplyClaim(At(&tombstone), ClaimRequest(8), std::nullopt, TestLimits());
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->next.manifest().version(), 10U);
  EXPECT_EQ(change->next.manifest().writer_epoch(), 5U);
  EXPECT_EQ(change->next.manifest().shard_spec_id(), 8U);
  EXPECT_EQ(change->next.manifest().current_generation(), 1U);
  EXPECT_EQ(change->next.ended_claims(), 4U);
  EXPECT_TRUE(change->applied.created());
  EXPECT_TRUE(CheckTransition(&tombstone, change->next).ok());
}

TEST(CheckClaimReplayTest, TheStoredClaimIsAnsweredAgainAndAnOlderOneIsSuperseded) {
  const ShardRecord head = LiveHead();
  AppliedRequest applied;
  applied.set_kind(storage::v1::MUTATION_KIND_CLAIM);
  applied.set_writer_epoch(3);
  v1::ClaimEpochRequest request = ClaimRequest(1);
  request.set_claimant("holder");
  EXPECT_TRUE(CheckClaimReplay(At(&head), request, applied).ok());
  applied.set_writer_epoch(2);
  EXPECT_EQ(ReasonOf(CheckClaimReplay(At(&head), request, applied)), "CLAIM_SUPERSEDED");
  const ShardRecord tombstone = Tombstone();
  applied.set_writer_epoch(4);
  EXPECT_EQ(ReasonOf(CheckClaimReplay(At(&tombstone), request, applied)), "CLAIM_SUPERSEDED");
}

TEST(CheckClaimReplayTest, OneIdDoesNotServeTwoWriters) {
  const ShardRecord head = LiveHead();
  AppliedRequest applied;
  applied.set_kind(storage::v1::MUTATION_KIND_CLAIM);
  applied.set_writer_epoch(3);
  EXPECT_EQ(ReasonOf(CheckClaimReplay(At(&head), ClaimRequest(1), applied)), "REQUEST_ID_REUSED");
  EXPECT_EQ(ReasonOf(CheckClaimReplay(At(&head), ClaimRequest(2), applied)), "SHARD_SPEC_MISMATCH");
  v1::ClaimEpochRequest request = ClaimRequest(1);
  request.set_claimant("holder");
  (*request.mutable_labels())["pod"] = "b";
  EXPECT_EQ(ReasonOf(CheckClaimReplay(At(&head), request, applied)), "REQUEST_ID_REUSED");
  applied.set_kind(storage::v1::MUTATION_KIND_SEAL);
  EXPECT_EQ(ReasonOf(CheckClaimReplay(At(&head), request, applied)), "REQUEST_ID_REUSED");
}

}  // namespace
}  // namespace claimd::arbiter
