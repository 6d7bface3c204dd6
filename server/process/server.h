#ifndef CLAIMD_SERVER_PROCESS_SERVER_H_
#define CLAIMD_SERVER_PROCESS_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include <grpcpp/server.h>

#include "server/arbiter/arbiter.h"
#include "server/process/flags.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/health_service.h"
#include "server/rpc/raw_call.h"
#include "server/rpc/request_log.h"
#include "server/store/manifest_store.h"

namespace claimd::process {

// The one place where store, arbiter, services and transport are put together.
//
// Not thread-safe: made, drained and destroyed by the main thread.
class Server {
 public:
  // Opens the store. Errors: InvalidArgument when the store's name is wrong; any other when it
  // cannot be opened.
  static absl::StatusOr<std::unique_ptr<Server>> Open(const Config& config);

  // Listens, and serves from then until Drain. Errors: one that names the address that cannot be
  // listened on.
  absl::Status Listen();

  // Tells health, log and ready file that the server serves. REQUIRES: Listen succeeded.
  // Errors: Internal when the ready file cannot be written.
  absl::Status Announce();

  // NOT_SERVING, no new calls, running ones finish within the drain timeout, the rest is cancelled;
  // then nothing is served any more.
  void Drain();

  // Drains at once if Drain was not called.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Bound addresses. Empty before Listen.
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  explicit Server(const Config& config);

  absl::Status OpenStore();
  void MakeServices();
  absl::Status Bind();

  const Config config_;
  // In the order in which they are needed; destroyed from the last to the first.
  rpc::HealthService health_;
  rpc::CallGate gate_;
  rpc::RequestLog log_;
  std::unique_ptr<store::ManifestStore> store_;
  std::unique_ptr<arbiter::Arbiter> arbiter_;
  std::unique_ptr<grpc::Service> shard_arbiter_service_;
  std::unique_ptr<grpc::Service> admin_service_;
  std::unique_ptr<grpc::Server> server_;
  std::vector<std::string> addresses_;
};

}  // namespace claimd::process

#endif  // CLAIMD_SERVER_PROCESS_SERVER_H_
