#ifndef CLAIMD_SERVER_RPC_STATUS_DETAILS_H_
#define CLAIMD_SERVER_RPC_STATUS_DETAILS_H_

#include "absl/status/status.h"
#include <grpcpp/support/status.h>

#include "google/rpc/status.pb.h"

// The one place where our errors become what goes over the wire.
namespace claimd::rpc {

// The status with its payloads as details, ErrorInfo first. What would make the trailers too large
// for clients' default limit of 8 KiB is left out, ErrorInfo last of all.
google::rpc::Status ToRpcStatus(const absl::Status& status);

// The same as gRPC's status, with google.rpc.Status in grpc-status-details-bin.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace claimd::rpc

#endif  // CLAIMD_SERVER_RPC_STATUS_DETAILS_H_
