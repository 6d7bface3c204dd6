#ifndef CLAIMD_SERVER_RPC_ADMIN_SERVICE_H_
#define CLAIMD_SERVER_RPC_ADMIN_SERVICE_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include <grpcpp/impl/service_type.h>

#include "claimd/v1/admin.pb.h"

#include "server/rpc/raw_call.h"
#include "server/store/manifest_store.h"

namespace claimd::rpc {

// What GetServerInfo answers beside what the store says.
struct ServerFacts {
  std::string version;
  absl::Time start_time = absl::InfinitePast();
  v1::ServerLimits limits;
};

// claimd.v1.Admin over gRPC's callback API. 'store' and what 'environment' points to are not owned
// and must outlive the service. No reaction blocks.
std::unique_ptr<grpc::Service> MakeAdminService(const Environment& environment,
                                                store::ManifestStore* store, ServerFacts facts);

}  // namespace claimd::rpc

#endif  // CLAIMD_SERVER_RPC_ADMIN_SERVICE_H_
