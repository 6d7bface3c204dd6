#include "server/arbiter/errors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "claimd/v1/manifest.pb.h"
#include "google/rpc/error_details.pb.h"

#include "server/base/uuid.h"
#include "server/store/shard_key.h"

namespace claimd::arbiter {
namespace {

constexpr absl::string_view kTypePrefix = "type.googleapis.com/";
constexpr absl::string_view kDomain = "claimd";
// Trailers over 8 KiB break calls (DESIGN §5), so nothing that a caller sent is repeated at length.
constexpr size_t kEchoLengthMax = 600;
// A longer table is named in the metadata only, so that the sentence is not cut.
constexpr size_t kTableInMessageMax = 128;
constexpr size_t kViolationsMax = 24;
constexpr size_t kViolationFieldMax = 64;
constexpr size_t kViolationDescriptionMax = 80;
constexpr size_t kDetailsWithManifestMax = 2048;

// Text that came from a caller unchecked, made safe for messages and metadata. Plain text of a
// length that a table can have comes through as it is.
std::string Printable(absl::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), absl::ascii_isprint);
  if (plain && text.size() <= kEchoLengthMax) return std::string(text);
  return absl::CHexEscape(text.substr(0, kEchoLengthMax / 4));
}

std::string Hex(absl::string_view bytes) { return absl::BytesToHexString(bytes); }

// Puts together one refusal.
class Refusal {
 public:
  Refusal(absl::StatusCode code, absl::string_view reason, absl::string_view message)
      : status_(code, message) {
    info_.set_reason(std::string(reason));
    info_.set_domain(std::string(kDomain));
  }

  Refusal& Key(const store::ShardKey& key) {
    return With("table", key.table).With("shard_id", base::FormatUuid(key.shard_id));
  }
  Refusal& With(absl::string_view name, absl::string_view value) {
    (*info_.mutable_metadata())[std::string(name)] = std::string(value);
    return *this;
  }
  Refusal& With(absl::string_view name, uint64_t value) { return With(name, absl::StrCat(value)); }

  Refusal& Retry(absl::Duration delay) {
    google::rpc::RetryInfo retry;
    const int64_t nanos = absl::ToInt64Nanoseconds(delay);
    constexpr int64_t kNanosPerSecond = 1'000'000'000;
    retry.mutable_retry_delay()->set_seconds(nanos / kNanosPerSecond);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(nanos % kNanosPerSecond));
    return Detail(retry);
  }

  // The state that stood in the way, for clients that know no reasons of ours.
  Refusal& Precondition(absl::string_view subject, absl::string_view description) {
    google::rpc::PreconditionFailure failure;
    auto* violation = failure.add_violations();
    violation->set_type(info_.reason());
    violation->set_subject(std::string(subject));
    violation->set_description(std::string(description));
    return Detail(failure);
  }

  template <typename Message>
  Refusal& Detail(const Message& message) {
    status_.SetPayload(absl::StrCat(kTypePrefix, Message::descriptor()->full_name()),
                       absl::Cord(message.SerializeAsString()));
    return *this;
  }

  size_t InfoSize() const { return info_.ByteSizeLong(); }

  absl::Status Build() {
    Detail(info_);
    return status_;
  }

 private:
  absl::Status status_;
  google::rpc::ErrorInfo info_;
};

std::string Id(const store::ShardKey& key) { return base::FormatUuid(key.shard_id); }

std::string HolderOf(const v1::ShardManifest& stored) {
  if (!stored.has_claim()) return "nobody";
  return stored.claim().claimant().empty() ? "a writer that gave no name"
                                           : absl::StrCat("\"", stored.claim().claimant(), "\"");
}

google::rpc::BadRequest ToBadRequest(const std::vector<FieldViolation>& violations) {
  google::rpc::BadRequest bad;
  for (const FieldViolation& violation : violations) {
    if (static_cast<size_t>(bad.field_violations_size()) == kViolationsMax) {
      auto* rest = bad.add_field_violations();
      rest->set_description(absl::StrCat("and ", violations.size() - kViolationsMax, " more"));
      break;
    }
    auto* out = bad.add_field_violations();
    out->set_field(violation.field.substr(0, kViolationFieldMax));
    out->set_description(violation.description.substr(0, kViolationDescriptionMax));
  }
  return bad;
}

