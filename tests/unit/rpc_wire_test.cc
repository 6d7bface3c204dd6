// What happens to bytes on their way in, and to errors on their way out.
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "server/arbiter/errors.h"
#include "server/rpc/raw_call.h"
#include "server/rpc/status_details.h"
#include "server/rpc/wire_check.h"

namespace claimd::rpc {
namespace {

// A length-delimited field on the wire; short values only.
std::string Field(int number, const std::string& value) {
  return std::string(1, static_cast<char>(number << 3 | 2)) +
         std::string(1, static_cast<char>(value.size())) + value;
}

std::string FieldsOf(const std::vector<arbiter::FieldViolation>& violations) {
  std::string fields;
  for (const auto& violation : violations) fields += violation.field + " ";
  return fields;
}

std::string Explain(const std::string& bytes) {
  return FieldsOf(ExplainParseFailure(*v1::ClaimEpochRequest::descriptor(), bytes));
}

TEST(ExplainParseFailureTest, NamesEachStringThatIsNoUtf8) {
  EXPECT_EQ(Explain(Field(1, "\xff") + Field(4, "fine") + Field(6, "\xc3")), "table request_id ");
}

TEST(ExplainParseFailureTest, LooksIntoMapsMessagesAndLists) {
  EXPECT_EQ(Explain(Field(5, Field(1, "\xff") + Field(2, "\xfe"))), "labels.key labels.value ");
  const auto batch = ExplainParseFailure(*v1::BatchClaimEpochRequest::descriptor(),
                                         Field(1, Field(1, "ok")) + Field(1, Field(1, "\xff")));
  EXPECT_EQ(FieldsOf(batch), "requests[1].table ");
}

TEST(ExplainParseFailureTest, SaysThatBytesAreNoMessage) {
  EXPECT_EQ(Explain("\x0a\x7f"), "(message) ");
  EXPECT_EQ(Explain(std::string(100, '\xff')), "(message) ");
  EXPECT_EQ(Explain(Field(1, "\xff") + "\x0a\x7f"), "table (message) ");
}

TEST(ExplainParseFailureTest, IsBoundedForHostileBytes) {
  std::string many;
  for (int i = 0; i < 10'000; ++i) many += Field(1, "\xff");
  EXPECT_LE(ExplainParseFailure(*v1::ClaimEpochRequest::descriptor(), many).size(), 17U);
}

TEST(ParseRequestTest, DropsFieldsThatThisVersionDoesNotKnow) {
  const std::string bytes = Field(1, "t") + Field(15, "from the future");
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer buffer(&slice, 1);
  v1::ClaimEpochRequest request;
  ASSERT_TRUE(ParseRequest(buffer, &request).ok());
  EXPECT_EQ(request.table(), "t");
  EXPECT_EQ(request.ByteSizeLong(), 3U);
}

TEST(ToRpcStatusTest, PutsErrorInfoFirstAndBoundsTheWhole) {
  absl::Status status = arbiter::OverloadedError("too much", absl::Seconds(1));
  status.SetPayload("type.googleapis.com/a.Large", absl::Cord(std::string(10'000, 'x')));
  const google::rpc::Status wire = ToRpcStatus(status);
  ASSERT_EQ(wire.details_size(), 2) << "the large one is left out";
  EXPECT_EQ(wire.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  EXPECT_EQ(wire.details(1).type_url(), "type.googleapis.com/google.rpc.RetryInfo");
}

TEST(ToRpcStatusTest, CutsLongMessagesBetweenCharacters) {
  std::string text(511, 'a');
  for (int i = 0; i < 100; ++i) text += "\xe2\x82\xac";
  const google::rpc::Status wire = ToRpcStatus(absl::InternalError(text));
  EXPECT_EQ(wire.message(), std::string(511, 'a'));
}

TEST(ToGrpcStatusTest, CarriesCodeMessageAndDetails) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  const grpc::Status status = ToGrpcStatus(arbiter::DrainingError());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.message(), status.error_message());
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "DRAINING");
}

}  // namespace
}  // namespace claimd::rpc
