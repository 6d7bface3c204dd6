#include <set>
#include <string>

#include "absl/status/status.h"
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"
#include "google/rpc/error_details.pb.h"

#include "server/rpc/validation.h"

namespace claimd::rpc {
namespace {

constexpr char kId[] = "AA48498D-ac91-59e2-8452-69f46010ace2";

// Names of the fields that a verdict complains about.
std::set<std::string> BadFields(const absl::Status& verdict) {
  std::set<std::string> fields;
  const auto payload = verdict.GetPayload("type.googleapis.com/google.rpc.BadRequest");
  google::rpc::BadRequest bad;
  if (payload.has_value() && bad.ParseFromString(std::string(*payload))) {
    for (const auto& violation : bad.field_violations()) fields.insert(violation.field());
  }
  return fields;
}

template <typename Request>
Request Good() {
  Request request;
  request.set_table("t");
  request.set_shard_id(kId);
  return request;
}

using Fields = std::set<std::string>;

TEST(ValidateTest, TakesWhatIsInBounds) {
  auto claim = Good<v1::ClaimEpochRequest>();
  claim.set_table(std::string(512, 't'));
  claim.set_claimant(std::string(256, 'c'));
  claim.set_request_id(std::string(128, 'r'));
  claim.set_shard_spec_fingerprint(std::string(64, '\0'));
  for (int i = 0; i < 64; ++i) (*claim.mutable_labels())[std::to_string(i)] = "v";
  (*claim.mutable_shard_field_values())["f"] = std::string(4096, '\xff');
  EXPECT_TRUE(Validate(claim).ok()) << Validate(claim);
  EXPECT_TRUE(Validate(Good<v1::CheckFenceRequest>()).ok());
  EXPECT_TRUE(Validate(Good<v1::GetManifestRequest>()).ok());
}

TEST(ValidateTest, NamesEveryBadFieldOfAClaimAtOnce) {
  v1::ClaimEpochRequest claim;
  claim.set_shard_id("nonsense");
  claim.set_claimant("two\nlines");
  claim.set_request_id(std::string(129, 'r'));
  claim.set_mode(static_cast<v1::ClaimMode>(77));
  claim.mutable_lease_duration()->set_seconds(5);
  claim.set_shard_spec_fingerprint(std::string(65, 'f'));
  (*claim.mutable_labels())[""] = "x";
  (*claim.mutable_shard_field_values())["f"] = std::string(4097, 'x');
  const absl::Status verdict = Validate(claim);
  EXPECT_EQ(verdict.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BadFields(verdict),
            (Fields{"table", "shard_id", "claimant", "request_id", "mode", "lease_duration",
                    "shard_spec_fingerprint", "labels", "shard_field_values"}));
}

TEST(ValidateTest, BoundsTables) {
  for (const std::string& table :
       {std::string(), std::string(513, 't'), std::string("a\tb"), std::string("a\0b", 3)}) {
    v1::ListShardsRequest request;
    request.set_table(table);
    EXPECT_EQ(BadFields(Validate(request)), Fields{"table"});
  }
}

TEST(ValidateTest, BoundsLabels) {
  auto claim = Good<v1::ClaimEpochRequest>();
  for (int i = 0; i < 65; ++i) (*claim.mutable_labels())[std::to_string(i)] = "v";
  EXPECT_EQ(BadFields(Validate(claim)), Fields{"labels"});
  claim.clear_labels();
  (*claim.mutable_labels())["k"] = std::string(1025, 'v');
  EXPECT_EQ(BadFields(Validate(claim)), Fields{"labels"});
  claim.clear_labels();
  (*claim.mutable_labels())[std::string(129, 'k')] = "v";
  EXPECT_EQ(BadFields(Validate(claim)), Fields{"labels"});
}

TEST(ValidateTest, BoundsPagesAndViews) {
  v1::ListShardsRequest request;
  request.set_table("t");
  request.set_page_size(2'000'000'000);
  EXPECT_TRUE(Validate(request).ok()) << "large pages are cut, not refused";
  request.set_page_size(-1);
  request.set_view(static_cast<v1::ShardView>(9));
  request.set_status(static_cast<v1::ShardStatus>(9));
  request.set_page_token(std::string(5'000, 'x'));
  EXPECT_EQ(BadFields(Validate(request)), (Fields{"page_size", "view", "status", "page_token"}));
}

TEST(ValidateTest, ABatchHoldsOneTo1024Claims) {
  v1::BatchClaimEpochRequest batch;
  EXPECT_EQ(BadFields(Validate(batch)), Fields{"requests"});
  for (int i = 0; i < 1'024; ++i) batch.add_requests();
  EXPECT_TRUE(Validate(batch).ok()) << "items are judged one by one";
  batch.add_requests();
  EXPECT_EQ(BadFields(Validate(batch)), Fields{"requests"});
}

TEST(ValidateTest, RefusesWhatOtherRpcsCannotDo) {
  EXPECT_EQ(BadFields(Validate(Good<v1::CommitManifestRequest>())), Fields{"manifest"});
  auto get = Good<v1::GetManifestRequest>();
  get.set_version(0);
  EXPECT_EQ(BadFields(Validate(get)), Fields{"version"});
  for (const absl::Status& verdict :
       {Validate(v1::ReleaseEpochRequest()), Validate(v1::SealShardRequest()),
        Validate(v1::UnsealShardRequest()), Validate(v1::DropShardRequest()),
        Validate(v1::InitializeShardRequest()), Validate(v1::CheckFenceRequest()),
        Validate(v1::ListManifestVersionsRequest()), Validate(v1::ListClaimsRequest())}) {
    EXPECT_EQ(BadFields(verdict), (Fields{"table", "shard_id"}));
  }
}

}  // namespace
}  // namespace claimd::rpc
