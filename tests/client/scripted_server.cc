#include "tests/client/scripted_server.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include <grpc/grpc.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>
#include <grpcpp/support/status.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "client/src/mutex.h"

// gRPC's header templates are compiled here with ThreadSanitizer, which cannot see how the packaged
// library orders their calls. Each line names a frame below which only gRPC's own code runs, so
// that a race of ours, in a script or in the client, is still found.
// The sanitizer looks for this name.
extern "C" const char* __tsan_default_suppressions();   // NOLINT(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "race_top:grpc::internal::\n"
         "race_top:grpc::ByteBuffer::\n"
         "race:grpc::internal::CallbackWithSuccessTag::Set\n"
         "race:grpc::internal::CallbackWithSuccessTag::Clear\n"
         "race:grpc::internal::CallOp\n"
         "race:ServerCallbackReaderWriterImpl::~\n";
}

namespace claimd::testing {
namespace {

std::string ToString(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) abort();
  return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
}

grpc::Status ToGrpc(const absl::Status& status) {
  google::rpc::Status details;
  details.set_code(static_cast<int>(status.code()));
  details.set_message(std::string(status.message()));
  status.ForEachPayload([&details](absl::string_view url, const absl::Cord& payload) {
    auto* detail = details.add_details();
    detail->set_type_url(std::string(url));
    detail->set_value(std::string(payload));
  });
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      details.details().empty() ? "" : details.SerializeAsString());
}

}  // namespace

Reply Reply::Answer(const google::protobuf::MessageLite& message) {
  return {Kind::kAnswer, message.SerializeAsString(), absl::OkStatus()};
}
Reply Reply::Refuse(absl::Status status) { return {Kind::kRefuse, "", std::move(status)}; }
Reply Reply::Hold() { return {Kind::kHold, "", absl::OkStatus()}; }

void Attach(const std::string& type_name, const google::protobuf::MessageLite& message,
            absl::Status* status) {
  status->SetPayload("type.googleapis.com/" + type_name, absl::Cord(message.SerializeAsString()));
}

absl::Status Refusal(absl::StatusCode code, const std::string& reason,
                     const std::map<std::string, std::string>& metadata) {
  google::rpc::ErrorInfo info;
  info.set_reason(reason);
  info.set_domain("claimd");
  info.mutable_metadata()->insert(metadata.begin(), metadata.end());
  absl::Status status(code, absl::StrCat("refused for ", reason));
  Attach("google.rpc.ErrorInfo", info, &status);
  return status;
}

void AttachRetryDelay(absl::Duration delay, absl::Status* status) {
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(delay));
  Attach("google.rpc.RetryInfo", retry, status);
}

// One call: reads all messages, asks the script, answers. gRPC runs the callbacks one after the
// other but on several threads; ThreadSanitizer cannot see how the packaged gRPC orders them, so
// each begins and ends with HandOver().
class ScriptedServer::Reactor : public grpc::ServerGenericBidiReactor {
 public:
  Reactor(ScriptedServer* server, std::string method)
      : server_(server), method_(std::move(method)) {
    HandOver();
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    HandOver();
    if (ok) {
      messages_.push_back(ToString(incoming_));
      HandOver();
      StartRead(&incoming_);
      return;
    }
    if (messages_.empty()) {
      Finish(grpc::Status::CANCELLED);
      return;
    }
    const Reply reply = server_->Decide(method_, std::move(messages_));
    if (reply.kind == Reply::Kind::kAnswer) {
      grpc::Slice slice(reply.answer);
      outgoing_ = grpc::ByteBuffer(&slice, 1);
      HandOver();
      StartWriteAndFinish(&outgoing_, grpc::WriteOptions(), grpc::Status::OK);
    } else if (reply.kind == Reply::Kind::kRefuse) {
      HandOver();
      Finish(ToGrpc(reply.refusal));
    } else {
      EndWhen(/*now_held=*/true, /*now_cancelled=*/false);
    }
  }

  void OnCancel() override { EndWhen(/*now_held=*/false, /*now_cancelled=*/true); }

  void OnDone() override {
    HandOver();
    delete this;
  }

 private:
  void HandOver() { const internal::MutexLock lock(&mutex_); }

  // A held call ends once it is cancelled, whichever comes first.
  void EndWhen(bool now_held, bool now_cancelled) {
    {
      const internal::MutexLock lock(&mutex_);
      held_ = held_ || now_held;
      cancelled_ = cancelled_ || now_cancelled;
      if (!held_ || !cancelled_) return;
    }
    Finish(grpc::Status::CANCELLED);
  }

  ScriptedServer* const server_;
  const std::string method_;
  std::vector<std::string> messages_;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  internal::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

ScriptedServer::ScriptedServer(Script script, const std::string& address,
                               const std::shared_ptr<grpc::ServerCredentials>& credentials)
    : script_(std::move(script)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, credentials, &port_);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.RegisterCallbackGenericService(this);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port_ == 0) abort();
}

ScriptedServer::~ScriptedServer() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

std::string ScriptedServer::target() const { return absl::StrCat("127.0.0.1:", port_); }

std::vector<SentCall> ScriptedServer::calls(const std::string& method) const {
  const internal::MutexLock lock(&mutex_);
  std::vector<SentCall> result;
  for (const SentCall& call : calls_) {
    if (method.empty() || call.method == method) result.push_back(call);
  }
  return result;
}

grpc::ServerGenericBidiReactor* ScriptedServer::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  const std::string& path = context->method();
  return new Reactor(this, path.substr(path.rfind('/') + 1));
}

Reply ScriptedServer::Decide(const std::string& method, std::vector<std::string> messages) {
  SentCall call{method, std::move(messages), 0};
  {
    const internal::MutexLock lock(&mutex_);
    for (const SentCall& earlier : calls_) call.number += earlier.method == method ? 1 : 0;
    calls_.push_back(call);
  }
  return script_(call);
}

}  // namespace claimd::testing
