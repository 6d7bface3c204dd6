#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/admin.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/server_process.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/state_fingerprint.h"

namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;
using ::testing::Contains;

constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();

class AdminTest : public SharedServerTest {
 protected:
  static v1::ShardManifest Manifest(const Shard& shard) {
    v1::ShardManifest manifest;
    manifest.set_table(shard.table);
    manifest.set_shard_id(shard.id);
    manifest.set_version(17);
    manifest.set_shard_spec_id(1);
    (*manifest.mutable_shard_field_values())["bucket"] = "2";
    manifest.set_writer_epoch(9);
    manifest.set_replay_after_wal_entry_position(100);
    manifest.set_wal_entry_position_last_seen(120);
    manifest.set_current_generation(4);
    for (const uint64_t generation : {uint64_t{1}, uint64_t{3}}) {
      v1::SsTable* sstable = manifest.add_sstables();
      sstable->set_generation(generation);
      sstable->set_path(absl::StrCat("gen_", generation));
    }
    manifest.set_status(v1::SHARD_STATUS_ACTIVE);
    return manifest;
  }

  static grpc::Status ImportOne(const v1::ShardManifest& manifest) {
    const auto answer = client().Import({manifest});
    EXPECT_TRUE(IsOk(answer.status));
    if (answer.response.results_size() != 1) return {StatusCode::UNKNOWN, "not one verdict"};
    return AsGrpcStatus(answer.response.results(0));
  }
};

TEST_F(AdminTest, ServerInfoSaysWhatRuns) {
  const auto info = client().Call(v1::GetServerInfoRequest());
  ASSERT_TRUE(IsOk(info.status));
  EXPECT_FALSE(info.response.server_version().empty());
  EXPECT_EQ(info.response.store_kind(), "rocksdb");
  EXPECT_EQ(info.response.store_id().size(), 36U);
  EXPECT_GE(info.response.store_format_version(), 1U);
  EXPECT_GT(info.response.start_time().seconds(), 0);
  EXPECT_EQ(info.response.limits().max_manifest_bytes(), uint64_t{1} << 20U);
  EXPECT_EQ(info.response.limits().max_epoch_jump(), uint64_t{1} << 20U);
  EXPECT_EQ(info.response.limits().history_versions(), 64U);
  EXPECT_EQ(info.response.limits().claim_history(), 1000U);
}

TEST_F(AdminTest, RevisionGrowsByOneWithEachDurableChange) {
  const uint64_t before = Revision(client());
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  EXPECT_EQ(Revision(client()), before + 1);
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  EXPECT_EQ(Revision(client()), before + 2);
  ASSERT_TRUE(IsOk(client().Get(shard).status));
  EXPECT_EQ(Revision(client()), before + 2);
}

TEST_F(AdminTest, StoreIdAndRevisionSurviveARestart) {
  auto own = ServerProcess::Start();
  ASSERT_TRUE(own.ok()) << own.status();
  v1::GetServerInfoResponse before;
  {
    const Client c((*own)->address());
    ASSERT_TRUE(IsOk(c.Claim(FreshShard(), "writer").status));
    before = c.Call(v1::GetServerInfoRequest()).response;
  }
  ASSERT_TRUE((*own)->Stop().ok());
  ASSERT_TRUE((*own)->Restart().ok());
  const auto after = Client((*own)->address()).Call(v1::GetServerInfoRequest()).response;
  EXPECT_EQ(after.store_id(), before.store_id());
  EXPECT_EQ(after.revision(), before.revision());

  auto other = ServerProcess::Start();
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(Client((*other)->address()).Call(v1::GetServerInfoRequest()).response.store_id(),
            before.store_id());
}

TEST_F(AdminTest, ImportKeepsVersionEpochAndSsTables) {
  const Shard shard = FreshShard();
  const v1::ShardManifest manifest = Manifest(shard);
  ASSERT_TRUE(IsOk(ImportOne(manifest)));
  v1::ShardManifest stored = client().Get(shard).response.manifest();
  EXPECT_TRUE(stored.has_create_time());
  EXPECT_TRUE(stored.has_update_time());
  stored.clear_create_time();
  stored.clear_update_time();
  EXPECT_EQ(Bytes(stored), Bytes(manifest));

  EXPECT_TRUE(IsOk(client().CheckFence(shard, 9).status));
  for (const uint32_t wrong : {0U, 2U}) {
    EXPECT_TRUE(Refused(client().Claim(shard, "writer", wrong).status, StatusCode::INVALID_ARGUMENT,
                        "SHARD_SPEC_MISMATCH", shard));
  }
  const auto claim = client().Claim(shard, "writer", 1);
  ASSERT_TRUE(IsOk(claim.status));
  EXPECT_EQ(claim.response.writer_epoch(), 10U);
  EXPECT_EQ(claim.response.manifest().version(), 18U);
  EXPECT_EQ(claim.response.manifest().sstables_size(), 2);
  EXPECT_EQ(AllVersions(client(), shard).size(), 2U);
}

