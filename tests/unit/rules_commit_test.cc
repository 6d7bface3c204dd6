#include <cstdint>
#include <functional>
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

// The commit of a flush onto LiveHead: generation 2 becomes an sstable.
v1::CommitManifestRequest FlushOf(const ShardRecord& head) {
  v1::CommitManifestRequest request;
  request.set_table("t");
  request.set_shard_id(kId);
  request.set_writer_epoch(head.manifest().writer_epoch());
  v1::ShardManifest* manifest = request.mutable_manifest();
  *manifest = head.manifest();
  manifest->set_version(head.manifest().version() + 1);
  manifest->add_sstables()->set_generation(manifest->current_generation());
  manifest->set_current_generation(manifest->current_generation() + 1);
  manifest->set_replay_after_wal_entry_position(20);
  manifest->set_wal_entry_position_last_seen(21);
  return request;
}

std::string Refusal(const ShardRecord* head, const v1::CommitManifestRequest& request) {
  return ReasonOf(ApplyCommit(At(head), request, TestLimits()).status());
}

TEST(ApplyCommitTest, AFlushLandsWithTheServersTimes) {
  const ShardRecord head = LiveHead();
  v1::CommitManifestRequest request = FlushOf(head);
  request.mutable_manifest()->mutable_update_time()->set_seconds(77);
  request.mutable_manifest()->mutable_create_time()->set_seconds(78);
  (*request.mutable_manifest()->mutable_annotations())["note"] = "new";
  const auto change = ApplyCommit(At(&head), request, TestLimits());
  ASSERT_TRUE(change.ok()) << change.status();
  v1::ShardManifest expected = request.manifest();
  *expected.mutable_create_time() = head.manifest().create_time();
  expected.mutable_update_time()->set_seconds(100);
  EXPECT_EQ(change->next.manifest().ShortDebugString(), expected.ShortDebugString());
  EXPECT_TRUE(CheckTransition(&head, change->next).ok());
}

TEST(ApplyCommitTest, KeyAndClaimMayBeLeftOut) {
  const ShardRecord head = LiveHead();
  v1::CommitManifestRequest request = FlushOf(head);
  request.mutable_manifest()->clear_table();
  request.mutable_manifest()->clear_shard_id();
  request.mutable_manifest()->clear_claim();
  const auto change = ApplyCommit(At(&head), request, TestLimits());
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->next.manifest().shard_id(), kId);
  EXPECT_EQ(change->next.manifest().claim().claimant(), "holder");
}

TEST(ApplyCommitTest, TheIncumbentDrainsASealedShard) {
  ShardRecord head = LiveHead();
  head.mutable_manifest()->set_status(v1::SHARD_STATUS_SEALED);
  EXPECT_EQ(Refusal(&head, FlushOf(head)), "");
}

TEST(ApplyCommitTest, EpochComesBeforeVersionAndVersionBeforeContent) {
  const ShardRecord head = LiveHead();
  v1::CommitManifestRequest request = FlushOf(head);
  request.mutable_manifest()->set_version(99);
  request.mutable_manifest()->set_shard_spec_id(99);
  request.set_writer_epoch(2);
  EXPECT_EQ(Refusal(&head, request), "WRITER_FENCED");
  request.set_writer_epoch(4);
  EXPECT_EQ(Refusal(&head, request), "EPOCH_FROM_FUTURE");
  request.set_writer_epoch(3);
  EXPECT_EQ(Refusal(&head, request), "MANIFEST_VERSION_CONFLICT");
  request.mutable_manifest()->set_version(5);
  EXPECT_EQ(Refusal(&head, request), "MANIFEST_VERSION_CONFLICT");
  request.mutable_manifest()->set_version(6);
  EXPECT_EQ(Refusal(&head, request), "INVALID_MANIFEST");
}

TEST(ApplyCommitTest, UnknownAndDroppedShardsAreNotFound) {
  const ShardRecord head = LiveHead();
  const ShardRecord tombstone = Tombstone();
  EXPECT_EQ(Refusal(nullptr, FlushOf(head)), "SHARD_NOT_FOUND");
  EXPECT_EQ(Refusal(&tombstone, FlushOf(head)), "SHARD_NOT_FOUND");
}

TEST(ApplyCommitTest, TheLastVersionDoesNotWrap) {
  ShardRecord head = LiveHead();
  head.mutable_manifest()->set_version(kMax);
  v1::CommitManifestRequest request = FlushOf(head);
  request.mutable_manifest()->set_version(0);
  EXPECT_EQ(Refusal(&head, request), "VERSION_EXHAUSTED");
}

struct BadManifest {
  const char* name;
  std::function<void(v1::ShardManifest*)> spoil;
  friend void PrintTo(const BadManifest& bad, std::ostream* out) { *out << bad.name; }
};

