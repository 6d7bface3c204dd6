#include "server/base/text.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace claimd::base {
namespace {

// One decoded code point; length 0 if the text does not begin with one.
struct CodePoint {
  uint32_t value = 0;
  size_t length = 0;
};

// REQUIRES: text is not empty.
CodePoint Decode(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {.value = first, .length = 1};
  size_t length = 0;
  uint32_t value = 0;
  uint32_t smallest = 0;
  if ((first & 0xe0U) == 0xc0) {
    length = 2;
    value = first & 0x1fU;
    smallest = 0x80;
  } else if ((first & 0xf0U) == 0xe0) {
    length = 3;
    value = first & 0x0fU;
    smallest = 0x800;
  } else if ((first & 0xf8U) == 0xf0) {
    length = 4;
    value = first & 0x07U;
    smallest = 0x10000;
  } else {
    return {};
  }
  if (text.size() < length) return {};
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    value = value << 6U | (byte(i) & 0x3fU);
  }
  const bool surrogate = value >= 0xd800 && value <= 0xdfff;
  if (value < smallest || value > 0x10ffff || surrogate) return {};
  return {.value = value, .length = length};
}

bool IsControl(uint32_t value) { return value < 0x20 || (value >= 0x7f && value <= 0x9f); }

}  // namespace

bool IsPlainText(absl::string_view text) {
  while (!text.empty()) {
    const CodePoint point = Decode(text);
    if (point.length == 0 || IsControl(point.value)) return false;
    text.remove_prefix(point.length);
  }
  return true;
}

bool IsUtf8(absl::string_view text) {
  while (!text.empty()) {
    const CodePoint point = Decode(text);
    if (point.length == 0) return false;
    text.remove_prefix(point.length);
  }
  return true;
}

}  // namespace claimd::base
