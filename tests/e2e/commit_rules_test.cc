#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <google/protobuf/any.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/state_fingerprint.h"

// The rules of DESIGN §5: each has its refusal, and no refusal has an effect.
namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;
using ::testing::Contains;

constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();

class CommitRulesTest : public SharedServerTest {
 protected:
  // A claimed shard with two flushed generations behind it.
  struct Flushed {
    Shard shard;
    v1::ShardManifest manifest;
  };
  static Flushed FlushedTwice() {
    Flushed flushed{FreshShard(), {}};
    auto claim = ClaimOf(flushed.shard, "writer", 1);
    (*claim.mutable_shard_field_values())["bucket"] = "3";
    claim.set_shard_spec_fingerprint("spec");
    flushed.manifest = client().Call(claim).response.manifest();
    for (int i = 0; i < 2; ++i) {
      const auto commit = client().Call(FlushAfter(flushed.manifest));
      EXPECT_TRUE(IsOk(commit.status));
      flushed.manifest = commit.response.manifest();
    }
    return flushed;
  }
};

TEST_F(CommitRulesTest, CommitIsStoredAsGivenWithTheServersTimes) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "writer", 1);
  auto request = FlushAfter(claim.response.manifest());
  (*request.mutable_manifest()->mutable_annotations())["offset"] = "12";
  request.mutable_manifest()->mutable_create_time()->set_seconds(1);
  request.mutable_manifest()->mutable_update_time()->set_seconds(1);
  const auto commit = client().Call(request);
  ASSERT_TRUE(IsOk(commit.status));
  const v1::ShardManifest& stored = commit.response.manifest();
  EXPECT_EQ(stored.version(), 2U);
  EXPECT_EQ(stored.writer_epoch(), 1U);
  EXPECT_EQ(stored.sstables_size(), 1);
  EXPECT_TRUE(stored.sstables(0).has_physical_rows()) << "zero is not absent";
  EXPECT_FALSE(stored.sstables(0).has_in_memory_bytes()) << "absent is not zero";
  EXPECT_EQ(stored.annotations().at("offset"), "12");
  EXPECT_EQ(Bytes(stored.claim()), Bytes(claim.response.manifest().claim()));
  EXPECT_EQ(Bytes(stored.create_time()), Bytes(claim.response.manifest().create_time()));
  EXPECT_GT(stored.update_time().seconds(), 1);
  EXPECT_EQ(Bytes(client().Get(shard).response.manifest()), Bytes(stored));
}

TEST_F(CommitRulesTest, KeyAndClaimMayBeLeftOut) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "writer");
  auto request = CommitAfter(claim.response.manifest());
  request.mutable_manifest()->clear_table();
  request.mutable_manifest()->clear_shard_id();
  request.mutable_manifest()->clear_claim();
  const auto commit = client().Call(request);
  ASSERT_TRUE(IsOk(commit.status));
  EXPECT_EQ(commit.response.manifest().table(), shard.table);
  EXPECT_EQ(commit.response.manifest().shard_id(), shard.id);
  EXPECT_EQ(commit.response.manifest().claim().claimant(), "writer");
}

TEST_F(CommitRulesTest, MaintenanceJobCommitsUnderTheCurrentEpochWithoutClaiming) {
  const Flushed flushed = FlushedTwice();
  const Client job(server().address());
  const auto read = job.Get(flushed.shard);
  auto merge = CommitAfter(read.response.manifest());
  merge.mutable_manifest()->clear_sstables();
  const auto commit = job.Call(merge);
  ASSERT_TRUE(IsOk(commit.status));
  EXPECT_EQ(commit.response.manifest().writer_epoch(), 1U);
  EXPECT_EQ(commit.response.manifest().claim().claimant(), "writer");
  EXPECT_TRUE(IsOk(client().CheckFence(flushed.shard, 1).status));
}

TEST_F(CommitRulesTest, CommitOnAnUnclaimedShardUsesEpochZero) {
  const Shard shard = FreshShard();
  const auto made = client().Call(For<v1::InitializeShardRequest>(shard));
  const auto commit = client().Call(CommitAfter(made.response.manifest()));
  ASSERT_TRUE(IsOk(commit.status));
  EXPECT_EQ(commit.response.manifest().version(), 2U);
}

TEST_F(CommitRulesTest, UnknownShardIsNotMade) {
  const Shard shard = FreshShard();
  const NothingMoves guard(client(), shard);
  v1::ShardManifest manifest;
  manifest.set_table(shard.table);
  manifest.set_shard_id(shard.id);
  manifest.set_current_generation(1);
  manifest.set_status(v1::SHARD_STATUS_ACTIVE);
  EXPECT_TRUE(Refused(client().Call(CommitAfter(manifest)).status, StatusCode::NOT_FOUND,
                      "SHARD_NOT_FOUND", shard));
}

