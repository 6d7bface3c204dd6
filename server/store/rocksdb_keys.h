#ifndef CLAIMD_SERVER_STORE_ROCKSDB_KEYS_H_
#define CLAIMD_SERVER_STORE_ROCKSDB_KEYS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"

// How keys and values look in RocksDB, as pure functions. What is written here is on people's
// disks: a change needs a new format byte or a new store format.
//
//   heads     shard                    -> envelope(ShardRecord)
//   history   shard, version           -> envelope(ShardRecord)
//   claims    shard, sequence          -> envelope(ClaimRecord)
//   requests  shard, request id        -> envelope(AppliedRequest)
//   changes   revision                 -> shard
//   shard     = table, 0x00, 16 bytes of the shard id; numbers in keys are 8 bytes, big-endian
//   envelope  = format byte 1, 8 bytes little-endian revision of the change, the message
//
// Errors of all decoders: DataLoss, saying what is wrong but not where.
namespace claimd::store::rocksdb_keys {

// Keys that start like this are those of the shards of one table.
std::string TablePrefix(absl::string_view table);
// The first key behind those of a table.
std::string TableEnd(absl::string_view table);
std::string EncodeShard(const ShardKey& key);
// 'shard' is an encoded shard, here and below.
std::string EncodeNumbered(absl::string_view shard, uint64_t number);
std::string EncodeRequest(absl::string_view shard, absl::string_view request_id);
std::string EncodeRevision(uint64_t revision);

absl::StatusOr<ShardKey> DecodeShard(absl::string_view bytes);
// The number at the end of a key of EncodeNumbered or EncodeRevision.
absl::StatusOr<uint64_t> DecodeNumber(absl::string_view bytes);

// An envelope around 'message', with revision 0.
std::string Wrap(const google::protobuf::MessageLite& message);
// Sets the revision of an envelope made by Wrap.
void StampRevision(uint64_t revision, std::string* envelope);

struct Envelope {
  uint64_t revision = 0;
  absl::string_view message;
};
// The message points into 'bytes'.
absl::StatusOr<Envelope> Unwrap(absl::string_view bytes);

// Decodes a head, which must be the one of 'key'.
absl::StatusOr<ShardRecordPtr> DecodeRecord(const ShardKey& key, absl::string_view envelope);
// Decodes a kept version, which must be 'version' of 'key'.
absl::StatusOr<ShardRecordPtr> DecodeRecordAt(const ShardKey& key, uint64_t version,
                                              absl::string_view envelope);
absl::StatusOr<v1::ClaimRecord> DecodeClaim(absl::string_view envelope);
absl::StatusOr<storage::v1::AppliedRequest> DecodeApplied(absl::string_view envelope);

// Numbers in the meta family: 8 bytes, little-endian, one behind the other.
void AppendFixed64(uint64_t number, std::string* bytes);
uint64_t ReadFixed64(absl::string_view bytes);

}  // namespace claimd::store::rocksdb_keys

#endif  // CLAIMD_SERVER_STORE_ROCKSDB_KEYS_H_