std::string FirstOf(const google::rpc::BadRequest& bad, size_t count) {
  if (bad.field_violations().empty()) return "a field is malformed";
  const auto& first = bad.field_violations(0);
  std::string text = absl::StrCat(first.field(), " ", first.description());
  if (count > 1) absl::StrAppend(&text, " (and ", count - 1, " more)");
  return text;
}

}  // namespace

std::string ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(
      absl::StrCat(kTypePrefix, google::rpc::ErrorInfo::descriptor()->full_name()));
  if (!payload.has_value()) return "";
  google::rpc::ErrorInfo info;
  if (!info.ParseFromString(std::string(*payload))) return "";
  return info.reason();
}

absl::Status InvalidRequestError(const std::vector<FieldViolation>& violations,
                                 absl::string_view table, absl::string_view shard_id) {
  const google::rpc::BadRequest bad = ToBadRequest(violations);
  return Refusal(absl::StatusCode::kInvalidArgument, "INVALID_REQUEST",
                 absl::StrCat("The request is malformed: ", FirstOf(bad, violations.size()), "."))
      .With("table", Printable(table))
      .With("shard_id", Printable(shard_id))
      .Detail(bad)
      .Build();
}

absl::Status InvalidManifestError(const store::ShardKey& key,
                                  const std::vector<FieldViolation>& violations) {
  return InvalidManifestError(key.table, Id(key), violations);
}

absl::Status InvalidManifestError(absl::string_view table, absl::string_view shard_id,
                                  const std::vector<FieldViolation>& violations) {
  const google::rpc::BadRequest bad = ToBadRequest(violations);
  return Refusal(absl::StatusCode::kInvalidArgument, "INVALID_MANIFEST",
                 absl::StrCat("The manifest of shard ", Printable(shard_id),
                              " is not acceptable: ", FirstOf(bad, violations.size()), "."))
      .With("table", Printable(table))
      .With("shard_id", Printable(shard_id))
      .Detail(bad)
      .Build();
}

absl::Status ShardSpecMismatchError(const store::ShardKey& key, uint32_t incoming,
                                    uint32_t stored) {
  return Refusal(absl::StatusCode::kInvalidArgument, "SHARD_SPEC_MISMATCH",
                 absl::StrCat("Shard ", Id(key), " was made under shard spec id ", stored,
                              ", but the request names shard spec id ", incoming,
                              "; use the spec that the shard belongs to."))
      .Key(key)
      .With("incoming_shard_spec_id", incoming)
      .With("stored_shard_spec_id", stored)
      .Build();
}

absl::Status FingerprintMismatchError(const store::ShardKey& key, uint32_t shard_spec_id,
                                      absl::string_view incoming, absl::string_view stored) {
  return Refusal(absl::StatusCode::kInvalidArgument, "SHARD_SPEC_FINGERPRINT_MISMATCH",
                 absl::StrCat("Shard ", Id(key), " was made under another sharding spec with the ",
                              "same shard spec id ", shard_spec_id, ": stored fingerprint ",
                              Hex(stored), ", incoming fingerprint ", Hex(incoming), "."))
      .Key(key)
      .With("incoming_shard_spec_id", shard_spec_id)
      .With("stored_shard_spec_id", shard_spec_id)
      .With("incoming_shard_spec_fingerprint", Hex(incoming))
      .With("stored_shard_spec_fingerprint", Hex(stored))
      .Build();
}

absl::Status ShardSealedError(const store::ShardKey& key) {
  return Refusal(absl::StatusCode::kFailedPrecondition, "SHARD_SEALED",
                 absl::StrCat("Shard ", Id(key),
                              " is sealed because a drop is in flight; it can be claimed again "
                              "after UnsealShard."))
      .Key(key)
      .With("state", v1::ShardStatus_Name(v1::SHARD_STATUS_SEALED))
      .Precondition(Id(key), "sealed")
      .Build();
}