TEST_F(AdminTest, ImportKeepsASealAndAClaim) {
  const Shard sealed = FreshShard();
  v1::ShardManifest manifest = Manifest(sealed);
  manifest.set_status(v1::SHARD_STATUS_SEALED);
  ASSERT_TRUE(IsOk(ImportOne(manifest)));
  EXPECT_TRUE(Refused(client().Claim(sealed, "writer", 1).status, StatusCode::FAILED_PRECONDITION,
                      "SHARD_SEALED", sealed));

  const Shard held = FreshShard();
  manifest = Manifest(held);
  manifest.mutable_claim()->set_writer_epoch(9);
  manifest.mutable_claim()->set_claimant("lance");
  ASSERT_TRUE(IsOk(ImportOne(manifest)));
  EXPECT_EQ(client().Claim(held, "writer", 1).response.previous_claim().claimant(), "lance");
}

TEST_F(AdminTest, IdenticalImportIsOkAndChangesNothing) {
  const Shard shard = FreshShard();
  const v1::ShardManifest manifest = Manifest(shard);
  ASSERT_TRUE(IsOk(ImportOne(manifest)));
  const NothingMoves guard(client(), shard);
  EXPECT_TRUE(IsOk(ImportOne(manifest)));
}

TEST_F(AdminTest, ImportOntoAnExistingShardIsRefusedWithoutEffect) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer", 1).status));
  const NothingMoves guard(client(), shard);
  EXPECT_TRUE(
      Refused(ImportOne(Manifest(shard)), StatusCode::ALREADY_EXISTS, "SHARD_EXISTS", shard));
}

TEST_F(AdminTest, ImportOntoATombstoneIsRefused) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer", 1).status));
  ASSERT_TRUE(IsOk(client().Seal(shard).status));
  ASSERT_TRUE(IsOk(client().Drop(shard).status));
  const NothingMoves guard(client(), shard);
  EXPECT_TRUE(
      Refused(ImportOne(Manifest(shard)), StatusCode::ALREADY_EXISTS, "SHARD_EXISTS", shard));
}

TEST_F(AdminTest, EachManifestHasItsOwnVerdictInItsPlace) {
  const Shard good = FreshShard();
  const Shard taken = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(taken, "writer", 1).status));
  v1::ShardManifest broken = Manifest(FreshShard());
  broken.set_current_generation(0);
  v1::ShardManifest twice = Manifest(good);
  twice.set_version(18);
  const auto answer =
      client().Import({Manifest(good), broken, Manifest(taken), twice, Manifest(FreshShard())});
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), 5);
  EXPECT_EQ(answer.response.results(0).code(), 0);
  EXPECT_TRUE(Refused(AsGrpcStatus(answer.response.results(1)), StatusCode::INVALID_ARGUMENT,
                      "INVALID_MANIFEST"));
  EXPECT_TRUE(Refused(AsGrpcStatus(answer.response.results(2)), StatusCode::ALREADY_EXISTS,
                      "SHARD_EXISTS", taken));
  EXPECT_TRUE(Refused(AsGrpcStatus(answer.response.results(3)), StatusCode::ALREADY_EXISTS,
                      "SHARD_EXISTS", good));
  EXPECT_EQ(answer.response.results(4).code(), 0);
}

TEST_F(AdminTest, EmptyImportIsAnsweredEmpty) {
  const auto answer = client().Import({});
  EXPECT_TRUE(IsOk(answer.status));
  EXPECT_EQ(answer.response.results_size(), 0);
}

TEST_F(AdminTest, ManyManifestsAreImportedInOneCall) {
  std::vector<v1::ShardManifest> manifests;
  constexpr int kManifests = 2000;
  manifests.reserve(kManifests);
  for (int i = 0; i < kManifests; ++i) manifests.push_back(Manifest(FreshShard("imported")));
  const auto answer = client().Import(manifests);
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), kManifests);
  for (const auto& result : answer.response.results()) ASSERT_EQ(result.code(), 0);
}

TEST_F(AdminTest, MoreThanTheLimitIsRefusedAndSaysHowManyWereTaken) {
  std::vector<v1::ShardManifest> manifests;
  constexpr int kTooMany = 10'001;
  v1::ShardManifest broken;
  manifests.assign(kTooMany, broken);
  const auto answer = client().Import(manifests);
  EXPECT_EQ(answer.status.error_code(), StatusCode::INVALID_ARGUMENT) << Describe(answer.status);
  EXPECT_THAT(answer.status.error_message(), ::testing::HasSubstr("10"));
}

