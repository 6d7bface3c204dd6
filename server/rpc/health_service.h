#ifndef CLAIMD_SERVER_RPC_HEALTH_SERVICE_H_
#define CLAIMD_SERVER_RPC_HEALTH_SERVICE_H_

#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include <grpcpp/support/server_callback.h>

#include "grpc/health/v1/health.grpc.pb.h"
#include "grpc/health/v1/health.pb.h"

#include "server/base/mutex.h"

namespace claimd::rpc {

// grpc.health.v1.Health as a proto service, so that reflection can resolve it (gRPC's built-in one
// is none). Serves "", claimd.v1.ShardArbiter and claimd.v1.Admin, all with one answer: whether
// this process can decide claims now.
//
// Thread-safe. Shutdown must be called before the server is shut down, or the watches keep it up.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  HealthService() = default;
  // REQUIRES: the server is gone.
  ~HealthService() override = default;

  // Tells callers and watchers from now on. Starts as NOT_SERVING.
  void SetServing(bool serving) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all watches, and those to come at once.
  void Shutdown() ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Watcher;

  bool IsServing() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<std::shared_ptr<Watcher>> Watchers() ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(Watcher* watcher) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable base::Mutex mutex_;
  bool serving_ ABSL_GUARDED_BY(mutex_) = false;
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
  std::unordered_map<Watcher*, std::shared_ptr<Watcher>> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace claimd::rpc

#endif  // CLAIMD_SERVER_RPC_HEALTH_SERVICE_H_