TEST_F(CommitRulesTest, OtherVersionIsAConflictThatCarriesTheStoredManifest) {
  const Flushed flushed = FlushedTwice();
  const NothingMoves guard(client(), flushed.shard);
  for (const uint64_t version : {uint64_t{1}, uint64_t{3}, uint64_t{5}, kMaxNumber}) {
    auto request = CommitAfter(flushed.manifest);
    request.mutable_manifest()->set_version(version);
    const auto refused = client().Call(request);
    ASSERT_TRUE(
        Refused(refused.status, StatusCode::ABORTED, "MANIFEST_VERSION_CONFLICT", flushed.shard));
    EXPECT_EQ(Metadata(refused.status)["stored_version"], "3");
    EXPECT_EQ(Metadata(refused.status)["stored_writer_epoch"], "1");
    v1::ShardManifest attached;
    const google::rpc::Status details = DetailsOf(refused.status);
    for (const auto& detail : details.details()) detail.UnpackTo(&attached);
    EXPECT_EQ(Bytes(attached), Bytes(flushed.manifest));
  }
}

TEST_F(CommitRulesTest, ConflictOnALargeManifestIsAnsweredWithoutIt) {
  const Shard shard = FreshShard();
  auto request = CommitAfter(client().Claim(shard, "writer").response.manifest());
  constexpr uint64_t kSsTables = 5000;
  for (uint64_t generation = 1; generation <= kSsTables; ++generation) {
    v1::SsTable* sstable = request.mutable_manifest()->add_sstables();
    sstable->set_generation(generation);
    sstable->set_path(absl::StrCat("data/generation-", generation, "/", shard.id));
  }
  request.mutable_manifest()->set_current_generation(kSsTables + 1);
  ASSERT_TRUE(IsOk(client().Call(request).status));

  const NothingMoves guard(client(), shard);
  const auto refused = client().Call(request);
  ASSERT_TRUE(Refused(refused.status, StatusCode::ABORTED, "MANIFEST_VERSION_CONFLICT", shard));
  EXPECT_EQ(Metadata(refused.status)["stored_version"], "2");
  EXPECT_LE(refused.status.error_details().size(), 2048U);
  const google::rpc::Status details = DetailsOf(refused.status);
  for (const auto& detail : details.details()) {
    EXPECT_FALSE(detail.Is<v1::ShardManifest>());
  }
}

TEST_F(CommitRulesTest, ManifestPastTheSizeLimitIsRefused) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "writer");
  const NothingMoves guard(client(), shard);
  constexpr size_t kTooLarge = size_t{1} << 20U;
  auto request = CommitAfter(claim.response.manifest());
  (*request.mutable_manifest()->mutable_annotations())["blob"] = std::string(kTooLarge, 'x');
  const auto refused = client().Call(request);
  EXPECT_EQ(refused.status.error_code(), StatusCode::INVALID_ARGUMENT) << Describe(refused.status);
  EXPECT_THAT(BadFields(refused.status), Contains("manifest"));
}

TEST_F(CommitRulesTest, FenceIsToldBeforeTheVersion) {
  const Flushed flushed = FlushedTwice();
  ASSERT_TRUE(IsOk(client().Claim(flushed.shard, "second", 1).status));
  const NothingMoves guard(client(), flushed.shard);
  EXPECT_TRUE(Refused(client().Call(CommitAfter(flushed.manifest)).status,
                      StatusCode::FAILED_PRECONDITION, "WRITER_FENCED", flushed.shard));
}

// One way to spoil a commit, and the field that the refusal must name.
struct Spoiler {
  std::string name;
  std::string field;
  std::function<void(v1::ShardManifest*)> spoil;
};
void PrintTo(const Spoiler& spoiler, std::ostream* out) { *out << spoiler.name; }

class InvalidCommitTest : public CommitRulesTest, public ::testing::WithParamInterface<Spoiler> {};

