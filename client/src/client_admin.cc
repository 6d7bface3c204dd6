#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/sync_stream.h>

#include "claimd/v1/admin.grpc.pb.h"
#include "grpc/health/v1/health.pb.h"

#include "claimd/client.h"
#include "claimd/options.h"
#include "claimd/types.h"
#include "client/src/channels.h"
#include "client/src/convert.h"
#include "client/src/core.h"
#include "client/src/status.h"

// The calls of Client that are for operators and tools.
namespace claimd {
namespace {

constexpr size_t kImportManifestsMax = 1'000;

// Streams some manifests to the server.
grpc::Status SendImport(const internal::Link& link, grpc::ClientContext* context,
                        const std::vector<v1::ImportManifestsRequest>& requests,
                        v1::ImportManifestsResponse* response) {
  const auto writer = link.admin->ImportManifests(context, response);
  for (const v1::ImportManifestsRequest& request : requests) {
    // A write fails when the call is over; Finish says why.
    if (!writer->Write(request)) break;
  }
  writer->WritesDone();
  return writer->Finish();
}

absl::StatusOr<Health> HealthOf(const absl::Status& status,
                                grpc::health::v1::HealthCheckResponse::ServingStatus serving) {
  if (absl::IsNotFound(status)) return Health::kServiceUnknown;
  if (!status.ok()) return status;
  switch (serving) {
    case grpc::health::v1::HealthCheckResponse::SERVING:
      return Health::kServing;
    case grpc::health::v1::HealthCheckResponse::NOT_SERVING:
      return Health::kNotServing;
    default:
      return Health::kUnknown;
  }
}

}  // namespace

absl::StatusOr<std::vector<absl::Status>> Client::Import(
    const std::vector<ShardManifest>& manifests, const CallOptions& options) const {
  std::vector<absl::Status> results;
  while (results.size() < manifests.size()) {
    const size_t begin = results.size();
    const size_t count = std::min(kImportManifestsMax, manifests.size() - begin);
    std::vector<v1::ImportManifestsRequest> requests(count);
    for (size_t i = 0; i < count; ++i) {
      *requests[i].mutable_manifest() = internal::ToProto(manifests[begin + i]);
    }
    v1::ImportManifestsResponse response;
    // Repeating it is safe: a manifest that is stored already exactly so is answered OK.
    const absl::Status status =
        core_->Retries(core_->DeadlineOf(options), /*request_id=*/"")
            .Run([&](absl::Duration timeout) {
              return core_->Attempt(timeout,
                                    [&](const internal::Link& link, grpc::ClientContext* context) {
                                      response.Clear();
                                      return SendImport(link, context, requests, &response);
                                    });
            });
    if (!status.ok()) return status;
    if (static_cast<size_t>(response.results_size()) != count) {
      return absl::InternalError("The server answered another number of manifests than sent.");
    }
    for (const auto& result : response.results()) results.push_back(internal::FromProto(result));
  }
  return results;
}

absl::StatusOr<ServerInfo> Client::GetServerInfo(const CallOptions& options) const {
  const v1::GetServerInfoRequest request;
  v1::GetServerInfoResponse response;
  const absl::Status status =
      core_->Retries(core_->DeadlineOf(options), /*request_id=*/"")
          .Run([&](absl::Duration timeout) {
            return core_->Attempt(timeout,
                                  [&](const internal::Link& link, grpc::ClientContext* context) {
                                    return link.admin->GetServerInfo(context, request, &response);
                                  });
          });
  if (!status.ok()) return status;
  return internal::FromProto(response);
}

absl::StatusOr<Health> Client::CheckHealth(const std::string& service,
                                           const CallOptions& options) const {
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  grpc::health::v1::HealthCheckResponse response;
  const absl::Status status =
      core_->Attempt(options.timeout.value_or(core_->options().retry.attempt_timeout),
                     [&](const internal::Link& link, grpc::ClientContext* context) {
                       return link.health->Check(context, request, &response);
                     });
  return HealthOf(status, response.status());
}

}  // namespace claimd
