#ifndef CLAIMD_SERVER_ARBITER_ERRORS_H_
#define CLAIMD_SERVER_ARBITER_ERRORS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "claimd/v1/manifest.pb.h"

#include "server/store/shard_key.h"

// Every refusal of the server, built here only (DESIGN §3, Errors).
//
// A refusal is an absl::Status whose message is one sentence that a person can act on, with
// payloads keyed by type URL ("type.googleapis.com/google.rpc.ErrorInfo", …) that rpc/ puts on the
// wire as google.rpc.Status. All of them together stay small enough for gRPC's trailers.
namespace claimd::arbiter {

// Reason of a status built here, or "" for any other status.
std::string ReasonOf(const absl::Status& status);

// One malformed field.
struct FieldViolation {
  std::string field;
  std::string description;
};

// INVALID_ARGUMENT / INVALID_REQUEST with all malformed fields. At most a bounded number of them is
// named. 'table' and 'shard_id' are as the caller gave them and may be malformed themselves.
absl::Status InvalidRequestError(const std::vector<FieldViolation>& violations,
                                 absl::string_view table, absl::string_view shard_id);
// INVALID_ARGUMENT / INVALID_MANIFEST.
absl::Status InvalidManifestError(const store::ShardKey& key,
                                  const std::vector<FieldViolation>& violations);
// The same, for a manifest whose key is itself in question.
absl::Status InvalidManifestError(absl::string_view table, absl::string_view shard_id,
                                  const std::vector<FieldViolation>& violations);

absl::Status ShardSpecMismatchError(const store::ShardKey& key, uint32_t incoming, uint32_t stored);
absl::Status FingerprintMismatchError(const store::ShardKey& key, uint32_t shard_spec_id,
                                      absl::string_view incoming, absl::string_view stored);
absl::Status ShardSealedError(const store::ShardKey& key);
absl::Status ShardNotSealedError(const store::ShardKey& key, v1::ShardStatus status);
absl::Status ShardHeldError(const store::ShardKey& key, const v1::Claim& claim);
absl::Status WriterFencedError(const store::ShardKey& key, uint64_t writer_epoch,
                               const v1::ShardManifest& stored);
absl::Status EpochFromFutureError(const store::ShardKey& key, uint64_t writer_epoch,
                                  uint64_t stored_epoch);
absl::Status ClaimLostRaceError(const store::ShardKey& key, const v1::ShardManifest& winner);
absl::Status ClaimSupersededError(const store::ShardKey& key, uint64_t writer_epoch,
                                  const v1::ShardManifest& stored);
absl::Status VersionConflictError(const store::ShardKey& key, uint64_t incoming_version,
                                  const v1::ShardManifest& stored);
absl::Status ContentionError(const store::ShardKey& key, const v1::ShardManifest* stored,
                             int attempts);
absl::Status EpochMismatchError(const store::ShardKey& key, uint64_t expected, uint64_t stored,
                                uint64_t stored_version);
absl::Status EpochFloorTooHighError(const store::ShardKey& key, uint64_t floor, uint64_t stored,
                                    uint64_t jump_max);
absl::Status EpochExhaustedError(const store::ShardKey& key);
absl::Status VersionExhaustedError(const store::ShardKey& key);
absl::Status IdentityConflictError(const store::ShardKey& key, absl::string_view what);
absl::Status ShardExistsError(const store::ShardKey& key, const v1::ShardManifest& stored);
absl::Status ShardNotFoundError(const store::ShardKey& key);
// NOT_FOUND / SHARD_NOT_FOUND for a tombstone, which is said in the message and as state=DROPPED.
absl::Status ShardDroppedError(const store::ShardKey& key, const v1::ShardManifest& tombstone);
absl::Status VersionNotFoundError(const store::ShardKey& key, uint64_t version,
                                  uint64_t stored_version);
// INVALID_ARGUMENT / REQUEST_ID_REUSED: the id belongs to another call.
absl::Status RequestIdReusedError(const store::ShardKey& key, absl::string_view request_id);
absl::Status InvalidPageTokenError(absl::string_view table, absl::string_view shard_id);

// UNAVAILABLE / STORE_UNAVAILABLE or DATA_LOSS / STORE_CORRUPT, from what the store said.
// REQUIRES: cause is not OK.
absl::Status StoreError(absl::string_view table, absl::string_view shard_id,
                        const absl::Status& cause);
// DATA_LOSS / STORE_CORRUPT: what was read breaks a rule.
absl::Status StoreCorruptError(const store::ShardKey& key, absl::string_view what);
absl::Status OutcomeUnknownError(const store::ShardKey& key, absl::string_view request_id,
                                 const absl::Status& cause);

// RESOURCE_EXHAUSTED / OVERLOADED with RetryInfo.
absl::Status OverloadedError(absl::string_view what, absl::Duration retry_after);
// UNAVAILABLE / DRAINING.
absl::Status DrainingError();

}  // namespace claimd::arbiter

#endif  // CLAIMD_SERVER_ARBITER_ERRORS_H_