absl::Status ShardNotSealedError(const store::ShardKey& key, v1::ShardStatus status) {
  return Refusal(
             absl::StatusCode::kFailedPrecondition, "SHARD_NOT_SEALED",
             absl::StrCat("Shard ", Id(key), " is not sealed; call SealShard before DropShard."))
      .Key(key)
      .With("state", v1::ShardStatus_Name(status))
      .Precondition(Id(key), "not sealed")
      .Build();
}

absl::Status ShardHeldError(const store::ShardKey& key, const v1::Claim& claim) {
  Refusal refusal(
      absl::StatusCode::kFailedPrecondition, "SHARD_HELD",
      absl::StrCat("Shard ", Id(key), " is held by \"", claim.claimant(), "\" under epoch ",
                   claim.writer_epoch(), "; wait for its release or claim with mode PREEMPT."));
  refusal.Key(key)
      .With("claimant", claim.claimant())
      .With("stored_writer_epoch", claim.writer_epoch())
      // A claim without a lease holds until it is released or superseded.
      .With("lease_remaining", "unlimited")
      .Precondition(Id(key), "held");
  return refusal.Build();
}

absl::Status WriterFencedError(const store::ShardKey& key, uint64_t writer_epoch,
                               const v1::ShardManifest& stored) {
  return Refusal(absl::StatusCode::kFailedPrecondition, "WRITER_FENCED",
                 absl::StrCat("Epoch ", writer_epoch, " of shard ", Id(key),
                              " is fenced: the stored epoch is ", stored.writer_epoch(),
                              ", held by ", HolderOf(stored), "; stop writing."))
      .Key(key)
      .With("writer_epoch", writer_epoch)
      .With("stored_writer_epoch", stored.writer_epoch())
      .With("claimant", stored.claim().claimant())
      .Precondition(Id(key), "fenced")
      .Build();
}

absl::Status EpochFromFutureError(const store::ShardKey& key, uint64_t writer_epoch,
                                  uint64_t stored_epoch) {
  return Refusal(absl::StatusCode::kInvalidArgument, "EPOCH_FROM_FUTURE",
                 absl::StrCat("Epoch ", writer_epoch, " of shard ", Id(key),
                              " was never granted here: the stored epoch is ", stored_epoch,
                              "; check that the server's data was not rolled back, and claim with "
                              "epoch_floor."))
      .Key(key)
      .With("writer_epoch", writer_epoch)
      .With("stored_writer_epoch", stored_epoch)
      .Build();
}

absl::Status ClaimLostRaceError(const store::ShardKey& key, const v1::ShardManifest& winner) {
  return Refusal(absl::StatusCode::kAborted, "CLAIM_LOST_RACE",
                 absl::StrCat("Another claim of shard ", Id(key),
                              " won the race: the stored epoch is ", winner.writer_epoch(),
                              ", held by ", HolderOf(winner), "; nothing was written."))
      .Key(key)
      .With("stored_writer_epoch", winner.writer_epoch())
      .With("claimant", winner.claim().claimant())
      .Build();
}

absl::Status ClaimSupersededError(const store::ShardKey& key, uint64_t writer_epoch,
                                  const v1::ShardManifest& stored) {
  return Refusal(absl::StatusCode::kAborted, "CLAIM_SUPERSEDED",
                 absl::StrCat("This request claimed shard ", Id(key), " under epoch ", writer_epoch,
                              ", which is over: the stored epoch is ", stored.writer_epoch(),
                              ", held by ", HolderOf(stored), "."))
      .Key(key)
      .With("writer_epoch", writer_epoch)
      .With("stored_writer_epoch", stored.writer_epoch())
      .With("claimant", stored.claim().claimant())
      .With("state", v1::ShardStatus_Name(stored.status()))
      .Build();
}

