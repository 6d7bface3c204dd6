#ifndef CLAIMD_SERVER_ARBITER_REQUEST_KEY_H_
#define CLAIMD_SERVER_ARBITER_REQUEST_KEY_H_

#include "absl/status/statusor.h"

#include "claimd/v1/manifest.pb.h"

#include "server/arbiter/errors.h"
#include "server/base/uuid.h"
#include "server/store/shard_key.h"

namespace claimd::arbiter {

// The shard that a request is about. REQUIRES: the request is valid (rpc/validation.h).
template <typename Request>
store::ShardKey KeyOf(const Request& request) {
  return {.table = request.table(), .shard_id = base::ParseUuid(request.shard_id()).value()};
}

// The shard that an imported manifest is about. Errors: INVALID_MANIFEST.
absl::StatusOr<store::ShardKey> ImportKey(const v1::ShardManifest& manifest);

}  // namespace claimd::arbiter

#endif  // CLAIMD_SERVER_ARBITER_REQUEST_KEY_H_
