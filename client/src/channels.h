#ifndef CLAIMD_CLIENT_SRC_CHANNELS_H_
#define CLAIMD_CLIENT_SRC_CHANNELS_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include <grpcpp/channel.h>

#include "claimd/v1/admin.grpc.pb.h"
#include "claimd/v1/shard_arbiter.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"

#include "claimd/options.h"

namespace claimd::internal {

// The gRPC targets that together reach all of 'targets': literal addresses of one family share a
// target, which gRPC balances over, and each name has its own. 'may_group' is false when the
// server's certificate is checked against the target.
// Errors: InvalidArgument, naming the target that makes no sense.
enum class Grouping { kAllowed, kForbidden };
absl::StatusOr<std::vector<std::string>> GrpcTargets(const std::vector<std::string>& targets,
                                                     Grouping grouping);

// Connections to one target, with the stubs that use them.
struct Link {
  explicit Link(std::shared_ptr<grpc::Channel> connection);

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::ShardArbiter::Stub> arbiter;
  std::unique_ptr<v1::Admin::Stub> admin;
  std::unique_ptr<grpc::health::v1::Health::Stub> health;
};

// All connections of a client. Thread-safe.
class Channels {
 public:
  // Errors: as Client::Connect.
  static absl::StatusOr<std::unique_ptr<Channels>> Open(const ClientOptions& options);

  // Where to send the next attempt: each target in turn, those that are connected first.
  const Link& Pick();

  // Returns after the duration, and meanwhile lets the connections come back. gRPC moves a
  // connection along only while somebody waits for it: between calls that fail at once, and without
  // this, a reconnect would rest until gRPC's backup poller looks, every 5 s.
  void WaitFor(absl::Duration duration);

 private:
  explicit Channels(std::vector<std::unique_ptr<Link>> links) : links_(std::move(links)) {}

  const std::vector<std::unique_ptr<Link>> links_;
  std::atomic<size_t> next_{0};
};

}  // namespace claimd::internal

#endif  // CLAIMD_CLIENT_SRC_CHANNELS_H_