absl::Status VersionConflictError(const store::ShardKey& key, uint64_t incoming_version,
                                  const v1::ShardManifest& stored) {
  Refusal refusal(absl::StatusCode::kAborted, "MANIFEST_VERSION_CONFLICT",
                  absl::StrCat("Shard ", Id(key), " is at version ", stored.version(),
                               ", so version ", incoming_version,
                               " cannot be committed; read the manifest and apply the change to it "
                               "again."));
  refusal.Key(key)
      .With("stored_version", stored.version())
      .With("stored_writer_epoch", stored.writer_epoch());
  if (refusal.InfoSize() + stored.ByteSizeLong() <= kDetailsWithManifestMax) refusal.Detail(stored);
  return refusal.Build();
}

absl::Status ContentionError(const store::ShardKey& key, const v1::ShardManifest* stored,
                             int attempts) {
  return Refusal(absl::StatusCode::kAborted, "MANIFEST_CONTENTION",
                 absl::StrCat("Shard ", Id(key), " changed under each of ", attempts,
                              " attempts; nothing was written, try again."))
      .Key(key)
      .With("stored_version", stored == nullptr ? 0 : stored->version())
      .With("stored_writer_epoch", stored == nullptr ? 0 : stored->writer_epoch())
      .Build();
}

absl::Status EpochMismatchError(const store::ShardKey& key, uint64_t expected, uint64_t stored,
                                uint64_t stored_version) {
  return Refusal(absl::StatusCode::kAborted, "EPOCH_MISMATCH",
                 absl::StrCat("Shard ", Id(key), " is at epoch ", stored, ", not at the expected ",
                              expected, "; read the manifest and decide again."))
      .Key(key)
      .With("expected_epoch", expected)
      .With("stored_writer_epoch", stored)
      .With("stored_version", stored_version)
      .Build();
}

absl::Status EpochFloorTooHighError(const store::ShardKey& key, uint64_t floor, uint64_t stored,
                                    uint64_t jump_max) {
  google::rpc::BadRequest bad;
  auto* violation = bad.add_field_violations();
  violation->set_field("epoch_floor");
  violation->set_description(absl::StrCat("must be at most ", jump_max, " above the stored epoch"));
  return Refusal(absl::StatusCode::kInvalidArgument, "EPOCH_FLOOR_TOO_HIGH",
                 absl::StrCat("epoch_floor ", floor, " is more than ", jump_max,
                              " above the stored epoch ", stored, " of shard ", Id(key), "."))
      .Key(key)
      .With("epoch_floor", floor)
      .With("stored_writer_epoch", stored)
      .Detail(bad)
      .Build();
}

absl::Status EpochExhaustedError(const store::ShardKey& key) {
  return Refusal(
             absl::StatusCode::kFailedPrecondition, "EPOCH_EXHAUSTED",
             absl::StrCat("Shard ", Id(key), " has used its last epoch, ",
                          std::numeric_limits<uint64_t>::max(), "; it cannot be claimed again."))
      .Key(key)
      .Precondition(Id(key), "no epoch left")
      .Build();
}

absl::Status VersionExhaustedError(const store::ShardKey& key) {
  return Refusal(absl::StatusCode::kFailedPrecondition, "VERSION_EXHAUSTED",
                 absl::StrCat("Shard ", Id(key), " has used its last version, ",
                              std::numeric_limits<uint64_t>::max(), "; it cannot change again."))
      .Key(key)
      .Precondition(Id(key), "no version left")
      .Build();
}

absl::Status IdentityConflictError(const store::ShardKey& key, absl::string_view what) {
  return Refusal(absl::StatusCode::kAlreadyExists, "SHARD_IDENTITY_CONFLICT",
                 absl::StrCat("Shard ", Id(key), " exists with other ", what,
                              "; a shard's identity never changes."))
      .Key(key)
      .With("differs", what)
      .Build();
}

absl::Status ShardExistsError(const store::ShardKey& key, const v1::ShardManifest& stored) {
  return Refusal(absl::StatusCode::kAlreadyExists, "SHARD_EXISTS",
                 absl::StrCat("Shard ", Id(key), " exists at version ", stored.version(),
                              " and epoch ", stored.writer_epoch(),
                              "; a manifest is imported only onto a shard that does not exist."))
      .Key(key)
      .With("stored_version", stored.version())
      .With("stored_writer_epoch", stored.writer_epoch())
      .With("state", v1::ShardStatus_Name(stored.status()))
      .Build();
}

