#include "server/base/uuid.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/base/random.h"

namespace claimd::base {
namespace {

constexpr size_t kTextLength = 36;
constexpr absl::string_view kHexDigits = "0123456789abcdef";

constexpr bool IsDashPosition(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

// Value of a hexadecimal digit, or 16 for anything else.
constexpr unsigned HexValue(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return 16;
}

absl::Status NotAUuid() {
  return absl::InvalidArgumentError("must be a UUID of 8-4-4-4-12 hexadecimal digits");
}

}  // namespace

absl::StatusOr<Uuid> ParseUuid(absl::string_view text) {
  if (text.size() != kTextLength) return NotAUuid();
  Uuid uuid{};
  size_t digits = 0;
  for (size_t i = 0; i < kTextLength; ++i) {
    if (IsDashPosition(i)) {
      if (text[i] != '-') return NotAUuid();
      continue;
    }
    const unsigned value = HexValue(text[i]);
    if (value > 15) return NotAUuid();
    uint8_t& byte = uuid[digits / 2];
    byte = static_cast<uint8_t>(byte << 4U | value);
    ++digits;
  }
  return uuid;
}

std::string FormatUuid(const Uuid& uuid) {
  std::string text;
  text.reserve(kTextLength);
  for (const uint8_t byte : uuid) {
    if (IsDashPosition(text.size())) text.push_back('-');
    text.push_back(kHexDigits[byte >> 4U]);
    text.push_back(kHexDigits[byte & 15U]);
  }
  return text;
}

std::string UuidBytes(const Uuid& uuid) { return {uuid.begin(), uuid.end()}; }

absl::StatusOr<Uuid> UuidFromBytes(absl::string_view bytes) {
  Uuid uuid{};
  if (bytes.size() != uuid.size()) return absl::InvalidArgumentError("must be 16 bytes");
  std::copy(bytes.begin(), bytes.end(), uuid.begin());
  return uuid;
}

Uuid NewUuid(RandomSource* random) {
  Uuid uuid = random->Bytes16();
  uuid[6] = static_cast<uint8_t>((uuid[6] & 0x0fU) | 0x40U);
  uuid[8] = static_cast<uint8_t>((uuid[8] & 0x3fU) | 0x80U);
  return uuid;
}

}  // namespace claimd::base
