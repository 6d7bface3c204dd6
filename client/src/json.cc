#include "claimd/json.h"

#include <string>

#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include "claimd/types.h"
#include "client/src/convert.h"

namespace claimd {
namespace {

std::string Print(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string json;
  // Cannot fail: messages without Any, and times within the range that JSON knows or else left out.
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return "{}";
  return json;
}

}  // namespace

std::string ToJson(const ShardManifest& manifest) { return Print(internal::ToProto(manifest)); }
std::string ToJson(const ClaimInfo& claim) { return Print(internal::ToProto(claim)); }
std::string ToJson(const ClaimRecord& record) { return Print(internal::ToProto(record)); }
std::string ToJson(const ServerInfo& info) { return Print(internal::ToProto(info)); }

}  // namespace claimd