class BadCommitTest : public testing::TestWithParam<BadManifest> {};

TEST_P(BadCommitTest, IsRefused) {
  const ShardRecord head = LiveHead();
  v1::CommitManifestRequest request = FlushOf(head);
  ASSERT_EQ(Refusal(&head, request), "");
  GetParam().spoil(request.mutable_manifest());
  EXPECT_EQ(Refusal(&head, request), "INVALID_MANIFEST");
}

INSTANTIATE_TEST_SUITE_P(
    Rules, BadCommitTest,
    testing::Values(
        BadManifest{"table", [](auto* m) { m->set_table("other"); }},
        BadManifest{"shard_id",
                    [](auto* m) { m->set_shard_id("bb48498d-ac91-59e2-8452-69f46010ace2"); }},
        BadManifest{"shard_spec_id", [](auto* m) { m->set_shard_spec_id(0); }},
        BadManifest{"shard_field_values",
                    [](auto* m) { (*m->mutable_shard_field_values())["a"] = "b"; }},
        BadManifest{"fingerprint", [](auto* m) { m->set_shard_spec_fingerprint("x"); }},
        BadManifest{"writer_epoch", [](auto* m) { m->set_writer_epoch(4); }},
        BadManifest{"status", [](auto* m) { m->set_status(v1::SHARD_STATUS_SEALED); }},
        BadManifest{"claim", [](auto* m) { m->mutable_claim()->set_claimant("other"); }},
        BadManifest{"generation_back", [](auto* m) { m->set_current_generation(1); }},
        BadManifest{"generation_skipped", [](auto* m) { m->set_current_generation(4); }},
        BadManifest{"generation_unlisted", [](auto* m) { m->mutable_sstables()->RemoveLast(); }},
        BadManifest{"replay_back", [](auto* m) { m->set_replay_after_wal_entry_position(9); }},
        BadManifest{"replay_without_generation",
                    [](auto* m) {
                      m->mutable_sstables()->RemoveLast();
                      m->set_current_generation(2);
                    }},
        BadManifest{"sstable_zero", [](auto* m) { m->add_sstables()->set_generation(0); }},
        BadManifest{"sstable_twice", [](auto* m) { m->add_sstables()->set_generation(1); }},
        BadManifest{"sstable_current", [](auto* m) { m->add_sstables()->set_generation(3); }},
        BadManifest{
            "too_large",
            [](auto* m) { (*m->mutable_annotations())["blob"] = std::string(5'000, 'x'); }}),
    [](const auto& test) { return test.param.name; });

TEST(ApplyCommitTest, AllThatIsWrongIsNamedAtOnce) {
  const ShardRecord head = LiveHead();
  v1::CommitManifestRequest request = FlushOf(head);
  request.mutable_manifest()->set_shard_spec_id(9);
  request.mutable_manifest()->set_writer_epoch(9);
  const auto refused = ApplyCommit(At(&head), request, TestLimits());
  const auto details = refused.status().GetPayload("type.googleapis.com/google.rpc.BadRequest");
  ASSERT_TRUE(details.has_value());
  const std::string text(*details);
  EXPECT_NE(text.find("manifest.shard_spec_id"), std::string::npos);
  EXPECT_NE(text.find("manifest.writer_epoch"), std::string::npos);
}

TEST(ApplyCommitTest, ACompactionMayDropSsTablesWithoutANewGeneration) {
  const ShardRecord head = LiveHead();
  v1::CommitManifestRequest request = FlushOf(head);
  *request.mutable_manifest() = head.manifest();
  request.mutable_manifest()->set_version(6);
  request.mutable_manifest()->clear_sstables();
  EXPECT_EQ(Refusal(&head, request), "");
}

TEST(CheckCommitReplayTest, TheIdServesOnlyTheSameCommit) {
  const ShardRecord head = LiveHead();
  const v1::CommitManifestRequest request = FlushOf(head);
  const auto change = ApplyCommit(At(&head), request, TestLimits());
  ASSERT_TRUE(change.ok());
  const Situation after = At(&change->next);
  EXPECT_TRUE(CheckCommitReplay(after, request, change->applied).ok());
  EXPECT_TRUE(CheckCommitContent(after, request, change->next.manifest()).ok());
  v1::CommitManifestRequest other = request;
  other.mutable_manifest()->set_version(7);
  EXPECT_EQ(ReasonOf(CheckCommitReplay(after, other, change->applied)), "REQUEST_ID_REUSED");
  other = request;
  (*other.mutable_manifest()->mutable_annotations())["note"] = "different";
  EXPECT_EQ(ReasonOf(CheckCommitContent(after, other, change->next.manifest())),
            "REQUEST_ID_REUSED");
}

}  // namespace
}  // namespace claimd::arbiter
