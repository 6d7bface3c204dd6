#include "client/src/channels.h"

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <netinet/in.h>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include <grpc/grpc.h>
#include <grpcpp/channel.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include "claimd/options.h"

namespace claimd::internal {
namespace {

// gRPC waits up to two minutes between attempts to connect if nobody says otherwise.
constexpr int kReconnectBackoffMaxMs = 2'000;
constexpr int kReconnectBackoffInitialMs = 100;
// How long one attempt to connect may take, such as to an address that swallows packets.
constexpr int kConnectTimeoutMs = 5'000;
constexpr int kNameResolutionIntervalMs = 2'000;
// Answers are bounded by the server; this only guards against one that is broken.
constexpr int kReceivedMessageBytesMax = 64 << 20;
// Error details travel in trailers. The server keeps them small, proxies add their own.
constexpr int kMetadataBytesMax = 32 << 10;

enum class Family { kIpv4, kIpv6, kOther };

struct HostPort {
  std::string host;
  std::string port;
};

// Takes "host:port" and "[ipv6]:port" apart.
absl::StatusOr<HostPort> SplitHostPort(absl::string_view target) {
  HostPort split;
  const size_t colon = target.rfind(':');
  if (colon == absl::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat("target \"", target, "\" has no port"));
  }
  absl::string_view host = target.substr(0, colon);
  split.port = std::string(target.substr(colon + 1));
  int port = 0;
  if (!absl::SimpleAtoi(split.port, &port) || port < 1 || port > 65'535) {
    return absl::InvalidArgumentError(
        absl::StrCat("target \"", target, "\" does not end in a port from 1 to 65535"));
  }
  const bool bracketed = absl::ConsumePrefix(&host, "[") && absl::ConsumeSuffix(&host, "]");
  if (host.empty() || (!bracketed && absl::StrContains(host, ':'))) {
    return absl::InvalidArgumentError(
        absl::StrCat("target \"", target, "\" is neither host:port nor [ipv6]:port"));
  }
  split.host = std::string(host);
  return split;
}

bool HasScheme(absl::string_view target) {
  constexpr std::array<absl::string_view, 5> kSchemes = {
      "dns:", "ipv4:", "ipv6:", "unix:", "unix-abstract:"};
  for (const absl::string_view scheme : kSchemes) {
    if (absl::StartsWith(target, scheme)) return true;
  }
  return absl::StrContains(target, "://");
}

struct ParsedTarget {
  Family family = Family::kOther;
  // The bare address for a literal one, else a gRPC target.
  std::string text;
};

absl::StatusOr<ParsedTarget> ParseTarget(absl::string_view target) {
  if (target.empty() || absl::StrContains(target, ' ')) {
    return absl::InvalidArgumentError(
        absl::StrCat("target \"", target, "\" is empty or has a space in it"));
  }
  absl::string_view rest = target;
  if (absl::ConsumePrefix(&rest, "ipv4:")) return ParsedTarget{Family::kIpv4, std::string(rest)};
  if (absl::ConsumePrefix(&rest, "ipv6:")) return ParsedTarget{Family::kIpv6, std::string(rest)};
  if (HasScheme(target)) return ParsedTarget{Family::kOther, std::string(target)};

  absl::StatusOr<HostPort> split = SplitHostPort(target);
  if (!split.ok()) return split.status();
  in_addr ipv4{};
  in6_addr ipv6{};
  if (inet_pton(AF_INET, split->host.c_str(), &ipv4) == 1) {
    return ParsedTarget{Family::kIpv4, std::string(target)};
  }
  if (inet_pton(AF_INET6, split->host.c_str(), &ipv6) == 1) {
    return ParsedTarget{Family::kIpv6, std::string(target)};
  }
  return ParsedTarget{Family::kOther, absl::StrCat("dns:///", target)};
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  if (!file || content.str().empty()) {
    const int error = errno;
    if (error == 0) return absl::InvalidArgumentError(absl::StrCat("TLS file ", path, " is empty"));
    return absl::ErrnoToStatus(error, absl::StrCat("cannot read TLS file ", path));
  }
  return content.str();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(
    const ClientOptions& options) {
  if (!options.tls.has_value()) return grpc::InsecureChannelCredentials();
  const TlsOptions& tls = *options.tls;
  if (tls.certificate_file.empty() != tls.key_file.empty()) {
    return absl::InvalidArgumentError(
        "TLS needs both certificate_file and key_file, or neither of them");
  }
  grpc::SslCredentialsOptions ssl;
  const std::array<std::pair<const std::string*, std::string*>, 3> files = {{
      {&tls.ca_file, &ssl.pem_root_certs},
      {&tls.certificate_file, &ssl.pem_cert_chain},
      {&tls.key_file, &ssl.pem_private_key},
  }};
  for (const auto& [path, content] : files) {
    errno = 0;
    absl::StatusOr<std::string> read = ReadFile(*path);
    if (!read.ok()) return read.status();
    *content = *std::move(read);
  }
  return grpc::SslCredentials(ssl);
}

grpc::ChannelArguments Arguments(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetLoadBalancingPolicyName("round_robin");
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // Retries are decided in retry.h, where one request id covers all of them.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectBackoffInitialMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectBackoffMaxMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, kNameResolutionIntervalMs);
  // A client's connections are its own, and go when it goes.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(options.keepalive.time)));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                   static_cast<int>(absl::ToInt64Milliseconds(options.keepalive.timeout)));
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytesMax);
  arguments.SetMaxReceiveMessageSize(kReceivedMessageBytesMax);
  arguments.SetUserAgentPrefix("claimd-client");
  if (options.tls.has_value() && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  return arguments;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> GrpcTargets(const std::vector<std::string>& targets,
                                                     Grouping grouping) {
  if (targets.empty()) return absl::InvalidArgumentError("no target is given");
  std::vector<std::string> ipv4;
  std::vector<std::string> ipv6;
  std::vector<std::string> result;
  for (const std::string& target : targets) {
    absl::StatusOr<ParsedTarget> parsed = ParseTarget(target);
    if (!parsed.ok()) return parsed.status();
    const absl::string_view scheme = parsed->family == Family::kIpv4   ? "ipv4:"
                                     : parsed->family == Family::kIpv6 ? "ipv6:"
                                                                       : "";
    if (parsed->family == Family::kOther || grouping == Grouping::kForbidden) {
      result.push_back(absl::StrCat(scheme, parsed->text));
    } else {
      (parsed->family == Family::kIpv4 ? ipv4 : ipv6).push_back(parsed->text);
    }
  }
  if (!ipv4.empty()) result.push_back(absl::StrCat("ipv4:", absl::StrJoin(ipv4, ",")));
  if (!ipv6.empty()) result.push_back(absl::StrCat("ipv6:", absl::StrJoin(ipv6, ",")));
  return result;
}

Link::Link(std::shared_ptr<grpc::Channel> connection)
    : channel(std::move(connection)),
      arbiter(v1::ShardArbiter::NewStub(channel)),
      admin(v1::Admin::NewStub(channel)),
      health(grpc::health::v1::Health::NewStub(channel)) {}

absl::StatusOr<std::unique_ptr<Channels>> Channels::Open(const ClientOptions& options) {
  // A certificate is checked against the target's host, so each address needs a target of its own.
  const bool checks_host = options.tls.has_value() && options.tls->server_name.empty();
  absl::StatusOr<std::vector<std::string>> targets =
      GrpcTargets(options.targets, checks_host ? Grouping::kForbidden : Grouping::kAllowed);
  if (!targets.ok()) return targets.status();
  absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> credentials = Credentials(options);
  if (!credentials.ok()) return credentials.status();

  std::vector<std::unique_ptr<Link>> links;
  for (const std::string& target : *targets) {
    links.push_back(std::make_unique<Link>(
        grpc::CreateCustomChannel(target, *credentials, Arguments(options))));
  }
  return std::unique_ptr<Channels>(new Channels(std::move(links)));
}

void Channels::WaitFor(absl::Duration duration) {
  const auto deadline = std::chrono::system_clock::now() + absl::ToChronoMicroseconds(duration);
  grpc::CompletionQueue events;
  const auto watch = [&events, deadline](const Link& link) {
    const grpc_connectivity_state state = link.channel->GetState(/*try_to_connect=*/true);
    link.channel->NotifyOnStateChange(state, deadline, &events,
                                      const_cast<Link*>(&link));  // Only ever read.
  };
  for (const auto& link : links_) watch(*link);
  void* tag = nullptr;
  bool changed = false;
  for (size_t watched = links_.size(); watched > 0 && events.Next(&tag, &changed);) {
    if (changed) {
      watch(*static_cast<const Link*>(tag));
    } else {
      --watched;
    }
  }
  events.Shutdown();
  while (events.Next(&tag, &changed)) continue;
}

const Link& Channels::Pick() {
  const size_t first = next_.fetch_add(1, std::memory_order_relaxed);
  const Link* hopeful = nullptr;
  for (size_t i = 0; links_.size() > 1 && i < links_.size(); ++i) {
    const Link& link = *links_[(first + i) % links_.size()];
    const grpc_connectivity_state state = link.channel->GetState(/*try_to_connect=*/true);
    if (state == GRPC_CHANNEL_READY) return link;
    if (state != GRPC_CHANNEL_TRANSIENT_FAILURE && hopeful == nullptr) hopeful = &link;
  }
  return hopeful != nullptr ? *hopeful : *links_[first % links_.size()];
}

}  // namespace claimd::internal
