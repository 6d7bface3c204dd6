#include "tests/e2e/harness/refusal.h"

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <google/protobuf/any.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace claimd::e2e {
namespace {

// Half of what gRPC takes in trailers by default.
constexpr size_t kTrailerBytesMax = 4096;
// The server may cut a message that is longer.
constexpr size_t kLongMessageBytes = 500;

template <typename Detail>
Detail FirstOf(const grpc::Status& status) {
  Detail detail;
  const google::rpc::Status details = DetailsOf(status);
  for (const google::protobuf::Any& any : details.details()) {
    if (any.Is<Detail>() && any.UnpackTo(&detail)) break;
  }
  return detail;
}

}  // namespace

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) details.Clear();
  return details;
}

google::rpc::ErrorInfo ErrorInfoOf(const grpc::Status& status) {
  return FirstOf<google::rpc::ErrorInfo>(status);
}
google::rpc::BadRequest BadRequestOf(const grpc::Status& status) {
  return FirstOf<google::rpc::BadRequest>(status);
}

std::string Reason(const grpc::Status& status) { return ErrorInfoOf(status).reason(); }

std::map<std::string, std::string> Metadata(const grpc::Status& status) {
  const google::rpc::ErrorInfo info = ErrorInfoOf(status);
  return {info.metadata().begin(), info.metadata().end()};
}

std::vector<std::string> BadFields(const grpc::Status& status) {
  std::vector<std::string> fields;
  const google::rpc::BadRequest bad = BadRequestOf(status);
  for (const auto& violation : bad.field_violations()) fields.push_back(violation.field());
  return fields;
}

grpc::Status AsGrpcStatus(const google::rpc::Status& status) {
  return {static_cast<grpc::StatusCode>(status.code()), status.message(),
          status.SerializeAsString()};
}

std::string Describe(const grpc::Status& status) {
  return absl::StrCat("code ", static_cast<int>(status.error_code()), " \"", status.error_message(),
                      "\" details {", DetailsOf(status).ShortDebugString(), "}");
}

::testing::AssertionResult Refused(const grpc::Status& status, grpc::StatusCode code,
                                   const std::string& reason) {
  auto wrong = ::testing::AssertionFailure();
  const google::rpc::ErrorInfo info = ErrorInfoOf(status);
  const google::rpc::Status details = DetailsOf(status);
  if (status.error_code() != code || info.reason() != reason) {
    return wrong << "expected code " << code << " with reason " << reason << ", got "
                 << Describe(status);
  }
  if (info.domain() != "claimd") return wrong << "domain is not claimd: " << Describe(status);
  if (details.code() != code || details.message() != status.error_message()) {
    return wrong << "details contradict the status: " << Describe(status);
  }
  const std::string& message = status.error_message();
  const bool was_cut = message.size() > kLongMessageBytes;
  if (!absl::StrContains(message, ' ') || !(was_cut || absl::EndsWith(message, "."))) {
    return wrong << "the message is no sentence: " << Describe(status);
  }
  if (status.error_details().size() > kTrailerBytesMax) {
    return wrong << "details of " << status.error_details().size() << " bytes are too large";
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult Refused(const grpc::Status& status, grpc::StatusCode code,
                                   const std::string& reason, const Shard& shard) {
  ::testing::AssertionResult refused = Refused(status, code, reason);
  if (!refused) return refused;
  std::map<std::string, std::string> metadata = Metadata(status);
  if (metadata["table"] != shard.table || metadata["shard_id"] != shard.id) {
    return ::testing::AssertionFailure() << "does not name the shard: " << Describe(status);
  }
  return ::testing::AssertionSuccess();
}

::testing::AssertionResult IsOk(const grpc::Status& status) {
  if (status.ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << Describe(status);
}

}  // namespace claimd::e2e
