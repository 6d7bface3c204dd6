#ifndef CLAIMD_SERVER_RPC_VALIDATION_H_
#define CLAIMD_SERVER_RPC_VALIDATION_H_

#include "absl/status/status.h"

#include "claimd/v1/admin.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

// Whether a request can be looked at, as pure functions. Limits are those in the protos' comments.
//
// Errors: INVALID_REQUEST (INVALID_ARGUMENT) with all bad fields at once.
namespace claimd::rpc {

inline constexpr int kBatchItemsMax = 1'024;

absl::Status Validate(const v1::ClaimEpochRequest& request);
// Only the number of items: each item stands alone and is validated on its own.
absl::Status Validate(const v1::BatchClaimEpochRequest& request);
absl::Status Validate(const v1::InitializeShardRequest& request);
absl::Status Validate(const v1::CheckFenceRequest& request);
// Not the manifest's content, which the rules judge (INVALID_MANIFEST).
absl::Status Validate(const v1::CommitManifestRequest& request);
absl::Status Validate(const v1::ReleaseEpochRequest& request);
absl::Status Validate(const v1::SealShardRequest& request);
absl::Status Validate(const v1::UnsealShardRequest& request);
absl::Status Validate(const v1::DropShardRequest& request);
absl::Status Validate(const v1::GetManifestRequest& request);
absl::Status Validate(const v1::ListShardsRequest& request);
absl::Status Validate(const v1::ListManifestVersionsRequest& request);
absl::Status Validate(const v1::ListClaimsRequest& request);

}  // namespace claimd::rpc

#endif  // CLAIMD_SERVER_RPC_VALIDATION_H_
