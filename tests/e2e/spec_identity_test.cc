#include <cstdint>
#include <ostream>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/state_fingerprint.h"

namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// Which spec a shard was made under, and which one a claim names.
struct SpecPair {
  uint32_t stored;
  uint32_t incoming;
};
void PrintTo(const SpecPair& pair, std::ostream* out) {
  *out << pair.stored << "_stored_" << pair.incoming << "_incoming";
}

class SpecIdentityTest : public SharedServerTest {};
class SpecMismatchTest : public SharedServerTest, public ::testing::WithParamInterface<SpecPair> {
 protected:
  // Every mismatch says the same, whatever the call.
  static void ExpectMismatch(const grpc::Status& status, const Shard& shard) {
    const std::string stored = absl::StrCat(GetParam().stored);
    const std::string incoming = absl::StrCat(GetParam().incoming);
    EXPECT_TRUE(Refused(status, StatusCode::INVALID_ARGUMENT, "SHARD_SPEC_MISMATCH"));
    EXPECT_THAT(Metadata(status),
                UnorderedElementsAre(Pair("table", shard.table), Pair("shard_id", shard.id),
                                     Pair("incoming_shard_spec_id", incoming),
                                     Pair("stored_shard_spec_id", stored)));
    EXPECT_THAT(status.error_message(), HasSubstr(shard.id));
    EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat("spec id ", stored)));
    EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat("spec id ", incoming)));
  }
};

TEST_P(SpecMismatchTest, ClaimOfHeldShardIsRefusedWithoutEffect) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "first", GetParam().stored).status));
  const NothingMoves guard(client(), shard);
  ExpectMismatch(client().Claim(shard, "second", GetParam().incoming).status, shard);
}

TEST_P(SpecMismatchTest, ClaimOfInitializedShardIsRefusedWithoutEffect) {
  const Shard shard = FreshShard();
  auto initialize = For<v1::InitializeShardRequest>(shard);
  initialize.set_shard_spec_id(GetParam().stored);
  ASSERT_TRUE(IsOk(client().Call(initialize).status));
  const NothingMoves guard(client(), shard);
  ExpectMismatch(client().Claim(shard, "writer", GetParam().incoming).status, shard);
}

TEST_P(SpecMismatchTest, InitializeIsRefusedWithoutEffect) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer", GetParam().stored).status));
  const NothingMoves guard(client(), shard);
  auto initialize = For<v1::InitializeShardRequest>(shard);
  initialize.set_shard_spec_id(GetParam().incoming);
  ExpectMismatch(client().Call(initialize).status, shard);
}

TEST_P(SpecMismatchTest, IncumbentIsNotFencedByTheRefusal) {
  const Shard shard = FreshShard();
  const auto claim = client().Claim(shard, "first", GetParam().stored);
  ASSERT_TRUE(IsOk(claim.status));
  ExpectMismatch(client().Claim(shard, "second", GetParam().incoming).status, shard);
  EXPECT_TRUE(IsOk(client().CheckFence(shard, claim.response.writer_epoch()).status));
  EXPECT_TRUE(IsOk(client().Call(CommitAfter(claim.response.manifest())).status));
}

INSTANTIATE_TEST_SUITE_P(BothWays, SpecMismatchTest,
                         ::testing::Values(SpecPair{1, 0}, SpecPair{0, 1}, SpecPair{1, 2},
                                           SpecPair{7, 4294967295U}),
                         ::testing::PrintToStringParamName());

TEST_F(SpecIdentityTest, AbsentSpecIsZeroOnBothSides) {
  const Shard shard = FreshShard();
  const auto made = client().Claim(shard, "absent");
  ASSERT_TRUE(IsOk(made.status));
  EXPECT_EQ(made.response.manifest().shard_spec_id(), 0U);
  EXPECT_TRUE(IsOk(client().Claim(shard, "zero", 0).status));
  EXPECT_TRUE(IsOk(client().Claim(shard, "absent again").status));
  EXPECT_TRUE(Refused(client().Claim(shard, "one", 1).status, StatusCode::INVALID_ARGUMENT,
                      "SHARD_SPEC_MISMATCH", shard));
}

