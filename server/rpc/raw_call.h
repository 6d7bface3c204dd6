#ifndef CLAIMD_SERVER_RPC_RAW_CALL_H_
#define CLAIMD_SERVER_RPC_RAW_CALL_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "google/protobuf/arena.h"
#include "google/protobuf/message.h"
#include "server/arbiter/arbiter.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/request_log.h"
#include "server/rpc/status_details.h"

// How every unary call runs: gate → parse → validate → arbiter → status.
//
// Calls come as bytes and are parsed here, because gRPC answers bytes that do not parse with an
// empty UNIMPLEMENTED, and a caller must be told which of its fields is no UTF-8.
namespace claimd::rpc {

// What services work with. Nothing is owned; all must outlive the server.
struct Environment {
  arbiter::Arbiter* arbiter = nullptr;
  CallGate* gate = nullptr;
  RequestLog* log = nullptr;
};

// Which answers of an rpc are logged.
enum class LogPolicy { kNothing, kRefusals, kGrantsAndRefusals };

// Parses bytes into 'message' and drops fields unknown to this version, which must not get into the
// store. Errors: INVALID_REQUEST that names what does not parse.
absl::Status ParseRequest(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);

// Puts a message into bytes; it cannot fail for our messages.
void SerializeResponse(const google::protobuf::Message& message, grpc::ByteBuffer* bytes);

// One unary call while it runs: owns the parsed request, gone when the answer is given.
template <typename Request>
class RawCall {
 public:
  RawCall(const Environment* environment, grpc::CallbackServerContext* context,
          grpc::ByteBuffer* response)
      : environment_(environment), reactor_(context->DefaultReactor()), response_(response) {}

  grpc::ServerUnaryReactor* reactor() const { return reactor_; }
  const Request& request() const { return *request_; }
  const Environment& environment() const { return *environment_; }

  absl::Status Parse(const grpc::ByteBuffer& bytes) { return ParseRequest(bytes, request_); }

  // Lets the call in with this weight, until it is answered. REQUIRES: not called before.
  absl::Status Enter(size_t weight) {
    if (absl::Status entered = environment_->gate->Enter(weight); !entered.ok()) return entered;
    weight_ = weight;
    return absl::OkStatus();
  }

  void Answer(const google::protobuf::Message& message) {
    SerializeResponse(message, response_);
    Close(grpc::Status::OK);
  }
  void Refuse(const absl::Status& status) { Close(ToGrpcStatus(status)); }

 private:
  void Close(const grpc::Status& status) {
    // First out of the gate: once the last call is finished, the services may be gone.
    if (weight_ > 0) environment_->gate->Leave(weight_);
    reactor_->Finish(status);
  }

  const Environment* const environment_;
  grpc::ServerUnaryReactor* const reactor_;
  grpc::ByteBuffer* const response_;
  size_t weight_ = 0;
  google::protobuf::Arena arena_;
  Request* const request_ = google::protobuf::Arena::CreateMessage<Request>(&arena_);
};

namespace internal {

template <typename Response>
void LogGrant(RequestLog* log, absl::string_view rpc, const Response& response) {
  if constexpr (requires { response.manifest(); }) log->Granted(rpc, response.manifest());
}

template <typename Request>
absl::string_view ShardIdOf(const Request& request) {
  if constexpr (requires { request.shard_id(); }) {
    return request.shard_id();
  } else {
    return "";
  }
}

}  // namespace internal

// Runs one unary call of the arbiter. 'validate' is (const Request&) → absl::Status.
template <typename Request, typename Response, typename Validate>
grpc::ServerUnaryReactor* RunUnary(
    const Environment* environment, grpc::CallbackServerContext* context,
    const grpc::ByteBuffer* bytes, grpc::ByteBuffer* response_bytes, absl::string_view rpc,
    LogPolicy policy, Validate validate,
    void (arbiter::Arbiter::*method)(const Request*, arbiter::Arbiter::Callback<Response>)) {
  auto call = std::make_unique<RawCall<Request>>(environment, context, response_bytes);
  grpc::ServerUnaryReactor* const reactor = call->reactor();
  absl::Status ready = call->Enter(1);
  if (ready.ok()) ready = call->Parse(*bytes);
  if (ready.ok()) ready = validate(call->request());
  const Request* const request = &call->request();
  auto finish = [call = std::move(call), rpc, policy](absl::StatusOr<Response> response) {
    RequestLog* const log = call->environment().log;
    if (response.ok()) {
      if (policy == LogPolicy::kGrantsAndRefusals) internal::LogGrant(log, rpc, *response);
      call->Answer(*response);
      return;
    }
    if (policy != LogPolicy::kNothing) {
      log->Refused(rpc, call->request().table(), internal::ShardIdOf(call->request()),
                   response.status());
    }
    call->Refuse(response.status());
  };
  if (!ready.ok()) {
    finish(std::move(ready));
    return reactor;
  }
  (environment->arbiter->*method)(request, std::move(finish));
  return reactor;
}

}  // namespace claimd::rpc

#endif  // CLAIMD_SERVER_RPC_RAW_CALL_H_
