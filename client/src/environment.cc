#include "client/src/environment.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace claimd::internal {
namespace {

absl::Duration MonotonicNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

double RandomFraction() {
  std::random_device device;
  return std::uniform_real_distribution<double>(0.0, 1.0)(device);
}

std::string NewRequestId() {
  std::random_device device;
  std::array<uint8_t, 16> bytes{};
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint32_t)) {
    const uint32_t word = device();
    for (size_t j = 0; j < sizeof(uint32_t); ++j) {
      bytes[i + j] = static_cast<uint8_t>(word >> (8U * j));
    }
  }
  bytes[6] = static_cast<uint8_t>((bytes[6] & 0x0fU) | 0x40U);  // Version 4, random.
  bytes[8] = static_cast<uint8_t>((bytes[8] & 0x3fU) | 0x80U);  // Variant of RFC 4122.
  const std::string hex = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  return absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                      hex.substr(16, 4), "-", hex.substr(20));
}

}  // namespace

Environment SystemEnvironment() {
  return Environment{.monotonic_now = MonotonicNow,
                     .sleep = nullptr,
                     .random_fraction = RandomFraction,
                     .new_request_id = NewRequestId};
}

}  // namespace claimd::internal
