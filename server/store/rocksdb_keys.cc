#include "server/store/rocksdb_keys.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <google/protobuf/message_lite.h>

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/base/uuid.h"
#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"

namespace claimd::store::rocksdb_keys {
namespace {

using storage::v1::ShardRecord;

constexpr char kFormat = 1;
constexpr size_t kNumberSize = 8;
constexpr size_t kIdSize = 16;
constexpr size_t kHeaderSize = 1 + kNumberSize;

void AppendBigEndian64(uint64_t number, std::string* bytes) {
  for (unsigned shift = 64; shift > 0; shift -= 8) {
    bytes->push_back(static_cast<char>(number >> (shift - 8) & 0xffU));
  }
}

template <typename Message>
absl::Status ParseWrapped(absl::string_view envelope, Message* message) {
  const absl::StatusOr<Envelope> unwrapped = Unwrap(envelope);
  if (!unwrapped.ok()) return unwrapped.status();
  if (!message->ParseFromArray(unwrapped->message.data(),
                               static_cast<int>(unwrapped->message.size()))) {
    return absl::DataLossError("a stored message cannot be parsed");
  }
  return absl::OkStatus();
}

}  // namespace

std::string TablePrefix(absl::string_view table) {
  std::string bytes(table);
  bytes.push_back('\0');
  return bytes;
}

std::string TableEnd(absl::string_view table) {
  std::string bytes(table);
  bytes.push_back('\x01');
  return bytes;
}

std::string EncodeShard(const ShardKey& key) {
  std::string bytes;
  bytes.reserve(key.table.size() + 1 + kIdSize);
  bytes.append(key.table);
  bytes.push_back('\0');
  bytes.append(key.shard_id.begin(), key.shard_id.end());
  return bytes;
}

std::string EncodeNumbered(absl::string_view shard, uint64_t number) {
  std::string bytes;
  bytes.reserve(shard.size() + kNumberSize);
  bytes.append(shard.data(), shard.size());
  AppendBigEndian64(number, &bytes);
  return bytes;
}

std::string EncodeRequest(absl::string_view shard, absl::string_view request_id) {
  return absl::StrCat(shard, request_id);
}

std::string EncodeRevision(uint64_t revision) { return EncodeNumbered("", revision); }

absl::StatusOr<ShardKey> DecodeShard(absl::string_view bytes) {
  // A table is never empty.
  if (bytes.size() < kIdSize + 2 || bytes[bytes.size() - kIdSize - 1] != '\0') {
    return absl::DataLossError("a stored key is not that of a shard");
  }
  const size_t table_size = bytes.size() - kIdSize - 1;
  absl::StatusOr<base::Uuid> id = base::UuidFromBytes(bytes.substr(table_size + 1));
  if (!id.ok()) return absl::DataLossError("a stored key is not that of a shard");
  return ShardKey{.table = std::string(bytes.substr(0, table_size)), .shard_id = *id};
}

absl::StatusOr<uint64_t> DecodeNumber(absl::string_view bytes) {
  if (bytes.size() < kNumberSize) return absl::DataLossError("a stored key has no number");
  uint64_t number = 0;
  for (const char byte : bytes.substr(bytes.size() - kNumberSize)) {
    number = number << 8U | static_cast<uint8_t>(byte);
  }
  return number;
}

std::string Wrap(const google::protobuf::MessageLite& message) {
  std::string envelope;
  envelope.reserve(kHeaderSize + message.ByteSizeLong());
  envelope.push_back(kFormat);
  envelope.append(kNumberSize, '\0');
  message.AppendToString(&envelope);
  return envelope;
}

void StampRevision(uint64_t revision, std::string* envelope) {
  for (size_t i = 0; i < kNumberSize; ++i) {
    (*envelope)[1 + i] = static_cast<char>(revision >> (8 * i) & 0xffU);
  }
}

absl::StatusOr<Envelope> Unwrap(absl::string_view bytes) {
  if (bytes.size() < kHeaderSize) return absl::DataLossError("a stored value is cut short");
  if (bytes[0] != kFormat) {
    return absl::DataLossError(
        absl::StrCat("a stored value has the unknown format ", static_cast<uint8_t>(bytes[0])));
  }
  return Envelope{.revision = ReadFixed64(bytes.substr(1)), .message = bytes.substr(kHeaderSize)};
}

absl::StatusOr<ShardRecordPtr> DecodeRecord(const ShardKey& key, absl::string_view envelope) {
  auto record = std::make_shared<ShardRecord>();
  if (absl::Status parsed = ParseWrapped(envelope, record.get()); !parsed.ok()) return parsed;
  const v1::ShardManifest& manifest = record->manifest();
  if (manifest.table() != key.table || manifest.shard_id() != base::FormatUuid(key.shard_id)) {
    return absl::DataLossError(
        absl::StrCat("what is stored for the shard is of shard ", manifest.shard_id()));
  }
  if (manifest.version() == 0) return absl::DataLossError("a stored manifest has version 0");
  return ShardRecordPtr(std::move(record));
}

absl::StatusOr<ShardRecordPtr> DecodeRecordAt(const ShardKey& key, uint64_t version,
                                              absl::string_view envelope) {
  absl::StatusOr<ShardRecordPtr> record = DecodeRecord(key, envelope);
  if (record.ok() && (*record)->manifest().version() != version) {
    return absl::DataLossError(absl::StrCat("what is stored for version ", version, " is version ",
                                            (*record)->manifest().version()));
  }
  return record;
}

absl::StatusOr<v1::ClaimRecord> DecodeClaim(absl::string_view envelope) {
  v1::ClaimRecord claim;
  if (absl::Status parsed = ParseWrapped(envelope, &claim); !parsed.ok()) return parsed;
  if (!claim.has_claim()) return absl::DataLossError("a stored claim record has no claim");
  return claim;
}

absl::StatusOr<storage::v1::AppliedRequest> DecodeApplied(absl::string_view envelope) {
  storage::v1::AppliedRequest applied;
  if (absl::Status parsed = ParseWrapped(envelope, &applied); !parsed.ok()) return parsed;
  if (applied.kind() == storage::v1::MUTATION_KIND_UNSPECIFIED) {
    return absl::DataLossError("a remembered request has no kind");
  }
  return applied;
}

void AppendFixed64(uint64_t number, std::string* bytes) {
  for (unsigned shift = 0; shift < 64; shift += 8) {
    bytes->push_back(static_cast<char>(number >> shift & 0xffU));
  }
}

uint64_t ReadFixed64(absl::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = kNumberSize; i > 0; --i) {
    number = number << 8U | static_cast<uint8_t>(bytes[i - 1]);
  }
  return number;
}

}  // namespace claimd::store::rocksdb_keys
