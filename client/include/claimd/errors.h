#ifndef CLAIMD_ERRORS_H_
#define CLAIMD_ERRORS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

#include "claimd/types.h"

namespace claimd {

// Why a call was refused.
enum class ErrorReason {
  // The status carries no details of claimd: it is OK, or comes from the transport.
  kNone,
  // A reason that a newer server gives and this library does not know; see reason_text.
  kUnknown,

  // Not acceptable as asked; asking again changes nothing.
  kInvalidRequest,
  kInvalidManifest,
  kInvalidPageToken,
  kShardSpecMismatch,
  kShardSpecFingerprintMismatch,
  kShardIdentityConflict,
  kShardExists,
  kRequestIdReused,
  kEpochFloorTooHigh,
  kEpochFromFuture,
  kUnknownShardingSpec,
  kTableExists,

  // The state of the shard or table stands in the way.
  kShardSealed,
  kShardNotSealed,
  kShardHeld,
  kTableSealed,
  kSpecRetired,
  kSpecNotActive,
  kEpochExhausted,
  kVersionExhausted,

  // Somebody else owns the shard now: stop writing.
  kWriterFenced,
  kClaimSuperseded,

  // Lost against somebody else; nothing was written.
  kClaimLostRace,
  kEpochMismatch,
  kManifestVersionConflict,
  kManifestContention,

  // Not there.
  kShardNotFound,
  kTableNotFound,
  kVersionNotFound,

  // Try later.
  kOverloaded,
  kClaimTooSoon,
  kStoreUnavailable,
  kOutcomeUnknown,
  kDraining,

  // Needs a person.
  kStoreCorrupt,
  kPermissionDenied,
  kUnauthenticated,

  // Made by this library: the claim was given back by Release, so its epoch is no longer used.
  kClaimReleased,
};

// The reason's constant name, such as "WRITER_FENCED"; "" for kNone and "UNKNOWN" for kUnknown.
std::string ToString(ErrorReason reason);

// One malformed field of a request.
struct FieldViolation {
  // Path of the field, such as "manifest.sstables[3].generation".
  std::string field;
  std::string description;
};

// The facts that a failed call carries, for programs. Values that the server did not give are
// absent or empty. Decide by 'reason', never by the text of the message.
//
//   absl::StatusOr<claimd::ShardClaim> claim = client.Claim(table, shard_id, spec_id);
//   if (!claim.ok()) {
//     const auto details = claimd::ErrorDetails::From(claim.status());
//     if (details.reason == claimd::ErrorReason::kShardSpecMismatch) {
//       Report(*details.incoming_shard_spec_id, *details.stored_shard_spec_id);
//     }
//   }
struct ErrorDetails {
  ErrorReason reason = ErrorReason::kNone;
  // The reason as the server wrote it, also when this library does not know it.
  std::string reason_text;
  std::string table;
  std::string shard_id;
  std::optional<uint32_t> incoming_shard_spec_id;
  std::optional<uint32_t> stored_shard_spec_id;
  // The epoch that the refused call named.
  std::optional<uint64_t> writer_epoch;
  std::optional<uint64_t> stored_writer_epoch;
  std::optional<uint64_t> stored_version;
  // Who holds the shard, or won the race.
  std::string claimant;
  // "SHARD_STATUS_SEALED", …: the state that stood in the way.
  std::string state;
  // The server asks to wait at least this long.
  std::optional<absl::Duration> retry_delay;
  // All malformed fields.
  std::vector<FieldViolation> field_violations;
  // The stored manifest, when the server attached it.
  std::optional<ShardManifest> stored_manifest;
  // Everything that the server said, by name.
  std::map<std::string, std::string> metadata;

  // Id of the mutation that failed, for a mutation of this library. Repeating a claim with it
  // settles whether the failed one landed.
  std::string request_id;
  // How often the call was sent. 0: never, such as for a fence that was known already.
  int attempts = 0;
  // True when an answer was lost, so that the mutation may be in force although the call failed.
  bool may_have_landed = false;

  static ErrorDetails From(const absl::Status& status);
};

}  // namespace claimd

#endif  // CLAIMD_ERRORS_H_
