#include "claimd/errors.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

#include "claimd/v1/manifest.pb.h"
#include "google/rpc/error_details.pb.h"

#include "client/src/convert.h"
#include "client/src/status.h"

namespace claimd {
namespace {

struct ReasonName {
  ErrorReason reason;
  absl::string_view name;
};

constexpr std::array<ReasonName, 37> kReasonNames = {{
    {ErrorReason::kInvalidRequest, "INVALID_REQUEST"},
    {ErrorReason::kInvalidManifest, "INVALID_MANIFEST"},
    {ErrorReason::kInvalidPageToken, "INVALID_PAGE_TOKEN"},
    {ErrorReason::kShardSpecMismatch, "SHARD_SPEC_MISMATCH"},
    {ErrorReason::kShardSpecFingerprintMismatch, "SHARD_SPEC_FINGERPRINT_MISMATCH"},
    {ErrorReason::kShardIdentityConflict, "SHARD_IDENTITY_CONFLICT"},
    {ErrorReason::kShardExists, "SHARD_EXISTS"},
    {ErrorReason::kRequestIdReused, "REQUEST_ID_REUSED"},
    {ErrorReason::kEpochFloorTooHigh, "EPOCH_FLOOR_TOO_HIGH"},
    {ErrorReason::kEpochFromFuture, "EPOCH_FROM_FUTURE"},
    {ErrorReason::kUnknownShardingSpec, "UNKNOWN_SHARDING_SPEC"},
    {ErrorReason::kTableExists, "TABLE_EXISTS"},
    {ErrorReason::kShardSealed, "SHARD_SEALED"},
    {ErrorReason::kShardNotSealed, "SHARD_NOT_SEALED"},
    {ErrorReason::kShardHeld, "SHARD_HELD"},
    {ErrorReason::kTableSealed, "TABLE_SEALED"},
    {ErrorReason::kSpecRetired, "SPEC_RETIRED"},
    {ErrorReason::kSpecNotActive, "SPEC_NOT_ACTIVE"},
    {ErrorReason::kEpochExhausted, "EPOCH_EXHAUSTED"},
    {ErrorReason::kVersionExhausted, "VERSION_EXHAUSTED"},
    {ErrorReason::kWriterFenced, "WRITER_FENCED"},
    {ErrorReason::kClaimSuperseded, "CLAIM_SUPERSEDED"},
    {ErrorReason::kClaimLostRace, "CLAIM_LOST_RACE"},
    {ErrorReason::kEpochMismatch, "EPOCH_MISMATCH"},
    {ErrorReason::kManifestVersionConflict, "MANIFEST_VERSION_CONFLICT"},
    {ErrorReason::kManifestContention, "MANIFEST_CONTENTION"},
    {ErrorReason::kShardNotFound, "SHARD_NOT_FOUND"},
    {ErrorReason::kTableNotFound, "TABLE_NOT_FOUND"},
    {ErrorReason::kVersionNotFound, "VERSION_NOT_FOUND"},
    {ErrorReason::kOverloaded, "OVERLOADED"},
    {ErrorReason::kClaimTooSoon, "CLAIM_TOO_SOON"},
    {ErrorReason::kStoreUnavailable, "STORE_UNAVAILABLE"},
    {ErrorReason::kOutcomeUnknown, "OUTCOME_UNKNOWN"},
    {ErrorReason::kDraining, "DRAINING"},
    {ErrorReason::kStoreCorrupt, "STORE_CORRUPT"},
    {ErrorReason::kPermissionDenied, "PERMISSION_DENIED"},
    {ErrorReason::kUnauthenticated, "UNAUTHENTICATED"},
}};
constexpr absl::string_view kClaimReleased = "CLAIM_RELEASED";

ErrorReason ReasonFromName(absl::string_view name) {
  for (const ReasonName& entry : kReasonNames) {
    if (entry.name == name) return entry.reason;
  }
  return name == kClaimReleased ? ErrorReason::kClaimReleased : ErrorReason::kUnknown;
}

template <typename Message>
bool ReadPayload(const absl::Status& status, Message* message) {
  const auto payload =
      status.GetPayload("type.googleapis.com/" + Message::descriptor()->full_name());
  return payload.has_value() && message->ParseFromString(std::string(*payload));
}

template <typename Integer>
std::optional<Integer> Number(const std::map<std::string, std::string>& metadata,
                              const char* name) {
  const auto found = metadata.find(name);
  Integer value = 0;
  if (found == metadata.end() || !absl::SimpleAtoi(found->second, &value)) return std::nullopt;
  return value;
}

std::string Text(const std::map<std::string, std::string>& metadata, const char* name) {
  const auto found = metadata.find(name);
  return found == metadata.end() ? std::string() : found->second;
}

void ReadErrorInfo(const google::rpc::ErrorInfo& info, ErrorDetails* details) {
  details->reason = ReasonFromName(info.reason());
  details->reason_text = info.reason();
  details->metadata = {info.metadata().begin(), info.metadata().end()};
  const auto& metadata = details->metadata;
  details->table = Text(metadata, "table");
  details->shard_id = Text(metadata, "shard_id");
  details->incoming_shard_spec_id = Number<uint32_t>(metadata, "incoming_shard_spec_id");
  details->stored_shard_spec_id = Number<uint32_t>(metadata, "stored_shard_spec_id");
  details->writer_epoch = Number<uint64_t>(metadata, "writer_epoch");
  details->stored_writer_epoch = Number<uint64_t>(metadata, "stored_writer_epoch");
  details->stored_version = Number<uint64_t>(metadata, "stored_version");
  details->claimant = Text(metadata, "claimant");
  details->state = Text(metadata, "state");
}

}  // namespace

std::string ToString(ErrorReason reason) {
  if (reason == ErrorReason::kNone) return "";
  if (reason == ErrorReason::kClaimReleased) return std::string(kClaimReleased);
  for (const ReasonName& entry : kReasonNames) {
    if (entry.reason == reason) return std::string(entry.name);
  }
  return "UNKNOWN";
}

ErrorDetails ErrorDetails::From(const absl::Status& status) {
  ErrorDetails details;
  google::rpc::ErrorInfo info;
  if (ReadPayload(status, &info) && info.domain() == "claimd") ReadErrorInfo(info, &details);
  details.retry_delay = internal::RetryDelayOf(status);
  google::rpc::BadRequest bad_request;
  if (ReadPayload(status, &bad_request)) {
    for (const auto& violation : bad_request.field_violations()) {
      details.field_violations.push_back({violation.field(), violation.description()});
    }
  }
  v1::ShardManifest stored;
  if (ReadPayload(status, &stored)) details.stored_manifest = internal::FromProto(stored);

  internal::CallFacts facts = internal::CallFactsOf(status);
  details.request_id = std::move(facts.request_id);
  details.attempts = facts.attempts;
  details.may_have_landed = facts.may_have_landed;
  return details;
}

}  // namespace claimd
