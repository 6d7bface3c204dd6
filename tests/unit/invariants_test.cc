#include "server/arbiter/invariants.h"

#include <functional>

#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"

#include "tests/unit/rules_test_util.h"

namespace claimd::arbiter {
namespace {

ShardRecord Next(const ShardRecord& head) {
  ShardRecord next = head;
  next.mutable_manifest()->set_version(head.manifest().version() + 1);
  return next;
}

struct BrokenStep {
  const char* name;
  std::function<void(ShardRecord*)> spoil;
  friend void PrintTo(const BrokenStep& step, std::ostream* out) { *out << step.name; }
};

class BrokenStepTest : public testing::TestWithParam<BrokenStep> {};

TEST_P(BrokenStepTest, StopsTheStep) {
  const ShardRecord head = LiveHead();
  ShardRecord next = Next(head);
  ASSERT_TRUE(CheckTransition(&head, next).ok());
  GetParam().spoil(&next);
  EXPECT_FALSE(CheckTransition(&head, next).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Invariants, BrokenStepTest,
    testing::Values(
        BrokenStep{"version_gap", [](auto* r) { r->mutable_manifest()->set_version(7); }},
        BrokenStep{"version_back", [](auto* r) { r->mutable_manifest()->set_version(4); }},
        BrokenStep{"version_zero", [](auto* r) { r->mutable_manifest()->set_version(0); }},
        BrokenStep{"version_reused",
                   [](auto* r) {
                     r->mutable_manifest()->set_version(5);
                     r->mutable_manifest()->set_current_generation(3);
                   }},
        BrokenStep{"epoch_back",
                   [](auto* r) {
                     r->mutable_manifest()->set_writer_epoch(2);
                     r->mutable_manifest()->mutable_claim()->set_writer_epoch(2);
                   }},
        BrokenStep{"claim_of_another_epoch",
                   [](auto* r) { r->mutable_manifest()->mutable_claim()->set_writer_epoch(4); }},
        BrokenStep{"spec", [](auto* r) { r->mutable_manifest()->set_shard_spec_id(2); }},
        BrokenStep{"fingerprint",
                   [](auto* r) { r->mutable_manifest()->set_shard_spec_fingerprint("x"); }},
        BrokenStep{
            "field_values",
            [](auto* r) { (*r->mutable_manifest()->mutable_shard_field_values())["a"] = "b"; }},
        BrokenStep{"generation_back",
                   [](auto* r) { r->mutable_manifest()->set_current_generation(1); }},
        BrokenStep{"replay_back",
                   [](auto* r) { r->mutable_manifest()->set_replay_after_wal_entry_position(1); }},
        BrokenStep{"table", [](auto* r) { r->mutable_manifest()->set_table("u"); }},
        BrokenStep{"dropped_unsealed",
                   [](auto* r) {
                     r->mutable_manifest()->clear_claim();
                     r->mutable_manifest()->set_status(v1::SHARD_STATUS_DROPPED);
                   }},
        BrokenStep{"claims_back", [](auto* r) { r->set_ended_claims(1); }}),
    [](const auto& test) { return test.param.name; });

TEST(CheckTransitionTest, AClaimNeedsANewEpoch) {
  ShardRecord head = LiveHead();
  head.mutable_manifest()->clear_claim();
  ShardRecord next = Next(head);
  next.mutable_manifest()->mutable_claim()->set_writer_epoch(3);
  EXPECT_FALSE(CheckTransition(&head, next).ok());
}

TEST(CheckTransitionTest, ANewLifeMustFenceTheFirst) {
  const ShardRecord tombstone = Tombstone();
  ShardRecord next = LiveHead();
  next.mutable_manifest()->set_version(10);
  next.mutable_manifest()->set_writer_epoch(4);
  next.mutable_manifest()->clear_claim();
  next.set_ended_claims(4);
  EXPECT_FALSE(CheckTransition(&tombstone, next).ok());
  next.mutable_manifest()->set_writer_epoch(5);
  EXPECT_TRUE(CheckTransition(&tombstone, next).ok());
}

TEST(CheckRecordTest, ARecordMustFitItsKeyAndItself) {
  const ShardRecord head = LiveHead();
  EXPECT_TRUE(CheckRecord(At(&head).key, head).ok());
  EXPECT_TRUE(CheckRecord(At(&head).key, Tombstone()).ok());
  store::ShardKey other = At(&head).key;
  other.table = "u";
  EXPECT_EQ(CheckRecord(other, head).code(), absl::StatusCode::kDataLoss);
  ShardRecord broken = head;
  broken.mutable_manifest()->set_current_generation(0);
  EXPECT_EQ(CheckRecord(At(&head).key, broken).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(CheckRecord(At(&head).key, ShardRecord()).code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace claimd::arbiter
