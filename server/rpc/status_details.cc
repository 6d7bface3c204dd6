#include "server/rpc/status_details.h"

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include <grpcpp/support/status.h>

#include "google/rpc/status.pb.h"

namespace claimd::rpc {
namespace {

// Base64 makes details a third larger and percent-encoding can triple the message; together they
// stay below 8 KiB.
constexpr size_t kDetailsBytesMax = 3'584;
constexpr size_t kMessageBytesMax = 512;
constexpr absl::string_view kErrorInfoUrl = "type.googleapis.com/google.rpc.ErrorInfo";

// The longest prefix that does not cut a UTF-8 sequence.
absl::string_view Truncated(absl::string_view text) {
  if (text.size() <= kMessageBytesMax) return text;
  size_t length = kMessageBytesMax;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0U) == 0x80) --length;
  return text.substr(0, length);
}

void AddDetail(absl::string_view type_url, const absl::Cord& value, google::rpc::Status* out) {
  auto* detail = out->add_details();
  detail->set_type_url(std::string(type_url));
  detail->set_value(std::string(value));
}

}  // namespace

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status out;
  out.set_code(static_cast<int>(status.code()));
  const absl::string_view message = Truncated(status.message());
  out.set_message(message.data(), message.size());
  size_t bytes = 0;
  if (const auto info = status.GetPayload(kErrorInfoUrl); info.has_value()) {
    AddDetail(kErrorInfoUrl, *info, &out);
    bytes += info->size();
  }
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& value) {
    if (type_url == kErrorInfoUrl || bytes + value.size() > kDetailsBytesMax) return;
    AddDetail(type_url, value, &out);
    bytes += value.size();
  });
  return out;
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const google::rpc::Status details = ToRpcStatus(status);
  return {static_cast<grpc::StatusCode>(status.code()), details.message(),
          details.SerializeAsString()};
}

}  // namespace claimd::rpc
