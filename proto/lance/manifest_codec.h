#ifndef CLAIMD_PROTO_LANCE_MANIFEST_CODEC_H_
#define CLAIMD_PROTO_LANCE_MANIFEST_CODEC_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "claimd/v1/manifest.pb.h"

// Between the bytes of a Lance MemWAL shard manifest (mem_wal.proto) and claimd's ShardManifest.
// Pure functions, safe on any thread.
//
// Errors are InvalidArgument with all problems in the message, and as payloads google.rpc.ErrorInfo
// (reason INVALID_MANIFEST, domain "claimd", metadata table and shard_id) and google.rpc.BadRequest
// (one violation for each problem, named by claimd's field).
namespace claimd::lance {

// Where a manifest was found, which is more than its bytes say: Lance's shard ids recur in every
// table.
struct ManifestPlace {
  std::string table;
  // What the path says; when given, the manifest must say the same. The id is taken in either case.
  std::optional<std::string> shard_id;
  std::optional<uint64_t> version;
};

// The annotation that keeps the order of shard_field_entries, which Lance writes in no order and
// claimd's map forgets: the positions of the entries among the sorted field ids, such as "2,0,1".
// Absent when they are sorted.
extern const char kFieldOrderAnnotation[];

// Decodes one manifest. Encoding the result gives the same bytes again, or it is refused: nothing
// is lost silently.
//
// Errors: bytes that are no manifest, a missing shard id, a shard id or version of another place,
// status other than ACTIVE and SEALED, version or generation 0, version or epoch 2^64-1, sstables
// whose generations are 0, repeated or not below current_generation, a field id that comes twice,
// fields that this version does not know, and bytes in another form than Lance writes.
absl::StatusOr<v1::ShardManifest> DecodeManifest(absl::string_view bytes,
                                                 const ManifestPlace& place);

// Encodes a manifest as Lance would. Table, claim, times, fingerprint and annotations have no place
// in Lance's format and are left out. Field values are written in the order of
// kFieldOrderAnnotation, or sorted.
//
// Errors: a manifest that DecodeManifest would refuse, and status DROPPED.
absl::StatusOr<std::string> EncodeManifest(const v1::ShardManifest& manifest);

// Name of a version's file: its 64 bits, lowest first, and ".binpb".
std::string ManifestFileName(uint64_t version);

// The version that a file name stands for; absent if it is no name of that form.
std::optional<uint64_t> VersionOfFileName(absl::string_view name);

}  // namespace claimd::lance

#endif  // CLAIMD_PROTO_LANCE_MANIFEST_CODEC_H_