TEST_P(InvalidCommitTest, IsRefusedWithoutEffect) {
  const Flushed flushed = FlushedTwice();
  const NothingMoves guard(client(), flushed.shard);
  auto request = FlushAfter(flushed.manifest);
  GetParam().spoil(request.mutable_manifest());
  const auto refused = client().Call(request);
  EXPECT_TRUE(
      Refused(refused.status, StatusCode::INVALID_ARGUMENT, "INVALID_MANIFEST", flushed.shard));
  EXPECT_THAT(BadFields(refused.status), Contains(GetParam().field));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, InvalidCommitTest,
    ::testing::Values(
        Spoiler{"OtherTable", "manifest.table", [](auto* next) { next->set_table("other"); }},
        Spoiler{"OtherShard", "manifest.shard_id",
                [](auto* next) { next->set_shard_id(RandomUuid()); }},
        Spoiler{"OtherSpec", "manifest.shard_spec_id",
                [](auto* next) { next->set_shard_spec_id(2); }},
        Spoiler{"SpecLeftOut", "manifest.shard_spec_id",
                [](auto* next) { next->clear_shard_spec_id(); }},
        Spoiler{"OtherFieldValue", "manifest.shard_field_values",
                [](auto* next) { (*next->mutable_shard_field_values())["bucket"] = "4"; }},
        Spoiler{"MoreFieldValues", "manifest.shard_field_values",
                [](auto* next) { (*next->mutable_shard_field_values())["more"] = "4"; }},
        Spoiler{"OtherFingerprint", "manifest.shard_spec_fingerprint",
                [](auto* next) { next->set_shard_spec_fingerprint("other"); }},
        Spoiler{"LowerEpochInside", "manifest.writer_epoch",
                [](auto* next) { next->set_writer_epoch(0); }},
        Spoiler{"HigherEpochInside", "manifest.writer_epoch",
                [](auto* next) { next->set_writer_epoch(2); }},
        Spoiler{"OtherStatus", "manifest.status",
                [](auto* next) { next->set_status(v1::SHARD_STATUS_SEALED); }},
        Spoiler{"Dropped", "manifest.status",
                [](auto* next) { next->set_status(v1::SHARD_STATUS_DROPPED); }},
        Spoiler{"UnknownStatus", "manifest.status",
                [](auto* next) { next->set_status(static_cast<v1::ShardStatus>(99)); }},
        Spoiler{"OtherClaimant", "manifest.claim",
                [](auto* next) { next->mutable_claim()->set_claimant("other"); }},
        Spoiler{"OtherClaimEpoch", "manifest.claim",
                [](auto* next) { next->mutable_claim()->set_writer_epoch(2); }},
        Spoiler{"GenerationGoesBack", "manifest.current_generation",
                [](auto* next) {
                  next->set_current_generation(2);
                  next->mutable_sstables()->DeleteSubrange(1, 2);
                }},
        Spoiler{"ReplayPositionGoesBack", "manifest.replay_after_wal_entry_position",
                [](auto* next) { next->set_replay_after_wal_entry_position(1); }},
        Spoiler{"SsTableGenerationZero", "manifest.sstables[1].generation",
                [](auto* next) { next->mutable_sstables(1)->set_generation(0); }},
        Spoiler{"SsTableTwice", "manifest.sstables[1].generation",
                [](auto* next) { next->mutable_sstables(1)->set_generation(1); }},
        Spoiler{"SsTableOfTheCurrentGeneration", "manifest.sstables[2].generation",
                [](auto* next) { next->mutable_sstables(2)->set_generation(4); }},
        Spoiler{"SsTableOfTheLastGeneration", "manifest.sstables[2].generation",
                [](auto* next) { next->mutable_sstables(2)->set_generation(kMaxNumber); }},
        Spoiler{"SkippedGeneration", "manifest.current_generation",
                [](auto* next) { next->set_current_generation(5); }},
        Spoiler{"GenerationMovesWithoutSsTable", "manifest.current_generation",
                [](auto* next) { next->mutable_sstables()->RemoveLast(); }},
        Spoiler{"ReplayPastAnUnlistedGeneration", "manifest.replay_after_wal_entry_position",
                [](auto* next) {
                  next->mutable_sstables()->RemoveLast();
                  next->set_current_generation(3);
                }}),
    [](const auto& test) { return test.param.name; });

TEST_F(CommitRulesTest, EveryBrokenRuleIsNamedAtOnce) {
  const Flushed flushed = FlushedTwice();
  const NothingMoves guard(client(), flushed.shard);
  auto request = FlushAfter(flushed.manifest);
  request.mutable_manifest()->set_shard_spec_id(2);
  request.mutable_manifest()->set_status(v1::SHARD_STATUS_SEALED);
  request.mutable_manifest()->mutable_sstables(0)->set_generation(0);
  const auto refused = client().Call(request);
  EXPECT_TRUE(
      Refused(refused.status, StatusCode::INVALID_ARGUMENT, "INVALID_MANIFEST", flushed.shard));
  const std::vector<std::string> fields = BadFields(refused.status);
  EXPECT_THAT(fields, Contains("manifest.shard_spec_id"));
  EXPECT_THAT(fields, Contains("manifest.status"));
  EXPECT_THAT(fields, Contains("manifest.sstables[0].generation"));
}

}  // namespace
}  // namespace claimd::e2e