TEST_F(SpecIdentityTest, AbsentSpecDoesNotMatchAnotherStoredOne) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "one", 1).status));
  const NothingMoves guard(client(), shard);
  const auto refused = client().Claim(shard, "absent");
  EXPECT_TRUE(Refused(refused.status, StatusCode::INVALID_ARGUMENT, "SHARD_SPEC_MISMATCH", shard));
  EXPECT_EQ(Metadata(refused.status)["incoming_shard_spec_id"], "0");
}

TEST_F(SpecIdentityTest, EqualIdsWithOtherFingerprintAreRefusedWithoutEffect) {
  const Shard shard = FreshShard();
  auto four_buckets = ClaimOf(shard, "four buckets", 1);
  four_buckets.set_shard_spec_fingerprint("\x04\xff");
  ASSERT_TRUE(IsOk(client().Call(four_buckets).status));
  const NothingMoves guard(client(), shard);

  auto eight_buckets = ClaimOf(shard, "eight buckets", 1);
  eight_buckets.set_shard_spec_fingerprint("\x08");
  const auto refused = client().Call(eight_buckets);
  EXPECT_TRUE(Refused(refused.status, StatusCode::INVALID_ARGUMENT,
                      "SHARD_SPEC_FINGERPRINT_MISMATCH", shard));
  EXPECT_THAT(
      Metadata(refused.status),
      UnorderedElementsAre(Pair("table", shard.table), Pair("shard_id", shard.id),
                           Pair("incoming_shard_spec_id", "1"), Pair("stored_shard_spec_id", "1"),
                           Pair("incoming_shard_spec_fingerprint", "08"),
                           Pair("stored_shard_spec_fingerprint", "04ff")));

  auto initialize = For<v1::InitializeShardRequest>(shard);
  initialize.set_shard_spec_id(1);
  initialize.set_shard_spec_fingerprint("\x08");
  EXPECT_TRUE(Refused(client().Call(initialize).status, StatusCode::INVALID_ARGUMENT,
                      "SHARD_SPEC_FINGERPRINT_MISMATCH", shard));
}

TEST_F(SpecIdentityTest, OtherIdIsAMismatchOfIdsWhateverTheFingerprints) {
  const Shard shard = FreshShard();
  auto made = ClaimOf(shard, "writer", 1);
  made.set_shard_spec_fingerprint("same");
  ASSERT_TRUE(IsOk(client().Call(made).status));
  auto other = ClaimOf(shard, "writer", 2);
  other.set_shard_spec_fingerprint("same");
  EXPECT_TRUE(Refused(client().Call(other).status, StatusCode::INVALID_ARGUMENT,
                      "SHARD_SPEC_MISMATCH", shard));
}

TEST_F(SpecIdentityTest, OneSideWithoutFingerprintComparesIdsOnly) {
  const Shard with = FreshShard();
  auto made_with = ClaimOf(with, "writer", 1);
  made_with.set_shard_spec_fingerprint("stored");
  ASSERT_TRUE(IsOk(client().Call(made_with).status));
  const auto without = client().Claim(with, "writer", 1);
  ASSERT_TRUE(IsOk(without.status));
  EXPECT_EQ(without.response.manifest().shard_spec_fingerprint(), "stored");

  const Shard bare = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(bare, "writer", 1).status));
  auto claim = ClaimOf(bare, "writer", 1);
  claim.set_shard_spec_fingerprint("new");
  const auto granted = client().Call(claim);
  ASSERT_TRUE(IsOk(granted.status));
  EXPECT_EQ(granted.response.manifest().shard_spec_fingerprint(), "")
      << "a fingerprint is stored at creation only";
}

TEST_F(SpecIdentityTest, FieldValuesAreStoredAtCreationAndMustAgreeAfterwards) {
  const Shard shard = FreshShard();
  auto made = ClaimOf(shard, "writer", 1);
  (*made.mutable_shard_field_values())["bucket"] = std::string("\0\x07", 2);
  const auto created = client().Call(made);
  ASSERT_TRUE(IsOk(created.status));
  EXPECT_EQ(created.response.manifest().shard_field_values().at("bucket"),
            std::string("\0\x07", 2));

  EXPECT_TRUE(IsOk(client().Call(made).status)) << "equal values";
  EXPECT_TRUE(IsOk(client().Claim(shard, "writer", 1).status)) << "no values";

  const NothingMoves guard(client(), shard);
  auto other = ClaimOf(shard, "writer", 1);
  (*other.mutable_shard_field_values())["bucket"] = "8";
  const auto refused = client().Call(other);
  EXPECT_TRUE(
      Refused(refused.status, StatusCode::ALREADY_EXISTS, "SHARD_IDENTITY_CONFLICT", shard));
  EXPECT_EQ(Metadata(refused.status)["differs"], "shard_field_values");

  auto initialize = For<v1::InitializeShardRequest>(shard);
  initialize.set_shard_spec_id(1);
  (*initialize.mutable_shard_field_values())["bucket"] = "8";
  EXPECT_TRUE(Refused(client().Call(initialize).status, StatusCode::ALREADY_EXISTS,
                      "SHARD_IDENTITY_CONFLICT", shard));
}

