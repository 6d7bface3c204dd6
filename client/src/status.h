#ifndef CLAIMD_CLIENT_SRC_STATUS_H_
#define CLAIMD_CLIENT_SRC_STATUS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include <grpcpp/support/status.h>

#include "google/rpc/status.pb.h"

#include "claimd/errors.h"

// Statuses as they come from the wire, and what the library adds to them. Details travel as
// payloads of absl::Status, keyed by type URL.
namespace claimd::internal {

absl::Status FromGrpc(const grpc::Status& status);
absl::Status FromProto(const google::rpc::Status& proto);

// The server's reason; kNone when the status carries none of claimd's.
ErrorReason ReasonOf(const absl::Status& status);

// The delay that the server asks for, if it does.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

// What the library knows about a failed call.
struct CallFacts {
  // Empty for a call that changes nothing.
  std::string request_id;
  int attempts = 0;
  bool may_have_landed = false;
};
void SetCallFacts(const CallFacts& facts, absl::Status* status);
CallFacts CallFactsOf(const absl::Status& status);

// The same status with another message.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

// A refusal of claimd's domain that is made here.
absl::Status LocalError(absl::StatusCode code, ErrorReason reason, absl::string_view message,
                        absl::string_view table, absl::string_view shard_id);

}  // namespace claimd::internal

#endif  // CLAIMD_CLIENT_SRC_STATUS_H_
