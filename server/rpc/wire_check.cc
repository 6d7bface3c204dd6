#include "server/rpc/wire_check.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "google/protobuf/descriptor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "server/arbiter/errors.h"
#include "server/base/text.h"

namespace claimd::rpc {
namespace {

using arbiter::FieldViolation;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kDepthMax = 16;
constexpr size_t kViolationsMax = 16;

class Walker {
 public:
  // Errors: InvalidArgument when the bytes are no message.
  absl::Status Walk(const Descriptor& type, absl::string_view bytes, const std::string& path,
                    int depth) {
    CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                           static_cast<int>(bytes.size()));
    std::map<int, int> seen;
    while (const uint32_t tag = input.ReadTag()) {
      const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      const bool delimited =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if (field == nullptr || !delimited) {
        if (!WireFormatLite::SkipField(&input, tag)) return Malformed();
        continue;
      }
      std::string value;
      uint32_t length = 0;
      if (!input.ReadVarint32(&length) || length > bytes.size() ||
          !input.ReadString(&value, static_cast<int>(length))) {
        return Malformed();
      }
      const std::string name = Name(*field, path, seen[field->number()]++);
      if (absl::Status inner = Check(*field, value, name, depth); !inner.ok()) return inner;
    }
    return input.ConsumedEntireMessage() ? absl::OkStatus() : Malformed();
  }

  std::vector<FieldViolation> TakeViolations() { return std::move(violations_); }

 private:
  static absl::Status Malformed() { return absl::InvalidArgumentError("malformed"); }

  static std::string Name(const FieldDescriptor& field, const std::string& path, int index) {
    std::string name = path.empty() ? field.name() : absl::StrCat(path, ".", field.name());
    if (field.is_repeated() && !field.is_map()) absl::StrAppend(&name, "[", index, "]");
    return name;
  }

  absl::Status Check(const FieldDescriptor& field, const std::string& value,
                     const std::string& name, int depth) {
    if (field.type() == FieldDescriptor::TYPE_STRING && !base::IsUtf8(value) &&
        violations_.size() < kViolationsMax) {
      violations_.push_back({name, "must be UTF-8"});
    }
    if (field.type() == FieldDescriptor::TYPE_MESSAGE && depth < kDepthMax) {
      return Walk(*field.message_type(), value, name, depth + 1);
    }
    return absl::OkStatus();
  }

  std::vector<FieldViolation> violations_;
};

}  // namespace

std::vector<FieldViolation> ExplainParseFailure(const Descriptor& type, absl::string_view bytes) {
  Walker walker;
  const bool readable = walker.Walk(type, bytes, "", 0).ok();
  std::vector<FieldViolation> violations = walker.TakeViolations();
  if (!readable || violations.empty()) {
    violations.push_back(
        {"(message)", absl::StrCat("is not a ", type.name(), " in protobuf form")});
  }
  return violations;
}

}  // namespace claimd::rpc
