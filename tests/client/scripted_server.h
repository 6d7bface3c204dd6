#ifndef CLAIMD_TESTS_CLIENT_SCRIPTED_SERVER_H_
#define CLAIMD_TESTS_CLIENT_SCRIPTED_SERVER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>

#include "client/src/mutex.h"

namespace claimd::testing {

// One call that the scripted server was sent.
struct SentCall {
  // "ClaimEpoch", "Check", …
  std::string method;
  // The messages as they came; one for all but streams.
  std::vector<std::string> messages;
  // 0 for the first call of this method, 1 for the second …
  int number = 0;

  // The first message, parsed. Aborts if it cannot be parsed.
  template <typename Request>
  Request As() const {
    Request request;
    if (messages.empty() || !request.ParseFromString(messages.front())) abort();
    return request;
  }
};

// What to do with a call.
struct Reply {
  enum class Kind { kAnswer, kRefuse, kHold };
  Kind kind = Kind::kHold;
  std::string answer;
  absl::Status refusal;

  static Reply Answer(const google::protobuf::MessageLite& message);
  // The status with its payloads as details, as the real server sends it.
  static Reply Refuse(absl::Status status);
  // Never answers; the call ends when the client gives up or its connection goes.
  static Reply Hold();
};

// A refusal as the real server builds it.
absl::Status Refusal(absl::StatusCode code, const std::string& reason,
                     const std::map<std::string, std::string>& metadata = {});
void AttachRetryDelay(absl::Duration delay, absl::Status* status);
// Attaches any message as the real server does.
void Attach(const std::string& type_name, const google::protobuf::MessageLite& message,
            absl::Status* status);

// A gRPC server on loopback that answers every method by a script and keeps what it was sent.
// Thread-safe. The script runs on gRPC's threads, perhaps several at once.
class ScriptedServer : private grpc::CallbackGenericService {
 public:
  using Script = std::function<Reply(const SentCall&)>;
  explicit ScriptedServer(Script script, const std::string& address = "127.0.0.1:0",
                          const std::shared_ptr<grpc::ServerCredentials>& credentials =
                              grpc::InsecureServerCredentials());
  ~ScriptedServer() override;
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  int port() const { return port_; }
  std::string target() const;

  // All calls so far, or those of one method.
  std::vector<SentCall> calls(const std::string& method = "") const;

 private:
  class Reactor;
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;
  Reply Decide(const std::string& method, std::vector<std::string> messages);

  const Script script_;
  mutable internal::Mutex mutex_;
  std::vector<SentCall> calls_ ABSL_GUARDED_BY(mutex_);
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace claimd::testing

#endif  // CLAIMD_TESTS_CLIENT_SCRIPTED_SERVER_H_
