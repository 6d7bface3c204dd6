#ifndef CLAIMD_TESTS_E2E_HARNESS_CLIENT_H_
#define CLAIMD_TESTS_E2E_HARNESS_CLIENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "claimd/v1/admin.grpc.pb.h"
#include "claimd/v1/shard_arbiter.grpc.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace claimd::e2e {

// What a call was answered.
template <typename Response>
struct Answer {
  grpc::Status status;
  Response response;

  bool ok() const { return status.ok(); }
};

// A shard under test.
struct Shard {
  std::string table;
  std::string id;
};

std::string RandomUuid();
// A shard that nobody has heard of.
Shard FreshShard(const std::string& table = "orders");

// An empty request for one shard.
template <typename Request>
Request For(const Shard& shard) {
  Request request;
  request.set_table(shard.table);
  request.set_shard_id(shard.id);
  return request;
}
v1::ClaimEpochRequest ClaimOf(const Shard& shard, const std::string& claimant,
                              std::optional<uint32_t> shard_spec_id = std::nullopt);
// The commit that follows 'stored' and changes nothing but its hint of the newest log position.
v1::CommitManifestRequest CommitAfter(const v1::ShardManifest& stored);
// The commit of a flush: the next generation becomes an sstable.
v1::CommitManifestRequest FlushAfter(const v1::ShardManifest& stored);

// A channel of its own (no connection is shared), without proxy, that reconnects at once.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& address);

// Blocking calls to one server, each with a deadline far away. Thread-safe.
class Client {
 public:
  explicit Client(const std::string& address);

  Answer<v1::ClaimEpochResponse> Call(const v1::ClaimEpochRequest& request) const;
  Answer<v1::BatchClaimEpochResponse> Call(const v1::BatchClaimEpochRequest& request) const;
  Answer<v1::InitializeShardResponse> Call(const v1::InitializeShardRequest& request) const;
  Answer<v1::CheckFenceResponse> Call(const v1::CheckFenceRequest& request) const;
  Answer<v1::CommitManifestResponse> Call(const v1::CommitManifestRequest& request) const;
  Answer<v1::ReleaseEpochResponse> Call(const v1::ReleaseEpochRequest& request) const;
  Answer<v1::GetManifestResponse> Call(const v1::GetManifestRequest& request) const;
  Answer<v1::ListShardsResponse> Call(const v1::ListShardsRequest& request) const;
  Answer<v1::ListManifestVersionsResponse> Call(
      const v1::ListManifestVersionsRequest& request) const;
  Answer<v1::ListClaimsResponse> Call(const v1::ListClaimsRequest& request) const;
  Answer<v1::SealShardResponse> Call(const v1::SealShardRequest& request) const;
  Answer<v1::UnsealShardResponse> Call(const v1::UnsealShardRequest& request) const;
  Answer<v1::DropShardResponse> Call(const v1::DropShardRequest& request) const;
  Answer<v1::GetServerInfoResponse> Call(const v1::GetServerInfoRequest& request) const;
  Answer<grpc::health::v1::HealthCheckResponse> Call(
      const grpc::health::v1::HealthCheckRequest& request) const;
  Answer<v1::ImportManifestsResponse> Import(const std::vector<v1::ShardManifest>& manifests) const;

  // Short forms.
  Answer<v1::ClaimEpochResponse> Claim(const Shard& shard, const std::string& claimant,
                                       std::optional<uint32_t> shard_spec_id = std::nullopt) const;
  Answer<v1::GetManifestResponse> Get(const Shard& shard) const;
  Answer<v1::CheckFenceResponse> CheckFence(const Shard& shard, uint64_t writer_epoch) const;
  Answer<v1::SealShardResponse> Seal(const Shard& shard) const;
  Answer<v1::UnsealShardResponse> Unseal(const Shard& shard) const;
  Answer<v1::DropShardResponse> Drop(const Shard& shard) const;

  // A unary call with bytes that need not be a message. 'method' as "/claimd.v1.ShardArbiter/…".
  grpc::Status CallRaw(const std::string& method, const std::string& request_bytes) const;

  v1::ShardArbiter::Stub& arbiter() const { return *arbiter_; }
  v1::Admin::Stub& admin() const { return *admin_; }
  grpc::health::v1::Health::Stub& health() const { return *health_; }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::ShardArbiter::Stub> arbiter_;
  const std::unique_ptr<v1::Admin::Stub> admin_;
  const std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace claimd::e2e

#endif  // CLAIMD_TESTS_E2E_HARNESS_CLIENT_H_
