#ifndef CLAIMD_SERVER_RPC_SHARD_ARBITER_SERVICE_H_
#define CLAIMD_SERVER_RPC_SHARD_ARBITER_SERVICE_H_

#include <memory>

#include <grpcpp/impl/service_type.h>

#include "server/rpc/raw_call.h"

namespace claimd::rpc {

// claimd.v1.ShardArbiter over gRPC's callback API. 'environment' is copied; what it points to must
// outlive the service. No reaction blocks.
std::unique_ptr<grpc::Service> MakeShardArbiterService(const Environment& environment);

}  // namespace claimd::rpc

#endif  // CLAIMD_SERVER_RPC_SHARD_ARBITER_SERVICE_H_
