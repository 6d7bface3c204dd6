#include "server/store/crc32c.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace claimd::store {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli, bits reversed.
constexpr size_t kSlices = 8;

using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

// tables[k][b]: what byte b contributes when k bytes follow it.
constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < kSlices; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = crc >> 8U ^ tables[0][crc & 0xffU];
    }
  }
  return tables;
}

constexpr Tables kTables = MakeTables();

uint32_t Byte(absl::string_view bytes, size_t i) { return static_cast<uint8_t>(bytes[i]); }

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes) {
  crc = ~crc;
  while (bytes.size() >= kSlices) {
    crc = kTables[7][(crc ^ Byte(bytes, 0)) & 0xffU] ^
          kTables[6][(crc >> 8U ^ Byte(bytes, 1)) & 0xffU] ^
          kTables[5][(crc >> 16U ^ Byte(bytes, 2)) & 0xffU] ^
          kTables[4][(crc >> 24U ^ Byte(bytes, 3)) & 0xffU] ^ kTables[3][Byte(bytes, 4)] ^
          kTables[2][Byte(bytes, 5)] ^ kTables[1][Byte(bytes, 6)] ^ kTables[0][Byte(bytes, 7)];
    bytes.remove_prefix(kSlices);
  }
  for (const char byte : bytes) {
    crc = crc >> 8U ^ kTables[0][(crc ^ static_cast<uint8_t>(byte)) & 0xffU];
  }
  return ~crc;
}

}  // namespace claimd::store