TEST_F(SpecIdentityTest, InitializeMakesVersionOneAtEpochZeroAndIsIdempotent) {
  const Shard shard = FreshShard();
  auto request = For<v1::InitializeShardRequest>(shard);
  request.set_shard_spec_id(3);
  request.set_shard_spec_fingerprint("f");
  (*request.mutable_shard_field_values())["region"] = "eu";
  const auto made = client().Call(request);
  ASSERT_TRUE(IsOk(made.status));
  EXPECT_TRUE(made.response.created());
  const v1::ShardManifest& manifest = made.response.manifest();
  EXPECT_EQ(manifest.version(), 1U);
  EXPECT_EQ(manifest.writer_epoch(), 0U);
  EXPECT_EQ(manifest.current_generation(), 1U);
  EXPECT_EQ(manifest.status(), v1::SHARD_STATUS_ACTIVE);
  EXPECT_FALSE(manifest.has_claim());
  EXPECT_TRUE(manifest.has_create_time());

  const NothingMoves guard(client(), shard);
  const auto again = client().Call(request);
  ASSERT_TRUE(IsOk(again.status));
  EXPECT_FALSE(again.response.created());
  EXPECT_EQ(Bytes(again.response.manifest()), Bytes(manifest));
}

TEST_F(SpecIdentityTest, FirstClaimMakesTheShard) {
  const Shard shard = FreshShard();
  auto request = ClaimOf(shard, "writer", 1);
  (*request.mutable_labels())["pod"] = "a-0";
  request.set_request_id(RandomUuid());
  const auto claim = client().Call(request);
  ASSERT_TRUE(IsOk(claim.status));
  EXPECT_EQ(claim.response.writer_epoch(), 1U);
  EXPECT_TRUE(claim.response.created());
  EXPECT_FALSE(claim.response.has_previous_claim());
  const v1::ShardManifest& manifest = claim.response.manifest();
  EXPECT_EQ(manifest.table(), shard.table);
  EXPECT_EQ(manifest.shard_id(), shard.id);
  EXPECT_EQ(manifest.version(), 1U);
  EXPECT_EQ(manifest.writer_epoch(), 1U);
  EXPECT_EQ(manifest.current_generation(), 1U);
  EXPECT_EQ(manifest.claim().writer_epoch(), 1U);
  EXPECT_EQ(manifest.claim().claimant(), "writer");
  EXPECT_EQ(manifest.claim().labels().at("pod"), "a-0");
  EXPECT_EQ(manifest.claim().request_id(), request.request_id());
  EXPECT_EQ(Bytes(client().Get(shard).response.manifest()), Bytes(manifest));
}

TEST_F(SpecIdentityTest, ShardIdIsTakenInEitherCaseAndAnsweredInLowerCase) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "lower").status));
  const Shard upper{shard.table, absl::AsciiStrToUpper(shard.id)};
  const auto claim = client().Claim(upper, "upper");
  ASSERT_TRUE(IsOk(claim.status));
  EXPECT_EQ(claim.response.writer_epoch(), 2U);
  EXPECT_EQ(claim.response.manifest().shard_id(), shard.id);
}

TEST_F(SpecIdentityTest, SameIdInAnotherTableIsAnotherShard) {
  const Shard shard = FreshShard("orders");
  const Shard other{"customers", shard.id};
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer", 1).status));
  const auto claim = client().Claim(other, "writer", 2);
  ASSERT_TRUE(IsOk(claim.status));
  EXPECT_EQ(claim.response.writer_epoch(), 1U);
}

}  // namespace
}  // namespace claimd::e2e
