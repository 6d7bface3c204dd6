#include "claimd/errors.h"

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"
#include "google/rpc/error_details.pb.h"

#include "tests/client/scripted_server.h"

namespace claimd {
namespace {

using ::claimd::testing::Attach;
using ::claimd::testing::AttachRetryDelay;
using ::claimd::testing::Refusal;
using ::testing::ElementsAre;
using ::testing::Field;

TEST(ErrorDetailsTest, OkAndForeignStatusesHaveNoReason) {
  EXPECT_EQ(ErrorDetails::From(absl::OkStatus()).reason, ErrorReason::kNone);
  EXPECT_EQ(ErrorDetails::From(absl::UnavailableError("reset")).reason, ErrorReason::kNone);
}

TEST(ErrorDetailsTest, DetailsOfAnotherServiceAreNotTakenForOurs) {
  google::rpc::ErrorInfo info;
  info.set_reason("WRITER_FENCED");
  info.set_domain("proxy.example");
  absl::Status status = absl::FailedPreconditionError("x");
  Attach("google.rpc.ErrorInfo", info, &status);
  EXPECT_EQ(ErrorDetails::From(status).reason, ErrorReason::kNone);
}

TEST(ErrorDetailsTest, EveryReasonIsFoundByItsName) {
  std::set<std::string> names;
  for (int i = static_cast<int>(ErrorReason::kUnknown) + 1;
       i <= static_cast<int>(ErrorReason::kClaimReleased); ++i) {
    const auto reason = static_cast<ErrorReason>(i);
    const std::string name = ToString(reason);
    EXPECT_NE(name, "UNKNOWN") << "reason number " << i << " has no name";
    names.insert(name);
    const auto details = ErrorDetails::From(Refusal(absl::StatusCode::kAborted, name));
    EXPECT_EQ(details.reason, reason) << name;
    EXPECT_EQ(details.reason_text, name);
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(ErrorReason::kClaimReleased) -
                              static_cast<size_t>(ErrorReason::kUnknown));
}

TEST(ErrorDetailsTest, AReasonOfANewerServerComesThroughWithItsText) {
  const auto details = ErrorDetails::From(
      Refusal(absl::StatusCode::kAborted, "MOON_IN_THE_WAY", {{"phase", "full"}}));
  EXPECT_EQ(details.reason, ErrorReason::kUnknown);
  EXPECT_EQ(details.reason_text, "MOON_IN_THE_WAY");
  EXPECT_EQ(details.metadata.at("phase"), "full");
}

TEST(ErrorDetailsTest, IdsEpochsAndClaimantAreTyped) {
  const auto details =
      ErrorDetails::From(Refusal(absl::StatusCode::kFailedPrecondition, "WRITER_FENCED",
                                 {{"table", "orders"},
                                  {"shard_id", "some-id"},
                                  {"writer_epoch", "3"},
                                  {"stored_writer_epoch", "18446744073709551615"},
                                  {"stored_version", "9"},
                                  {"claimant", "b"},
                                  {"incoming_shard_spec_id", "0"},
                                  {"stored_shard_spec_id", "4294967295"},
                                  {"state", "SHARD_STATUS_SEALED"}}));
  EXPECT_EQ(details.table, "orders");
  EXPECT_EQ(details.shard_id, "some-id");
  EXPECT_EQ(details.writer_epoch, 3U);
  EXPECT_EQ(details.stored_writer_epoch, UINT64_MAX);
  EXPECT_EQ(details.stored_version, 9U);
  EXPECT_EQ(details.claimant, "b");
  EXPECT_EQ(details.incoming_shard_spec_id, 0U);
  EXPECT_EQ(details.stored_shard_spec_id, UINT32_MAX);
  EXPECT_EQ(details.state, "SHARD_STATUS_SEALED");
}

TEST(ErrorDetailsTest, NumbersThatAreAbsentOrMalformedStayAbsent) {
  const auto details = ErrorDetails::From(
      Refusal(absl::StatusCode::kAborted, "EPOCH_MISMATCH", {{"stored_version", "-1"}}));
  EXPECT_EQ(details.stored_version, std::nullopt);
  EXPECT_EQ(details.writer_epoch, std::nullopt);
}

TEST(ErrorDetailsTest, ViolationsDelayAndManifestAreRead) {
  absl::Status status = Refusal(absl::StatusCode::kInvalidArgument, "INVALID_REQUEST");
  google::rpc::BadRequest bad;
  bad.add_field_violations()->set_field("table");
  bad.add_field_violations()->set_field("shard_id");
  Attach("google.rpc.BadRequest", bad, &status);
  AttachRetryDelay(absl::Seconds(3), &status);
  v1::ShardManifest manifest;
  manifest.set_version(12);
  Attach("claimd.v1.ShardManifest", manifest, &status);
  const auto details = ErrorDetails::From(status);
  EXPECT_THAT(details.field_violations, ElementsAre(Field(&FieldViolation::field, "table"),
                                                    Field(&FieldViolation::field, "shard_id")));
  EXPECT_EQ(details.retry_delay, absl::Seconds(3));
  ASSERT_TRUE(details.stored_manifest.has_value());
  EXPECT_EQ(details.stored_manifest->version, 12U);
}

}  // namespace
}  // namespace claimd