TEST_F(AdminTest, ImportedClaimCannotBreakTheRefusalsThatNameIt) {
  const Shard shard = FreshShard();
  v1::ShardManifest manifest = Manifest(shard);
  manifest.mutable_claim()->set_writer_epoch(9);
  manifest.mutable_claim()->set_claimant(std::string(20'000, 'c'));
  if (!ImportOne(manifest).ok()) return;
  EXPECT_TRUE(Refused(client().CheckFence(shard, 1).status, StatusCode::FAILED_PRECONDITION,
                      "WRITER_FENCED", shard));
}

TEST_F(AdminTest, LastEpochAndVersionDoNotWrap) {
  const Shard last_epoch = FreshShard();
  v1::ShardManifest manifest = Manifest(last_epoch);
  manifest.set_writer_epoch(kMaxNumber - 1);
  ASSERT_TRUE(IsOk(ImportOne(manifest)));
  EXPECT_EQ(client().Claim(last_epoch, "last", 1).response.writer_epoch(), kMaxNumber);
  {
    const NothingMoves guard(client(), last_epoch);
    EXPECT_TRUE(Refused(client().Claim(last_epoch, "one too many", 1).status,
                        StatusCode::FAILED_PRECONDITION, "EPOCH_EXHAUSTED", last_epoch));
    EXPECT_TRUE(IsOk(client().CheckFence(last_epoch, kMaxNumber).status));
  }

  const Shard last_version = FreshShard();
  manifest = Manifest(last_version);
  manifest.set_version(kMaxNumber - 1);
  ASSERT_TRUE(IsOk(ImportOne(manifest)));
  EXPECT_EQ(client().Claim(last_version, "last", 1).response.manifest().version(), kMaxNumber);
  const NothingMoves guard(client(), last_version);
  EXPECT_TRUE(Refused(client().Claim(last_version, "one too many", 1).status,
                      StatusCode::FAILED_PRECONDITION, "VERSION_EXHAUSTED", last_version));
  EXPECT_TRUE(Refused(client().Seal(last_version).status, StatusCode::FAILED_PRECONDITION,
                      "VERSION_EXHAUSTED", last_version));
  auto commit = CommitAfter(client().Get(last_version).response.manifest());
  EXPECT_EQ(commit.manifest().version(), 0U);
  const auto refused = client().Call(commit);
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(Reason(refused.status), "") << Describe(refused.status);
}

struct Spoiler {
  std::string name;
  std::string field;
  std::function<void(v1::ShardManifest*)> spoil;
};
void PrintTo(const Spoiler& spoiler, std::ostream* out) { *out << spoiler.name; }

class InvalidImportTest : public AdminTest, public ::testing::WithParamInterface<Spoiler> {};

TEST_P(InvalidImportTest, IsRefusedWithoutEffect) {
  const Shard shard = FreshShard();
  v1::ShardManifest manifest = Manifest(shard);
  GetParam().spoil(&manifest);
  const NothingMoves guard(client(), shard);
  const grpc::Status verdict = ImportOne(manifest);
  EXPECT_TRUE(Refused(verdict, StatusCode::INVALID_ARGUMENT, "INVALID_MANIFEST"));
  EXPECT_THAT(BadFields(verdict), Contains(GetParam().field));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, InvalidImportTest,
    ::testing::Values(
        Spoiler{"NoTable", "manifest.table", [](auto* m) { m->clear_table(); }},
        Spoiler{"NoShardId", "manifest.shard_id", [](auto* m) { m->clear_shard_id(); }},
        Spoiler{"MalformedShardId", "manifest.shard_id", [](auto* m) { m->set_shard_id("x"); }},
        Spoiler{"UnknownStatus", "manifest.status",
                [](auto* m) { m->set_status(static_cast<v1::ShardStatus>(7)); }},
        Spoiler{"NoStatus", "manifest.status", [](auto* m) { m->clear_status(); }},
        Spoiler{"Dropped", "manifest.status",
                [](auto* m) { m->set_status(v1::SHARD_STATUS_DROPPED); }},
        Spoiler{"VersionZero", "manifest.version", [](auto* m) { m->set_version(0); }},
        Spoiler{"VersionMax", "manifest.version", [](auto* m) { m->set_version(kMaxNumber); }},
        Spoiler{"EpochMax", "manifest.writer_epoch",
                [](auto* m) { m->set_writer_epoch(kMaxNumber); }},
        Spoiler{"GenerationZero", "manifest.current_generation",
                [](auto* m) {
                  m->set_current_generation(0);
                  m->clear_sstables();
                }},
        Spoiler{"SsTableGenerationZero", "manifest.sstables[1].generation",
                [](auto* m) { m->mutable_sstables(1)->set_generation(0); }},
        Spoiler{"SsTableTwice", "manifest.sstables[1].generation",
                [](auto* m) { m->mutable_sstables(1)->set_generation(1); }},
        Spoiler{"SsTableOfTheCurrentGeneration", "manifest.sstables[1].generation",
                [](auto* m) { m->mutable_sstables(1)->set_generation(4); }},
        Spoiler{"ClaimOfAnotherEpoch", "manifest.claim.writer_epoch",
                [](auto* m) { m->mutable_claim()->set_writer_epoch(8); }},
        Spoiler{"ClaimantTooLong", "manifest.claim.claimant",
                [](auto* m) {
                  m->mutable_claim()->set_writer_epoch(9);
                  m->mutable_claim()->set_claimant(std::string(257, 'c'));
                }},
        Spoiler{"FingerprintTooLong", "manifest.shard_spec_fingerprint",
                [](auto* m) { m->set_shard_spec_fingerprint(std::string(65, 'f')); }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace claimd::e2e
