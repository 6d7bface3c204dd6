#include "server/process/server.h"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include <glog/logging.h>
#include <grpcpp/ext/channelz_service_plugin.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "google/rpc/error_details.pb.h"

#include "server/arbiter/arbiter.h"
#include "server/base/clock.h"
#include "server/base/random.h"
#include "server/base/uuid.h"
#include "server/process/flags.h"
#include "server/process/listen.h"
#include "server/process/version.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/shard_arbiter_service.h"
#include "server/store/manifest_store.h"
#include "server/store/store_factory.h"

namespace claimd::process {
namespace {

// Cancelled calls get this long to end in order.
constexpr std::chrono::milliseconds kCancelGrace{500};
constexpr int kPingIntervalMinMs = 5'000;

// A value that may hold anything, as a log field.
std::string Quoted(absl::string_view value) {
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(value), "\"");
}

void SetTransportOptions(const Config& config, grpc::ServerBuilder* builder) {
  // Two servers on one port would share its calls silently.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->SetMaxReceiveMessageSize(static_cast<int>(config.request_bytes_max));
  // A page or a manifest can pass the default limit; our own limits bound what is sent.
  builder->SetMaxSendMessageSize(std::numeric_limits<int>::max());
  // Clients may ping every 5 s, also when idle, to learn early that a server is gone; more is
  // abuse.
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kPingIntervalMinMs);
}

v1::ServerLimits LimitsOf(const Config& config) {
  v1::ServerLimits limits;
  limits.set_max_manifest_bytes(config.manifest_bytes_max);
  limits.set_max_epoch_jump(config.epoch_jump_max);
  limits.set_history_versions(config.history_versions);
  limits.set_claim_history(config.claim_history);
  return limits;
}

}  // namespace

Server::Server(const Config& config)
    : config_(config), gate_(config.inflight_max), log_(base::SystemClock()) {}

Server::~Server() {
  if (server_ != nullptr) {
    health_.Shutdown();
    server_->Shutdown(std::chrono::system_clock::now());
  }
}

absl::StatusOr<std::unique_ptr<Server>> Server::Open(const Config& config) {
  auto server = absl::WrapUnique(new Server(config));
  if (absl::Status opened = server->OpenStore(); !opened.ok()) return opened;
  return server;
}

absl::Status Server::OpenStore() {
  store::StoreOptions options;
  options.retention = {.history_versions = config_.history_versions,
                       .claim_history = config_.claim_history};
  options.change_log = config_.change_log;
  options.block_cache_bytes = config_.block_cache_bytes;
  options.on_write_failure = [this](const absl::Status& cause) {
    LOG(ERROR) << "msg=\"the store takes no more writes; restart after its disk is well\" cause="
               << Quoted(cause.message());
    health_.SetServing(false);
  };
  absl::StatusOr<std::unique_ptr<store::ManifestStore>> store =
      store::OpenStore(config_.store, std::move(options));
  if (!store.ok()) return store.status();
  store_ = *std::move(store);
  arbiter_ = std::make_unique<arbiter::Arbiter>(
      store_.get(), base::SystemClock(), base::SystemRandom(),
      arbiter::ArbiterOptions{.epoch_jump_max = config_.epoch_jump_max,
                              .manifest_bytes_max = config_.manifest_bytes_max});
  return absl::OkStatus();
}

absl::Status Server::Bind() {
  grpc::EnableDefaultHealthCheckService(false);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::channelz::experimental::InitChannelzService();
  // Reflection resolves what is linked: clients decode the details of our errors.
  google::protobuf::LinkMessageReflection<google::rpc::ErrorInfo>();

  grpc::ServerBuilder builder;
  SetTransportOptions(config_, &builder);
  std::vector<int> ports(config_.listen.size(), 0);
  for (size_t i = 0; i < config_.listen.size(); ++i) {
    if (absl::Status is_free = CheckUnixSocketFree(config_.listen[i]); !is_free.ok())
      return is_free;
    builder.AddListeningPort(config_.listen[i], grpc::InsecureServerCredentials(), &ports[i]);
  }
  builder.RegisterService(&health_);
  builder.RegisterService(shard_arbiter_service_.get());
  builder.RegisterService(admin_service_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", absl::StrJoin(config_.listen, ", "),
                     "; is another process listening there, or the address not of this machine?"));
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    addresses_.push_back(WithPort(config_.listen[i], ports[i]));
  }
  return absl::OkStatus();
}

void Server::MakeServices() {
  const rpc::Environment environment{.arbiter = arbiter_.get(), .gate = &gate_, .log = &log_};
  shard_arbiter_service_ = rpc::MakeShardArbiterService(environment);
  admin_service_ = rpc::MakeAdminService(
      environment, store_.get(),
      {.version = kVersion, .start_time = base::SystemClock()->Now(), .limits = LimitsOf(config_)});
}

absl::Status Server::Listen() {
  MakeServices();
  return Bind();
}

absl::Status Server::Announce() {
  health_.SetServing(true);
  // A store that failed meanwhile has said so already, and must not be overruled.
  if (!store_->Health().ok()) health_.SetServing(false);
  const store::StoreInfo info = store_->Info();
  LOG(INFO) << "msg=serving version=" << kVersion << " listen=" << absl::StrJoin(addresses_, ",")
            << " store=" << Quoted(config_.store) << " store_id=" << base::FormatUuid(info.store_id)
            << " revision=" << info.revision;
  if (config_.ready_file.empty()) return absl::OkStatus();
  return WriteFileAtomically(config_.ready_file,
                             absl::StrCat(absl::StrJoin(addresses_, "\n"), "\n"));
}

void Server::Drain() {
  LOG(INFO) << "msg=draining timeout=" << absl::FormatDuration(config_.drain_timeout);
  if (!config_.ready_file.empty()) std::remove(config_.ready_file.c_str());
  // Whoever hears of NOT_SERVING must find the gate closed.
  gate_.StartDraining();
  health_.SetServing(false);
  if (absl::Status idle = gate_.AwaitIdle(config_.drain_timeout); !idle.ok()) {
    LOG(WARNING) << "msg=\"drain timeout, cancelling the rest\" cause=" << Quoted(idle.message());
  }
  health_.Shutdown();
  // What is left are calls past the timeout, and streams of reflection that would go on for ever.
  server_->Shutdown(std::chrono::system_clock::now() + kCancelGrace);
  server_.reset();
  LOG(INFO) << "msg=stopped";
}

}  // namespace claimd::process