absl::Status ShardNotFoundError(const store::ShardKey& key) {
  return Refusal(absl::StatusCode::kNotFound, "SHARD_NOT_FOUND",
                 absl::StrCat("Shard ", Id(key), " does not exist in ",
                              key.table.size() <= kTableInMessageMax
                                  ? absl::StrCat("table \"", key.table, "\".")
                                  : "this table."))
      .Key(key)
      .Build();
}

absl::Status ShardDroppedError(const store::ShardKey& key, const v1::ShardManifest& tombstone) {
  return Refusal(absl::StatusCode::kNotFound, "SHARD_NOT_FOUND",
                 absl::StrCat("Shard ", Id(key), " was dropped at version ", tombstone.version(),
                              " and epoch ", tombstone.writer_epoch(), "."))
      .Key(key)
      .With("state", v1::ShardStatus_Name(v1::SHARD_STATUS_DROPPED))
      .With("stored_version", tombstone.version())
      .With("stored_writer_epoch", tombstone.writer_epoch())
      .Build();
}

absl::Status VersionNotFoundError(const store::ShardKey& key, uint64_t version,
                                  uint64_t stored_version) {
  const bool future = version > stored_version;
  return Refusal(absl::StatusCode::kNotFound, "VERSION_NOT_FOUND",
                 absl::StrCat("Version ", version, " of shard ", Id(key),
                              future ? " does not exist yet" : " is no longer kept",
                              "; the newest is ", stored_version, "."))
      .Key(key)
      .With("version", version)
      .With("stored_version", stored_version)
      .Build();
}

absl::Status RequestIdReusedError(const store::ShardKey& key, absl::string_view request_id) {
  return Refusal(
             absl::StatusCode::kInvalidArgument, "REQUEST_ID_REUSED",
             absl::StrCat("request_id \"", request_id, "\" was already used for another call on ",
                          "shard ", Id(key), "; give each call a fresh random UUID."))
      .Key(key)
      .With("request_id", request_id)
      .Build();
}

absl::Status InvalidPageTokenError(absl::string_view table, absl::string_view shard_id) {
  return InvalidRequestError(
      {{"page_token", "is not a token of this server for this listing; start from the first page"}},
      table, shard_id);
}

absl::Status StoreError(absl::string_view table, absl::string_view shard_id,
                        const absl::Status& cause) {
  const bool corrupt = cause.code() == absl::StatusCode::kDataLoss;
  return Refusal(corrupt ? absl::StatusCode::kDataLoss : absl::StatusCode::kUnavailable,
                 corrupt ? "STORE_CORRUPT" : "STORE_UNAVAILABLE",
                 absl::StrCat(corrupt ? "The store holds something broken: "
                                      : "The store cannot be used now: ",
                              Printable(cause.message()), "."))
      .With("table", table)
      .With("shard_id", shard_id)
      .Build();
}

absl::Status StoreCorruptError(const store::ShardKey& key, absl::string_view what) {
  return StoreError(key.table, Id(key), absl::DataLossError(what));
}

absl::Status OutcomeUnknownError(const store::ShardKey& key, absl::string_view request_id,
                                 const absl::Status& cause) {
  return Refusal(absl::StatusCode::kUnavailable, "OUTCOME_UNKNOWN",
                 absl::StrCat("It cannot be said whether the change of shard ", Id(key),
                              " was written (", Printable(cause.message()),
                              "); repeat the call with request_id \"", request_id, "\"."))
      .Key(key)
      .With("request_id", request_id)
      .Build();
}

absl::Status OverloadedError(absl::string_view what, absl::Duration retry_after) {
  return Refusal(absl::StatusCode::kResourceExhausted, "OVERLOADED",
                 absl::StrCat("The server is overloaded: ", what, "; try again later."))
      .Retry(retry_after)
      .Build();
}

absl::Status DrainingError() {
  return Refusal(absl::StatusCode::kUnavailable, "DRAINING",
                 "The server is shutting down; try another server, or this one again later.")
      .Build();
}

}  // namespace claimd::arbiter
