#include "tests/e2e/harness/client.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "claimd/v1/admin.grpc.pb.h"
#include "claimd/v1/shard_arbiter.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace claimd::e2e {
namespace {

constexpr std::chrono::seconds kDeadline{60};
constexpr int kMessageBytesMax = 64 << 20;
constexpr int kReconnectMsMax = 200;

template <typename Stub, typename Request, typename Response>
Answer<Response> Unary(Stub& stub,
                       grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                    Response*),
                       const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  Answer<Response> answer;
  answer.status = (stub.*method)(&context, request, &answer.response);
  return answer;
}

using Arbiter = v1::ShardArbiter::Stub;

}  // namespace

std::string RandomUuid() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  constexpr size_t kWord = sizeof(uint64_t);
  std::string bytes;
  while (bytes.size() < 2 * kWord) {
    const uint64_t word = generator();
    bytes.append(reinterpret_cast<const char*>(&word), kWord);
  }
  bytes[6] = static_cast<char>((static_cast<unsigned char>(bytes[6]) & 0x0FU) | 0x40U);
  bytes[8] = static_cast<char>((static_cast<unsigned char>(bytes[8]) & 0x3FU) | 0x80U);
  const std::string hex = absl::BytesToHexString(bytes);
  const absl::string_view digits = hex;
  return absl::StrCat(digits.substr(0, 8), "-", digits.substr(8, 4), "-", digits.substr(12, 4), "-",
                      digits.substr(16, 4), "-", digits.substr(20));
}

Shard FreshShard(const std::string& table) { return Shard{table, RandomUuid()}; }

v1::ClaimEpochRequest ClaimOf(const Shard& shard, const std::string& claimant,
                              std::optional<uint32_t> shard_spec_id) {
  auto request = For<v1::ClaimEpochRequest>(shard);
  request.set_claimant(claimant);
  if (shard_spec_id.has_value()) request.set_shard_spec_id(*shard_spec_id);
  return request;
}

v1::CommitManifestRequest CommitAfter(const v1::ShardManifest& stored) {
  v1::CommitManifestRequest request;
  request.set_table(stored.table());
  request.set_shard_id(stored.shard_id());
  request.set_writer_epoch(stored.writer_epoch());
  *request.mutable_manifest() = stored;
  request.mutable_manifest()->set_version(stored.version() + 1);
  request.mutable_manifest()->set_wal_entry_position_last_seen(
      stored.wal_entry_position_last_seen() + 1);
  return request;
}

v1::CommitManifestRequest FlushAfter(const v1::ShardManifest& stored) {
  v1::CommitManifestRequest request = CommitAfter(stored);
  v1::ShardManifest* next = request.mutable_manifest();
  v1::SsTable* sstable = next->add_sstables();
  sstable->set_generation(stored.current_generation());
  sstable->set_path(absl::StrCat("gen_", stored.current_generation()));
  sstable->set_physical_rows(0);
  next->set_current_generation(stored.current_generation() + 1);
  next->set_replay_after_wal_entry_position(next->wal_entry_position_last_seen());
  return request;
}

std::shared_ptr<grpc::Channel> NewChannel(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMsMax);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kReconnectMsMax);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMsMax);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  arguments.SetMaxSendMessageSize(kMessageBytesMax);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

Client::Client(const std::string& address)
    : channel_(NewChannel(address)),
      arbiter_(v1::ShardArbiter::NewStub(channel_)),
      admin_(v1::Admin::NewStub(channel_)),
      health_(grpc::health::v1::Health::NewStub(channel_)) {}

