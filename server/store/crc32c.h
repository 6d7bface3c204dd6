#ifndef CLAIMD_SERVER_STORE_CRC32C_H_
#define CLAIMD_SERVER_STORE_CRC32C_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace claimd::store {

// CRC-32C (Castagnoli) of what 'crc' is the checksum of, followed by 'bytes'. Start with 0.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view bytes);

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_CRC32C_H_
