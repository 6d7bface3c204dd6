#ifndef CLAIMD_SERVER_BASE_UUID_H_
#define CLAIMD_SERVER_BASE_UUID_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace claimd::base {

class RandomSource;

// A UUID of any version: 16 bytes, most significant first. Ordered as its text is.
using Uuid = std::array<uint8_t, 16>;

// Parses 8-4-4-4-12 hexadecimal digits in either case; nothing else is taken.
// Errors: InvalidArgument, with a description that fits behind a field's name.
absl::StatusOr<Uuid> ParseUuid(absl::string_view text);

// 8-4-4-4-12 hexadecimal digits in lower case.
std::string FormatUuid(const Uuid& uuid);

// The 16 bytes as a string, for keys and protos.
std::string UuidBytes(const Uuid& uuid);

// The reverse of UuidBytes. Errors: InvalidArgument if there are not exactly 16 bytes.
absl::StatusOr<Uuid> UuidFromBytes(absl::string_view bytes);

// A random UUID (version 4).
Uuid NewUuid(RandomSource* random);

}  // namespace claimd::base

#endif  // CLAIMD_SERVER_BASE_UUID_H_