Answer<v1::ClaimEpochResponse> Client::Call(const v1::ClaimEpochRequest& request) const {
  return Unary(*arbiter_, &Arbiter::ClaimEpoch, request);
}
Answer<v1::BatchClaimEpochResponse> Client::Call(const v1::BatchClaimEpochRequest& request) const {
  return Unary(*arbiter_, &Arbiter::BatchClaimEpoch, request);
}
Answer<v1::InitializeShardResponse> Client::Call(const v1::InitializeShardRequest& request) const {
  return Unary(*arbiter_, &Arbiter::InitializeShard, request);
}
Answer<v1::CheckFenceResponse> Client::Call(const v1::CheckFenceRequest& request) const {
  return Unary(*arbiter_, &Arbiter::CheckFence, request);
}
Answer<v1::CommitManifestResponse> Client::Call(const v1::CommitManifestRequest& request) const {
  return Unary(*arbiter_, &Arbiter::CommitManifest, request);
}
Answer<v1::ReleaseEpochResponse> Client::Call(const v1::ReleaseEpochRequest& request) const {
  return Unary(*arbiter_, &Arbiter::ReleaseEpoch, request);
}
Answer<v1::GetManifestResponse> Client::Call(const v1::GetManifestRequest& request) const {
  return Unary(*arbiter_, &Arbiter::GetManifest, request);
}
Answer<v1::ListShardsResponse> Client::Call(const v1::ListShardsRequest& request) const {
  return Unary(*arbiter_, &Arbiter::ListShards, request);
}
Answer<v1::ListManifestVersionsResponse> Client::Call(
    const v1::ListManifestVersionsRequest& request) const {
  return Unary(*arbiter_, &Arbiter::ListManifestVersions, request);
}
Answer<v1::ListClaimsResponse> Client::Call(const v1::ListClaimsRequest& request) const {
  return Unary(*arbiter_, &Arbiter::ListClaims, request);
}
Answer<v1::SealShardResponse> Client::Call(const v1::SealShardRequest& request) const {
  return Unary(*arbiter_, &Arbiter::SealShard, request);
}
Answer<v1::UnsealShardResponse> Client::Call(const v1::UnsealShardRequest& request) const {
  return Unary(*arbiter_, &Arbiter::UnsealShard, request);
}
Answer<v1::DropShardResponse> Client::Call(const v1::DropShardRequest& request) const {
  return Unary(*arbiter_, &Arbiter::DropShard, request);
}
Answer<v1::GetServerInfoResponse> Client::Call(const v1::GetServerInfoRequest& request) const {
  return Unary(*admin_, &v1::Admin::Stub::GetServerInfo, request);
}
Answer<grpc::health::v1::HealthCheckResponse> Client::Call(
    const grpc::health::v1::HealthCheckRequest& request) const {
  return Unary(*health_, &grpc::health::v1::Health::Stub::Check, request);
}

Answer<v1::ImportManifestsResponse> Client::Import(
    const std::vector<v1::ShardManifest>& manifests) const {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  Answer<v1::ImportManifestsResponse> answer;
  const auto writer = admin_->ImportManifests(&context, &answer.response);
  for (const v1::ShardManifest& manifest : manifests) {
    v1::ImportManifestsRequest request;
    *request.mutable_manifest() = manifest;
    if (!writer->Write(request)) break;
  }
  writer->WritesDone();
  answer.status = writer->Finish();
  return answer;
}

Answer<v1::ClaimEpochResponse> Client::Claim(const Shard& shard, const std::string& claimant,
                                             std::optional<uint32_t> shard_spec_id) const {
  return Call(ClaimOf(shard, claimant, shard_spec_id));
}
Answer<v1::GetManifestResponse> Client::Get(const Shard& shard) const {
  return Call(For<v1::GetManifestRequest>(shard));
}
Answer<v1::CheckFenceResponse> Client::CheckFence(const Shard& shard, uint64_t writer_epoch) const {
  auto request = For<v1::CheckFenceRequest>(shard);
  request.set_writer_epoch(writer_epoch);
  return Call(request);
}
Answer<v1::SealShardResponse> Client::Seal(const Shard& shard) const {
  return Call(For<v1::SealShardRequest>(shard));
}
Answer<v1::UnsealShardResponse> Client::Unseal(const Shard& shard) const {
  return Call(For<v1::UnsealShardRequest>(shard));
}
Answer<v1::DropShardResponse> Client::Drop(const Shard& shard) const {
  return Call(For<v1::DropShardRequest>(shard));
}

grpc::Status Client::CallRaw(const std::string& method, const std::string& request_bytes) const {
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  const grpc::Slice slice(request_bytes);
  const grpc::ByteBuffer request(&slice, 1);
  grpc::ByteBuffer response;
  grpc::Status result;
  absl::Notification done;
  stub.UnaryCall(&context, method, grpc::StubOptions(), &request, &response,
                 [&](const grpc::Status& status) {
                   result = status;
                   done.Notify();
                 });
  done.WaitForNotification();
  return result;
}

}  // namespace claimd::e2e
