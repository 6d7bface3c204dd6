#include "client/ctl/exit_code.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "claimd/errors.h"
#include "client/ctl/command_line.h"

namespace claimd::ctl {
namespace {

// For a status without a reason of claimd's that this program knows.
ExitCode ExitCodeOfTransport(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    case absl::StatusCode::kAborted:
      return ExitCode::kLost;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAlreadyExists:
      return ExitCode::kRefused;
    case absl::StatusCode::kFailedPrecondition:
      return ExitCode::kState;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kCancelled:
      return ExitCode::kUnavailable;
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return ExitCode::kDenied;
    case absl::StatusCode::kDataLoss:
      return ExitCode::kCorrupt;
    default:
      return ExitCode::kOther;
  }
}

std::string NextStepOfTransport(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return "Is claimd running there? Check --server, and the TLS flags if it wants TLS.";
    case absl::StatusCode::kDeadlineExceeded:
      return "Try again, with a longer --timeout if the server is slow.";
    case absl::StatusCode::kUnimplemented:
      return "The server does not know this call; it may be older than this program.";
    default:
      return "";
  }
}

std::string NextStepOfRequest(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::kInvalidRequest:
    case ErrorReason::kInvalidManifest:
      return "Correct what is named above; asking again as it is changes nothing.";
    case ErrorReason::kShardSpecMismatch:
      return "Use the stored spec id, or find out why this writer works under another spec: its "
             "rows belong to other shards.";
    case ErrorReason::kShardSpecFingerprintMismatch:
      return "The ids are equal but the specs are not; find out which spec made the shard.";
    case ErrorReason::kShardIdentityConflict:
      return "Look at the stored field values with \"claimctl get\".";
    case ErrorReason::kShardExists:
      return "The shard is there already; look at it with \"claimctl get\". Importing never "
             "overwrites.";
    case ErrorReason::kRequestIdReused:
      return "Leave --request-id out, or use it only to repeat the call that it belongs to.";
    case ErrorReason::kEpochFloorTooHigh:
      return "Check the epoch floor against the shard's own data.";
    case ErrorReason::kEpochFromFuture:
      return "No such epoch was granted here: is this the right server, or was its store rolled "
             "back?";
    default:
      return "";
  }
}

std::string NextStepOfState(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::kShardSealed:
    case ErrorReason::kTableSealed:
      return "A drop is in flight. If it is called off, \"claimctl unseal\" lets claims in again.";
    case ErrorReason::kShardNotSealed:
      return "Seal the shard first (\"claimctl seal\") and let its holder drain.";
    case ErrorReason::kShardHeld:
      return "Wait until it is released, or claim with --mode=preempt, which fences the holder.";
    case ErrorReason::kWriterFenced:
    case ErrorReason::kClaimSuperseded:
      return "Somebody claimed after this epoch. Stop writing under it; do not claim again unless "
             "this writer is meant to take over.";
    case ErrorReason::kClaimLostRace:
      return "Somebody else claimed at the same moment and owns the shard now.";
    case ErrorReason::kEpochMismatch:
      return "The shard has moved on; look at it with \"claimctl get\" and decide anew.";
    case ErrorReason::kManifestVersionConflict:
    case ErrorReason::kManifestContention:
      return "Nothing was written; others commit at the same time. Try again.";
    default:
      return "";
  }
}

std::string NextStepOfService(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::kShardNotFound:
      return "Check table and shard id (\"claimctl list TABLE\"); a dropped shard still has its "
             "\"claimctl claims\".";
    case ErrorReason::kVersionNotFound:
      return "\"claimctl history\" lists the versions that are kept.";
    case ErrorReason::kOverloaded:
    case ErrorReason::kClaimTooSoon:
    case ErrorReason::kDraining:
      return "Try again in a moment.";
    case ErrorReason::kStoreUnavailable:
      return "The server cannot use its store; its log says why.";
    case ErrorReason::kStoreCorrupt:
      return "What is stored cannot be trusted. Stop, keep a copy of the store, and read the "
             "server's log.";
    case ErrorReason::kPermissionDenied:
    case ErrorReason::kUnauthenticated:
      return "Check the certificate that --tls-cert names, and the server's access policy.";
    default:
      return "";
  }
}

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  if (IsUsageError(status)) return ExitCode::kUsage;
  switch (ErrorDetails::From(status).reason) {
    case ErrorReason::kEpochMismatch:
    case ErrorReason::kWriterFenced:
    case ErrorReason::kClaimSuperseded:
    case ErrorReason::kClaimLostRace:
    case ErrorReason::kManifestVersionConflict:
    case ErrorReason::kManifestContention:
    case ErrorReason::kClaimReleased:
      return ExitCode::kLost;
    default:
      // The code tells the classes of all other reasons apart, also of reasons yet to come.
      return ExitCodeOfTransport(status.code());
  }
}

std::string ExitCodesText() {
  return "   0  done\n"
         "   1  failed in another way\n"
         "   2  called in a wrong way\n"
         "   3  not found: SHARD_NOT_FOUND, TABLE_NOT_FOUND, VERSION_NOT_FOUND\n"
         "   4  lost to somebody else: WRITER_FENCED, CLAIM_SUPERSEDED, CLAIM_LOST_RACE,\n"
         "      EPOCH_MISMATCH, MANIFEST_VERSION_CONFLICT, MANIFEST_CONTENTION\n"
         "   5  not acceptable as asked: SHARD_SPEC_MISMATCH, SHARD_SPEC_FINGERPRINT_MISMATCH,\n"
         "      SHARD_IDENTITY_CONFLICT, SHARD_EXISTS, INVALID_REQUEST, INVALID_MANIFEST, …\n"
         "   6  the state stands in the way: SHARD_SEALED, SHARD_NOT_SEALED, SHARD_HELD, …\n"
         "   7  no answer, or the outcome is not known: UNAVAILABLE, OUTCOME_UNKNOWN, DRAINING,\n"
         "      OVERLOADED, STORE_UNAVAILABLE; also a server that is not serving\n"
         "   8  not allowed: PERMISSION_DENIED, UNAUTHENTICATED\n"
         "   9  import or export went through, but left something out\n"
         "  10  what is stored cannot be trusted: STORE_CORRUPT\n";
}

std::string NextStep(const absl::Status& status) {
  const ErrorDetails details = ErrorDetails::From(status);
  const bool unknown = details.may_have_landed || details.reason == ErrorReason::kOutcomeUnknown;
  if (unknown && !details.request_id.empty()) {
    return absl::StrCat("The change may be in force. Repeat the command with --request-id=",
                        details.request_id, " to settle it.");
  }
  if (details.reason == ErrorReason::kNone) return NextStepOfTransport(status.code());
  for (const auto& step : {NextStepOfRequest(details.reason), NextStepOfState(details.reason),
                           NextStepOfService(details.reason)}) {
    if (!step.empty()) return step;
  }
  return "";
}

}  // namespace claimd::ctl
