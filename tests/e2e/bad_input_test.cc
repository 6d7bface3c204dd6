#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/state_fingerprint.h"

// Malformed requests: one clear answer that names every bad field, and a server unharmed.
namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

class BadInputTest : public SharedServerTest {
 protected:
  void TearDown() override {
    EXPECT_TRUE(IsOk(client().Claim(FreshShard(), "unharmed").status));
    SharedServerTest::TearDown();
  }

  // INVALID_REQUEST that names exactly these fields, with words for each.
  static void ExpectBadFields(const grpc::Status& status, const std::vector<std::string>& fields) {
    EXPECT_TRUE(Refused(status, StatusCode::INVALID_ARGUMENT, "INVALID_REQUEST"));
    EXPECT_THAT(BadFields(status), ::testing::UnorderedElementsAreArray(fields));
    const google::rpc::BadRequest bad = BadRequestOf(status);
    for (const auto& violation : bad.field_violations()) {
      EXPECT_THAT(violation.description(), Not(IsEmpty())) << violation.field();
    }
  }

  static std::string Method(const std::string& rpc) {
    return absl::StrCat("/claimd.v1.ShardArbiter/", rpc);
  }
};

TEST_F(BadInputTest, MalformedUuidsAreRefused) {
  const std::string good = RandomUuid();
  for (const std::string& id :
       {std::string(), std::string("x"), good.substr(1), good + "0", "{" + good + "}",
        "urn:uuid:" + good, std::string(32, 'a'), std::string(36, '-'), good.substr(0, 35) + "g",
        std::string(1000, 'a'), std::string("\0", 1)}) {
    ExpectBadFields(client().Claim(Shard{"orders", id}, "writer").status, {"shard_id"});
    ExpectBadFields(client().Get(Shard{"orders", id}).status, {"shard_id"});
  }
}

