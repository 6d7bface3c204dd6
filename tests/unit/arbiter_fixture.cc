#include "tests/unit/arbiter_fixture.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "claimd/v1/shard_arbiter.pb.h"

#include "server/arbiter/arbiter.h"

namespace claimd::testing {
namespace {

using arbiter::Arbiter;

// Calls a method of the arbiter and gives what its callback was given.
template <typename Request, typename Response>
absl::StatusOr<Response> Call(Arbiter* arbiter,
                              void (Arbiter::*method)(const Request*, Arbiter::Callback<Response>),
                              const Request& request) {
  absl::StatusOr<Response> answer = absl::UnknownError("never answered");
  (arbiter->*method)(&request, [&answer](absl::StatusOr<Response> result) {
    if (answer.status().code() != absl::StatusCode::kUnknown) std::abort();
    answer = std::move(result);
  });
  return answer;
}

template <typename Request>
Request With(const std::string& request_id) {
  auto request = About<Request>();
  request.set_request_id(request_id);
  return request;
}

}  // namespace

std::array<uint8_t, 16> CountingRandom::Bytes16() {
  std::array<uint8_t, 16> bytes{};
  const uint64_t count = ++count_;
  std::memcpy(bytes.data(), &count, sizeof(count));
  return bytes;
}

v1::ClaimEpochRequest ClaimRequest(uint32_t spec, const std::string& request_id) {
  auto request = With<v1::ClaimEpochRequest>(request_id);
  request.set_shard_spec_id(spec);
  request.set_claimant("me");
  return request;
}

SyncArbiter::SyncArbiter(store::ManifestStore* store, arbiter::ArbiterOptions options)
    : arbiter_(store, &clock_, &random_, options) {}

absl::StatusOr<v1::ClaimEpochResponse> SyncArbiter::Claim(const v1::ClaimEpochRequest& request) {
  return Call(&arbiter_, &Arbiter::ClaimEpoch, request);
}

absl::StatusOr<v1::ClaimEpochResponse> SyncArbiter::Claim(uint32_t spec,
                                                          const std::string& request_id) {
  return Claim(ClaimRequest(spec, request_id));
}

absl::StatusOr<v1::InitializeShardResponse> SyncArbiter::Initialize(uint32_t spec) {
  auto request = About<v1::InitializeShardRequest>();
  request.set_shard_spec_id(spec);
  return Call(&arbiter_, &Arbiter::InitializeShard, request);
}

absl::StatusOr<v1::CheckFenceResponse> SyncArbiter::CheckFence(uint64_t epoch) {
  auto request = About<v1::CheckFenceRequest>();
  request.set_writer_epoch(epoch);
  return Call(&arbiter_, &Arbiter::CheckFence, request);
}

absl::StatusOr<v1::CommitManifestResponse> SyncArbiter::Commit(uint64_t epoch,
                                                               const std::string& note,
                                                               const std::string& request_id) {
  absl::StatusOr<v1::ShardManifest> manifest = Get();
  if (!manifest.ok()) return manifest.status();
  auto request = With<v1::CommitManifestRequest>(request_id);
  request.set_writer_epoch(epoch);
  *request.mutable_manifest() = *std::move(manifest);
  request.mutable_manifest()->set_version(request.manifest().version() + 1);
  (*request.mutable_manifest()->mutable_annotations())["note"] = note;
  return Commit(request);
}

absl::StatusOr<v1::CommitManifestResponse> SyncArbiter::Commit(
    const v1::CommitManifestRequest& request) {
  return Call(&arbiter_, &Arbiter::CommitManifest, request);
}

absl::StatusOr<v1::ReleaseEpochResponse> SyncArbiter::Release(uint64_t epoch,
                                                              const std::string& request_id) {
  auto request = With<v1::ReleaseEpochRequest>(request_id);
  request.set_writer_epoch(epoch);
  return Call(&arbiter_, &Arbiter::ReleaseEpoch, request);
}

absl::StatusOr<v1::SealShardResponse> SyncArbiter::Seal(const std::string& request_id) {
  return Call(&arbiter_, &Arbiter::SealShard, With<v1::SealShardRequest>(request_id));
}

absl::StatusOr<v1::UnsealShardResponse> SyncArbiter::Unseal(const std::string& request_id) {
  return Call(&arbiter_, &Arbiter::UnsealShard, With<v1::UnsealShardRequest>(request_id));
}

absl::StatusOr<v1::DropShardResponse> SyncArbiter::Drop(const std::string& request_id) {
  return Call(&arbiter_, &Arbiter::DropShard, With<v1::DropShardRequest>(request_id));
}

absl::StatusOr<v1::ShardManifest> SyncArbiter::Get() {
  auto answer = Call(&arbiter_, &Arbiter::GetManifest, About<v1::GetManifestRequest>());
  if (!answer.ok()) return answer.status();
  return std::move(*answer->mutable_manifest());
}

absl::StatusOr<v1::ListClaimsResponse> SyncArbiter::ListClaims(
    const v1::ListClaimsRequest& request) {
  return Call(&arbiter_, &Arbiter::ListClaims, request);
}

absl::StatusOr<v1::ListShardsResponse> SyncArbiter::ListShards(
    const v1::ListShardsRequest& request) {
  return Call(&arbiter_, &Arbiter::ListShards, request);
}

absl::StatusOr<v1::ListManifestVersionsResponse> SyncArbiter::ListVersions(
    const v1::ListManifestVersionsRequest& request) {
  return Call(&arbiter_, &Arbiter::ListManifestVersions, request);
}

}  // namespace claimd::testing
