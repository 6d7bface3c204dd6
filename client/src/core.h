#ifndef CLAIMD_CLIENT_SRC_CORE_H_
#define CLAIMD_CLIENT_SRC_CORE_H_

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include "claimd/v1/shard_arbiter.grpc.pb.h"

#include "claimd/client.h"
#include "claimd/options.h"
#include "claimd/shard_claim.h"
#include "client/src/channels.h"
#include "client/src/environment.h"
#include "client/src/retry.h"
#include "client/src/status.h"

namespace claimd::internal {

// What the copies of a client and its claims share. Thread-safe.
class Core {
 public:
  // Errors: as Client::Connect.
  static absl::StatusOr<std::shared_ptr<Core>> Make(ClientOptions options, Environment environment);

  const ClientOptions& options() const { return options_; }
  const Environment& environment() const { return environment_; }

  // When a call that begins now has to be over, on the environment's clock.
  absl::Duration DeadlineOf(const CallOptions& call) const {
    return environment_.monotonic_now() + call.timeout.value_or(options_.retry.total_budget);
  }

  // The id for a mutation: the caller's, or a fresh one.
  std::string RequestIdFor(const CallOptions& call) const {
    return call.request_id.empty() ? environment_.new_request_id() : call.request_id;
  }

  RetryLoop Retries(absl::Duration deadline, std::string request_id) const {
    return {&environment_, &options_.retry, deadline, std::move(request_id)};
  }

  // Sends one attempt: 'send' makes the call with the context and stubs that it is given.
  template <typename Send>
  absl::Status Attempt(absl::Duration timeout, const Send& send) {
    // Far enough away for anybody, near enough for the clock's arithmetic.
    constexpr absl::Duration kTimeoutMax = absl::Hours(24);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMicroseconds(std::min(timeout, kTimeoutMax)));
    return FromGrpc(send(channels_->Pick(), &context));
  }

  // One unary method of the ShardArbiter.
  template <typename Request, typename Response>
  using ArbiterMethod = grpc::Status (v1::ShardArbiter::Stub::*)(grpc::ClientContext*,
                                                                 const Request&, Response*);

  // Makes a unary call with 'retries'.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(ArbiterMethod<Request, Response> method, const Request& request,
                                RetryLoop* retries) {
    Response response;
    const absl::Status status = retries->Run([&](absl::Duration timeout) {
      return Attempt(timeout, [&](const Link& link, grpc::ClientContext* context) {
        response.Clear();
        return (link.arbiter.get()->*method)(context, request, &response);
      });
    });
    if (!status.ok()) return status;
    return response;
  }

  // The same for a call that changes nothing.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Read(ArbiterMethod<Request, Response> method, const Request& request,
                                absl::Duration deadline) {
    RetryLoop retries = Retries(deadline, /*request_id=*/"");
    return Call(method, request, &retries);
  }

  // The same for a mutation that carries its request id.
  template <typename Request, typename Response>
  absl::StatusOr<Response> Mutate(ArbiterMethod<Request, Response> method, const Request& request,
                                  absl::Duration deadline) {
    RetryLoop retries = Retries(deadline, request.request_id());
    return Call(method, request, &retries);
  }

 private:
  Core(ClientOptions options, Environment environment, std::unique_ptr<Channels> channels);

  const ClientOptions options_;
  const Environment environment_;
  const std::unique_ptr<Channels> channels_;
};

// The door for tests and for the library's own files to what the public classes hide.
struct Access {
  static Client MakeClient(std::shared_ptr<Core> core) { return Client(std::move(core)); }
  static ShardClaim MakeClaim(std::shared_ptr<ClaimState> state) {
    return ShardClaim(std::move(state));
  }
};

// ClaimAll: batches, retries of single shards, claims whose manifest did not fit.
std::vector<absl::StatusOr<ShardClaim>> ClaimAll(const std::shared_ptr<Core>& core,
                                                 const std::vector<ClaimTarget>& shards,
                                                 absl::Duration deadline);

// The request of one claim.
v1::ClaimEpochRequest MakeClaimRequest(const Core& core, const ClaimTarget& target);
// The claim that a response grants.
ShardClaim MakeClaim(const std::shared_ptr<Core>& core, const ClaimTarget& target,
                     const v1::ClaimEpochResponse& response);

}  // namespace claimd::internal

#endif  // CLAIMD_CLIENT_SRC_CORE_H_