TEST_F(BadInputTest, UuidOfAnyVersionIsTaken) {
  for (const char* id :
       {"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "74738ff5-5367-5958-9aee-98fffdcd1876"}) {
    EXPECT_TRUE(IsOk(client().Claim(Shard{"any version", id}, "writer").status)) << id;
  }
}

TEST_F(BadInputTest, TablesOutOfBoundsAreRefused) {
  for (const std::string& table :
       {std::string(), std::string(513, 't'), std::string(100'000, 't'), std::string("a\nb"),
        std::string("a\0b", 3), std::string("\x7f"), std::string("\xc2\x85")}) {
    ExpectBadFields(client().Claim(Shard{table, RandomUuid()}, "writer").status, {"table"});
    v1::ListShardsRequest list;
    list.set_table(table);
    ExpectBadFields(client().Call(list).status, {"table"});
  }
}

TEST_F(BadInputTest, TablesWithinBoundsAreTaken) {
  for (const std::string& table : {std::string(512, 't'), std::string("t"),
                                   std::string("Bestellungen/\xc3\xbc \xe2\x82\xac \"q\" %2F")}) {
    const Shard shard = FreshShard(table);
    EXPECT_TRUE(IsOk(client().Claim(shard, "writer", 1).status));
    EXPECT_TRUE(Refused(client().Claim(shard, "writer", 2).status, StatusCode::INVALID_ARGUMENT,
                        "SHARD_SPEC_MISMATCH", shard));
  }
}

TEST_F(BadInputTest, EveryBadFieldOfAClaimIsNamedAtOnce) {
  auto request = ClaimOf(Shard{"", "x"}, std::string(257, 'c'));
  request.set_request_id(std::string(129, 'r'));
  request.set_mode(static_cast<v1::ClaimMode>(99));
  request.mutable_lease_duration()->set_seconds(5);
  request.set_shard_spec_fingerprint(std::string(65, 'f'));
  (*request.mutable_shard_field_values())[std::string(257, 'k')] = "";
  const auto refused = client().Call(request);
  EXPECT_TRUE(Refused(refused.status, StatusCode::INVALID_ARGUMENT, "INVALID_REQUEST"));
  const std::vector<std::string> fields = BadFields(refused.status);
  for (const char* field : {"table", "shard_id", "claimant", "request_id", "mode", "lease_duration",
                            "shard_spec_fingerprint"}) {
    EXPECT_THAT(fields, Contains(field));
  }
  EXPECT_THAT(fields, Contains(HasSubstr("shard_field_values")));
}

TEST_F(BadInputTest, ControlCharactersAreRefused) {
  auto request = ClaimOf(FreshShard(), "a\nb");
  request.set_request_id("a\tb");
  ExpectBadFields(client().Call(request).status, {"claimant", "request_id"});
}

TEST_F(BadInputTest, LabelsOutOfBoundsAreRefused) {
  const auto with_labels = [](auto fill) {
    auto request = ClaimOf(FreshShard(), "writer");
    fill(request.mutable_labels());
    return request;
  };
  for (const auto& request : {
           with_labels([](auto* labels) {
             for (int i = 0; i < 65; ++i) (*labels)[absl::StrCat(i)] = "v";
           }),
           with_labels([](auto* labels) { (*labels)[std::string(129, 'k')] = "v"; }),
           with_labels([](auto* labels) { (*labels)["k"] = std::string(1025, 'v'); }),
       }) {
    const auto refused = client().Call(request);
    EXPECT_TRUE(Refused(refused.status, StatusCode::INVALID_ARGUMENT, "INVALID_REQUEST"));
    EXPECT_THAT(BadFields(refused.status), Contains(HasSubstr("labels")));
  }
}

TEST_F(BadInputTest, LargestAllowedClaimIsGrantedAndItsRefusalsStillArrive) {
  Shard shard{std::string(512, 't'), RandomUuid()};
  auto request = ClaimOf(shard, std::string(256, 'c'), 1);
  request.set_request_id(std::string(128, 'r'));
  request.set_shard_spec_fingerprint(std::string(64, 'f'));
  for (int i = 0; i < 64; ++i) {
    (*request.mutable_labels())[absl::StrCat(std::string(126, 'k'), i + 10)] =
        std::string(1024, 'v');
    (*request.mutable_shard_field_values())[absl::StrCat(std::string(254, 'f'), i + 10)] =
        std::string(4096, 'v');
  }
  const auto claim = client().Call(request);
  ASSERT_TRUE(IsOk(claim.status));
  auto held = ClaimOf(shard, "next", 1);
  held.set_mode(v1::CLAIM_MODE_IF_FREE);
  EXPECT_TRUE(
      Refused(client().Call(held).status, StatusCode::FAILED_PRECONDITION, "SHARD_HELD", shard));
  auto other = ClaimOf(shard, "next", 1);
  other.set_shard_spec_fingerprint(std::string(64, 'g'));
  EXPECT_TRUE(Refused(client().Call(other).status, StatusCode::INVALID_ARGUMENT,
                      "SHARD_SPEC_FINGERPRINT_MISMATCH", shard));
}

TEST_F(BadInputTest, LongNamesBeyondAsciiDoNotBreakTheTrailersOfAnyRefusal) {
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  const std::string euro = "\xe2\x82\xac";
  const Shard shard{repeated(euro, 170), RandomUuid()};
  EXPECT_TRUE(Refused(client().Get(shard).status, StatusCode::NOT_FOUND, "SHARD_NOT_FOUND", shard));
  auto claim = ClaimOf(shard, repeated(euro, 85), 1);
  claim.set_request_id(repeated(euro, 42));
  const auto first = client().Call(claim);
  ASSERT_TRUE(IsOk(first.status));
  auto commit = CommitAfter(first.response.manifest());
  commit.set_request_id(claim.request_id());
  EXPECT_TRUE(Refused(client().Call(commit).status, StatusCode::INVALID_ARGUMENT,
                      "REQUEST_ID_REUSED", shard));
  commit = CommitAfter(first.response.manifest());
  commit.mutable_manifest()->set_version(9);
  EXPECT_TRUE(Refused(client().Call(commit).status, StatusCode::ABORTED,
                      "MANIFEST_VERSION_CONFLICT", shard));
  auto held = ClaimOf(shard, "next", 1);
  held.set_mode(v1::CLAIM_MODE_IF_FREE);
  EXPECT_TRUE(
      Refused(client().Call(held).status, StatusCode::FAILED_PRECONDITION, "SHARD_HELD", shard));
  ASSERT_TRUE(IsOk(client().Claim(shard, repeated(euro, 85), 1).status));
  EXPECT_TRUE(Refused(client().CheckFence(shard, 1).status, StatusCode::FAILED_PRECONDITION,
                      "WRITER_FENCED", shard));
  EXPECT_TRUE(Refused(client().Call(claim).status, StatusCode::ABORTED, "CLAIM_SUPERSEDED", shard));
}

TEST_F(BadInputTest, TenMegabytesOfLabelsAreOneClearAnswer) {
  auto request = ClaimOf(FreshShard(), "writer");
  std::string blob;
  blob.resize(10'000'000, 'x');
  (*request.mutable_labels())["blob"] = blob;
  const auto refused = client().Call(request);
  EXPECT_THAT(refused.status.error_code(),
              ::testing::AnyOf(StatusCode::INVALID_ARGUMENT, StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_THAT(refused.status.error_message(), Not(IsEmpty()));
}

TEST_F(BadInputTest, InvalidUtf8IsRefusedAndNamed) {
  const Shard shard = FreshShard();
  struct Case {
    v1::ClaimEpochRequest request;
    std::string field;
  };
  std::vector<Case> cases;
  for (const std::string& bad : {std::string("\xff"), std::string("a\xc3"),
                                 std::string("\xed\xa0\x80"), std::string("\xc0\xaf")}) {
    cases.push_back({ClaimOf(Shard{bad, shard.id}, "writer"), "table"});
    cases.push_back({ClaimOf(Shard{shard.table, bad}, "writer"), "shard_id"});
    cases.push_back({ClaimOf(shard, bad), "claimant"});
    cases.push_back({ClaimOf(shard, "writer"), "request_id"});
    cases.back().request.set_request_id(bad);
    cases.push_back({ClaimOf(shard, "writer"), "labels"});
    (*cases.back().request.mutable_labels())["k"] = bad;
  }
  const NothingMoves guard(client(), shard);
  for (const Case& one : cases) {
    const grpc::Status status = client().CallRaw(Method("ClaimEpoch"), Bytes(one.request));
    EXPECT_TRUE(Refused(status, StatusCode::INVALID_ARGUMENT, "INVALID_REQUEST")) << one.field;
    EXPECT_THAT(BadFields(status), Contains(HasSubstr(one.field)));
  }
}

TEST_F(BadInputTest, InvalidUtf8InsideABatchItemIsNamed) {
  v1::BatchClaimEpochRequest batch;
  *batch.add_requests() = ClaimOf(FreshShard(), "good");
  *batch.add_requests() = ClaimOf(FreshShard(), "\xff");
  const grpc::Status status = client().CallRaw(Method("BatchClaimEpoch"), Bytes(batch));
  EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << Describe(status);
}

TEST_F(BadInputTest, BytesThatAreNoMessageAreRefused) {
  for (const std::string& bytes : {std::string("\x0a\xff\xff\xff\xff\x0f"), std::string("\xff"),
                                   std::string(1000, '\x0c'), std::string("\x0a\x05", 2)}) {
    for (const char* rpc : {"ClaimEpoch", "CommitManifest", "ListShards", "BatchClaimEpoch"}) {
      const grpc::Status status = client().CallRaw(Method(rpc), bytes);
      EXPECT_FALSE(status.ok()) << rpc;
      EXPECT_THAT(status.error_message(), Not(IsEmpty())) << rpc;
    }
  }
}

TEST_F(BadInputTest, UnknownFieldsOfANewerClientAreIgnored) {
  const std::string newer = Bytes(ClaimOf(FreshShard(), "newer")) + std::string("\xa2\x3e\x01x");
  EXPECT_TRUE(IsOk(client().CallRaw(Method("ClaimEpoch"), newer)));
}

TEST_F(BadInputTest, UnknownMethodIsUnimplemented) {
  EXPECT_EQ(client().CallRaw(Method("NoSuchRpc"), "").error_code(), StatusCode::UNIMPLEMENTED);
}

TEST_F(BadInputTest, BatchOutOfBoundsIsRefusedWhole) {
  v1::BatchClaimEpochRequest batch;
  ExpectBadFields(client().Call(batch).status, {"requests"});
  const Shard shard = FreshShard();
  for (int i = 0; i < 1025; ++i) *batch.add_requests() = ClaimOf(shard, "node");
  const NothingMoves guard(client(), shard);
  ExpectBadFields(client().Call(batch).status, {"requests"});
}

TEST_F(BadInputTest, MalformedItemOfABatchIsRefusedAlone) {
  const Shard good = FreshShard();
  v1::BatchClaimEpochRequest batch;
  *batch.add_requests() = ClaimOf(good, "node");
  *batch.add_requests() = ClaimOf(Shard{"", "x"}, "node");
  const auto answer = client().Call(batch);
  ASSERT_TRUE(IsOk(answer.status));
  ASSERT_EQ(answer.response.results_size(), 2);
  EXPECT_EQ(answer.response.results(0).response().writer_epoch(), 1U);
  const grpc::Status second = AsGrpcStatus(answer.response.results(1).status());
  EXPECT_TRUE(Refused(second, StatusCode::INVALID_ARGUMENT, "INVALID_REQUEST"));
  EXPECT_THAT(BadFields(second), UnorderedElementsAre(HasSubstr("table"), HasSubstr("shard_id")));
}

TEST_F(BadInputTest, UnknownEnumValuesAreRefused) {
  v1::ListShardsRequest list;
  list.set_table("orders");
  list.set_status(static_cast<v1::ShardStatus>(99));
  list.set_view(static_cast<v1::ShardView>(99));
  ExpectBadFields(client().Call(list).status, {"status", "view"});
  auto versions = For<v1::ListManifestVersionsRequest>(FreshShard());
  versions.set_view(static_cast<v1::ShardView>(-1));
  ExpectBadFields(client().Call(versions).status, {"view"});
}

TEST_F(BadInputTest, NegativePageSizesAreRefused) {
  const Shard shard = FreshShard();
  auto versions = For<v1::ListManifestVersionsRequest>(shard);
  versions.set_page_size(-1);
  ExpectBadFields(client().Call(versions).status, {"page_size"});
  auto claims = For<v1::ListClaimsRequest>(shard);
  claims.set_page_size(std::numeric_limits<int32_t>::min());
  ExpectBadFields(client().Call(claims).status, {"page_size"});
}

TEST_F(BadInputTest, VersionZeroIsNoVersion) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  auto get = For<v1::GetManifestRequest>(shard);
  get.set_version(0);
  ExpectBadFields(client().Call(get).status, {"version"});
  get.set_version(std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(
      Refused(client().Call(get).status, StatusCode::NOT_FOUND, "VERSION_NOT_FOUND", shard));
}

TEST_F(BadInputTest, CommitWithoutAManifestIsRefused) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  const NothingMoves guard(client(), shard);
  auto commit = For<v1::CommitManifestRequest>(shard);
  commit.set_writer_epoch(1);
  const auto refused = client().Call(commit);
  EXPECT_EQ(refused.status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(BadFields(refused.status), ElementsAre("manifest"));
}

TEST_F(BadInputTest, EmptyRequestsOfEveryMutationNameTheKey) {
  for (const char* rpc : {"ClaimEpoch", "InitializeShard", "CheckFence", "CommitManifest",
                          "ReleaseEpoch", "GetManifest", "ListManifestVersions", "ListClaims",
                          "SealShard", "UnsealShard", "DropShard"}) {
    const grpc::Status status = client().CallRaw(Method(rpc), "");
    EXPECT_TRUE(Refused(status, StatusCode::INVALID_ARGUMENT, "INVALID_REQUEST")) << rpc;
    EXPECT_THAT(BadFields(status), Contains("table")) << rpc;
    EXPECT_THAT(BadFields(status), Contains("shard_id")) << rpc;
  }
}

TEST_F(BadInputTest, ExtremeEpochsAreAnsweredWithoutWrapping) {
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client().Claim(shard, "writer").status));
  const NothingMoves guard(client(), shard);
  auto claim = ClaimOf(shard, "writer");
  claim.set_expected_epoch(std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(Refused(client().Call(claim).status, StatusCode::ABORTED, "EPOCH_MISMATCH", shard));
}

TEST_F(BadInputTest, ManyBadFieldsStillFitIntoTheAnswer) {
  auto request = ClaimOf(Shard{std::string(100'000, '\n'), std::string(100'000, 'x')},
                         std::string(100'000, 'c'));
  for (int i = 0; i < 64; ++i) {
    (*request.mutable_labels())[absl::StrCat(std::string(10'000, '\n'), i)] =
        std::string(10'000, 'v');
  }
  const auto refused = client().Call(request);
  EXPECT_TRUE(Refused(refused.status, StatusCode::INVALID_ARGUMENT, "INVALID_REQUEST"));
  EXPECT_THAT(BadFields(refused.status), Contains("table"));
}

}  // namespace
}  // namespace claimd::e2e
