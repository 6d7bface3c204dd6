#include "server/arbiter/errors.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"
#include "google/rpc/error_details.pb.h"

#include "tests/unit/rules_test_util.h"

namespace claimd::arbiter {
namespace {

google::rpc::ErrorInfo InfoOf(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  const auto payload = status.GetPayload("type.googleapis.com/google.rpc.ErrorInfo");
  if (payload.has_value()) info.ParseFromString(std::string(*payload));
  return info;
}

size_t DetailsSize(const absl::Status& status) {
  size_t size = 0;
  status.ForEachPayload(
      [&size](auto url, const auto& value) { size += url.size() + value.size(); });
  return size;
}

TEST(ErrorsTest, AMismatchNamesTheShardAndBothIdsInMessageAndMetadata) {
  const absl::Status status = ShardSpecMismatchError(At(nullptr).key, 4, 17);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* part : {kId, " 4", " 17"}) {
    EXPECT_NE(status.message().find(part), absl::string_view::npos) << status;
  }
  const google::rpc::ErrorInfo info = InfoOf(status);
  EXPECT_EQ(info.reason(), "SHARD_SPEC_MISMATCH");
  EXPECT_EQ(info.domain(), "claimd");
  EXPECT_EQ(info.metadata().at("table"), "t");
  EXPECT_EQ(info.metadata().at("shard_id"), kId);
  EXPECT_EQ(info.metadata().at("incoming_shard_spec_id"), "4");
  EXPECT_EQ(info.metadata().at("stored_shard_spec_id"), "17");
}

TEST(ErrorsTest, AVersionConflictCarriesTheManifestOnlyWhileItIsSmall) {
  v1::ShardManifest stored = LiveHead().manifest();
  const std::string url = "type.googleapis.com/claimd.v1.ShardManifest";
  const absl::Status small = VersionConflictError(At(nullptr).key, 9, stored);
  ASSERT_TRUE(small.GetPayload(url).has_value());
  EXPECT_EQ(InfoOf(small).metadata().at("stored_version"), "5");
  for (int i = 0; i < 5'000; ++i) stored.add_sstables()->set_path("some/path");
  const absl::Status large = VersionConflictError(At(nullptr).key, 9, stored);
  EXPECT_FALSE(large.GetPayload(url).has_value());
  EXPECT_LT(DetailsSize(large), 2'048U);
}

TEST(ErrorsTest, HostileFieldsNeitherGrowNorEscape) {
  std::vector<FieldViolation> violations(100'000,
                                         {std::string(10'000, 'f'), std::string(10'000, 'd')});
  const absl::Status status =
      InvalidRequestError(violations, std::string(1'000'000, '\xff'), "\n\x01");
  EXPECT_LT(DetailsSize(status), 6'000U);
  EXPECT_LT(status.message().size(), 1'000U);
  EXPECT_EQ(InfoOf(status).metadata().at("shard_id"), "\\n\\x01");
}

TEST(ErrorsTest, OverloadSaysWhenToComeBack) {
  const absl::Status status = OverloadedError("too many calls", absl::Milliseconds(1'500));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  google::rpc::RetryInfo retry;
  ASSERT_TRUE(retry.ParseFromString(
      std::string(status.GetPayload("type.googleapis.com/google.rpc.RetryInfo").value())));
  EXPECT_EQ(retry.retry_delay().seconds(), 1);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
}

TEST(ErrorsTest, TheStoresWordsDecideBetweenBrokenAndAway) {
  EXPECT_EQ(ReasonOf(StoreError("t", kId, absl::DataLossError("x"))), "STORE_CORRUPT");
  EXPECT_EQ(ReasonOf(StoreError("t", kId, absl::UnavailableError("x"))), "STORE_UNAVAILABLE");
  EXPECT_EQ(StoreError("t", kId, absl::UnavailableError("x")).code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace claimd::arbiter
