#include "client/src/status.h"

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include <google/protobuf/message_lite.h>
#include <grpcpp/support/status.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "claimd/errors.h"
#include "client/src/convert.h"

namespace claimd::internal {
namespace {

constexpr absl::string_view kErrorInfoUrl = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr absl::string_view kRetryInfoUrl = "type.googleapis.com/google.rpc.RetryInfo";
// Never on the wire: an ErrorInfo whose metadata are CallFacts.
constexpr absl::string_view kCallFactsUrl = "claimd.client.CallFacts";

// The payload of this type, if the status has one that can be read.
template <typename Message>
std::optional<Message> PayloadOf(const absl::Status& status, absl::string_view url) {
  const auto payload = status.GetPayload(url);
  Message message;
  if (!payload.has_value() || !message.ParseFromString(std::string(*payload))) return std::nullopt;
  return message;
}

void SetPayload(absl::string_view url, const google::protobuf::MessageLite& message,
                absl::Status* status) {
  status->SetPayload(url, absl::Cord(message.SerializeAsString()));
}

void CopyDetails(const google::rpc::Status& proto, absl::Status* status) {
  for (const auto& detail : proto.details()) {
    status->SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
}

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status proto;
  if (proto.ParseFromString(status.error_details())) CopyDetails(proto, &result);
  return result;
}

absl::Status FromProto(const google::rpc::Status& proto) {
  if (proto.code() == 0) return absl::OkStatus();
  absl::Status result(static_cast<absl::StatusCode>(proto.code()), proto.message());
  CopyDetails(proto, &result);
  return result;
}

ErrorReason ReasonOf(const absl::Status& status) { return ErrorDetails::From(status).reason; }

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  const auto retry = PayloadOf<google::rpc::RetryInfo>(status, kRetryInfoUrl);
  if (!retry.has_value()) return std::nullopt;
  return FromProto(retry->retry_delay());
}

void SetCallFacts(const CallFacts& facts, absl::Status* status) {
  google::rpc::ErrorInfo info;
  auto& metadata = *info.mutable_metadata();
  metadata["request_id"] = facts.request_id;
  metadata["attempts"] = absl::StrCat(facts.attempts);
  metadata["may_have_landed"] = facts.may_have_landed ? "true" : "false";
  SetPayload(kCallFactsUrl, info, status);
}

CallFacts CallFactsOf(const absl::Status& status) {
  CallFacts facts;
  const auto info = PayloadOf<google::rpc::ErrorInfo>(status, kCallFactsUrl);
  if (!info.has_value()) return facts;
  const auto value = [&info](const char* name) {
    const auto found = info->metadata().find(name);
    return found == info->metadata().end() ? std::string() : found->second;
  };
  facts.request_id = value("request_id");
  if (!absl::SimpleAtoi(value("attempts"), &facts.attempts)) facts.attempts = 0;
  facts.may_have_landed = value("may_have_landed") == "true";
  return facts;
}

absl::Status WithMessage(const absl::Status& status, absl::string_view message) {
  absl::Status result(status.code(), message);
  status.ForEachPayload([&result](absl::string_view url, const absl::Cord& payload) {
    result.SetPayload(url, payload);
  });
  return result;
}

absl::Status LocalError(absl::StatusCode code, ErrorReason reason, absl::string_view message,
                        absl::string_view table, absl::string_view shard_id) {
  google::rpc::ErrorInfo info;
  info.set_reason(ToString(reason));
  info.set_domain("claimd");
  (*info.mutable_metadata())["table"] = std::string(table);
  (*info.mutable_metadata())["shard_id"] = std::string(shard_id);
  absl::Status status(code, message);
  SetPayload(kErrorInfoUrl, info, &status);
  return status;
}

}  // namespace claimd::internal
