#include "claimd/client.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "claimd/v1/shard_arbiter.pb.h"

#include "claimd/options.h"
#include "claimd/range.h"
#include "claimd/shard_claim.h"
#include "claimd/types.h"
#include "client/src/claim_state.h"
#include "client/src/convert.h"
#include "client/src/core.h"
#include "client/src/environment.h"

namespace claimd {
namespace {

using Arbiter = v1::ShardArbiter::Stub;

// A request about one shard.
template <typename Request>
Request About(const std::string& table, const std::string& shard_id) {
  Request request;
  request.set_table(table);
  request.set_shard_id(shard_id);
  return request;
}

// The manifest that a call answers.
template <typename Response>
absl::StatusOr<ShardManifest> ManifestOf(const absl::StatusOr<Response>& response) {
  if (!response.ok()) return response.status();
  return internal::FromProto(response->manifest());
}

v1::ShardView ToProto(ShardView view) {
  return view == ShardView::kFull ? v1::SHARD_VIEW_FULL : v1::SHARD_VIEW_BASIC;
}

// A listing: 'method' called again and again with 'request' and the token of the next page; 'items'
// takes the elements of a response.
template <typename Element, typename Method, typename Request, typename Items>
Range<Element> ListWith(std::shared_ptr<internal::Core> core, Method method, Request request,
                        CallOptions options, Items items) {
  return Range<Element>([core = std::move(core), method, request = std::move(request),
                         options = std::move(options), items](const std::string& page_token) mutable
                        -> absl::StatusOr<typename Range<Element>::Page> {
    request.set_page_token(page_token);
    const auto response = core->Read(method, request, core->DeadlineOf(options));
    if (!response.ok()) return response.status();
    typename Range<Element>::Page page;
    for (const auto& item : items(*response)) page.items.push_back(internal::FromProto(item));
    page.next_page_token = response->next_page_token();
    return page;
  });
}

constexpr int kPageSize = 500;

}  // namespace

Client::Client(std::shared_ptr<internal::Core> core) : core_(std::move(core)) {}

absl::StatusOr<Client> Client::Connect(ClientOptions options) {
  absl::StatusOr<std::shared_ptr<internal::Core>> core =
      internal::Core::Make(std::move(options), internal::SystemEnvironment());
  if (!core.ok()) return core.status();
  return Client(*std::move(core));
}

absl::StatusOr<ShardClaim> Client::Claim(const std::string& table, const std::string& shard_id,
                                         std::optional<uint32_t> shard_spec_id,
                                         const ClaimOptions& claim,
                                         const CallOptions& options) const {
  const ClaimTarget target{.table = table,
                           .shard_id = shard_id,
                           .shard_spec_id = shard_spec_id,
                           .options = claim,
                           .request_id = options.request_id};
  const auto response = core_->Mutate(
      &Arbiter::ClaimEpoch, internal::MakeClaimRequest(*core_, target), core_->DeadlineOf(options));
  if (!response.ok()) return response.status();
  return internal::MakeClaim(core_, target, *response);
}

std::vector<absl::StatusOr<ShardClaim>> Client::ClaimAll(const std::vector<ClaimTarget>& shards,
                                                         const CallOptions& options) const {
  return internal::ClaimAll(core_, shards, core_->DeadlineOf(options));
}

absl::StatusOr<ShardClaim> Client::Attach(const std::string& table, const std::string& shard_id,
                                          std::optional<uint64_t> epoch,
                                          const CallOptions& options) const {
  absl::StatusOr<ShardManifest> manifest = Get(table, shard_id, std::nullopt, options);
  if (!manifest.ok()) return manifest.status();
  if (epoch.has_value() && manifest->writer_epoch != *epoch) {
    // The server's refusal names both epochs and the holder.
    const absl::StatusOr<FenceCheck> fence = CheckFence(table, shard_id, *epoch, options);
    if (!fence.ok()) return fence.status();
    return absl::AbortedError(
        absl::StrCat("The epoch of shard ", shard_id, " changed while it was read."));
  }
  if (manifest->writer_epoch == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("Shard ", shard_id, " was never claimed, so there is no epoch to join."));
  }
  internal::ClaimState::Grant grant;
  grant.epoch = manifest->writer_epoch;
  grant.manifest = *std::move(manifest);
  return internal::Access::MakeClaim(
      std::make_shared<internal::ClaimState>(core_, std::move(grant)));
}

absl::StatusOr<ShardManifest> Client::Initialize(const std::string& table,
                                                 const std::string& shard_id,
                                                 std::optional<uint32_t> shard_spec_id,
                                                 const InitializeOptions& identity,
                                                 const CallOptions& options) const {
  auto request = About<v1::InitializeShardRequest>(table, shard_id);
  if (shard_spec_id.has_value()) request.set_shard_spec_id(*shard_spec_id);
  request.mutable_shard_field_values()->insert(identity.shard_field_values.begin(),
                                               identity.shard_field_values.end());
  request.set_shard_spec_fingerprint(identity.shard_spec_fingerprint);
  // Carries no request id: making a shard that is there already is answered with what is there.
  return ManifestOf(core_->Read(&Arbiter::InitializeShard, request, core_->DeadlineOf(options)));
}

absl::StatusOr<ShardManifest> Client::Get(const std::string& table, const std::string& shard_id,
                                          std::optional<uint64_t> version,
                                          const CallOptions& options) const {
  auto request = About<v1::GetManifestRequest>(table, shard_id);
  if (version.has_value()) request.set_version(*version);
  return ManifestOf(core_->Read(&Arbiter::GetManifest, request, core_->DeadlineOf(options)));
}

absl::StatusOr<FenceCheck> Client::CheckFence(const std::string& table, const std::string& shard_id,
                                              uint64_t epoch, const CallOptions& options) const {
  auto request = About<v1::CheckFenceRequest>(table, shard_id);
  request.set_writer_epoch(epoch);
  const auto response = core_->Read(&Arbiter::CheckFence, request, core_->DeadlineOf(options));
  if (!response.ok()) return response.status();
  FenceCheck check;
  check.version = response->version();
  if (response->has_claim()) check.claim = internal::FromProto(response->claim());
  return check;
}

absl::StatusOr<ShardManifest> Client::Release(const std::string& table, const std::string& shard_id,
                                              uint64_t epoch, const CallOptions& options) const {
  auto request = About<v1::ReleaseEpochRequest>(table, shard_id);
  request.set_writer_epoch(epoch);
  request.set_request_id(core_->RequestIdFor(options));
  return ManifestOf(core_->Mutate(&Arbiter::ReleaseEpoch, request, core_->DeadlineOf(options)));
}

Range<ShardManifest> Client::List(const std::string& table, const ListOptions& list,
                                  const CallOptions& options) const {
  v1::ListShardsRequest request;
  request.set_table(table);
  if (list.status.has_value()) request.set_status(internal::ToProto(*list.status));
  request.set_claimant(list.claimant);
  if (list.shard_spec_id.has_value()) request.set_shard_spec_id(*list.shard_spec_id);
  request.set_page_size(list.page_size);
  request.set_view(ToProto(list.view));
  return ListWith<ShardManifest>(
      core_, &Arbiter::ListShards, std::move(request), options,
      [](const v1::ListShardsResponse& page) -> const auto& { return page.shards(); });
}

Range<ShardManifest> Client::Versions(const std::string& table, const std::string& shard_id,
                                      ShardView view, const CallOptions& options) const {
  auto request = About<v1::ListManifestVersionsRequest>(table, shard_id);
  request.set_page_size(kPageSize);
  request.set_view(ToProto(view));
  return ListWith<ShardManifest>(
      core_, &Arbiter::ListManifestVersions, std::move(request), options,
      [](const v1::ListManifestVersionsResponse& page) -> const auto& { return page.manifests(); });
}

Range<ClaimRecord> Client::Claims(const std::string& table, const std::string& shard_id,
                                  const CallOptions& options) const {
  auto request = About<v1::ListClaimsRequest>(table, shard_id);
  request.set_page_size(kPageSize);
  return ListWith<ClaimRecord>(
      core_, &Arbiter::ListClaims, std::move(request), options,
      [](const v1::ListClaimsResponse& page) -> const auto& { return page.claims(); });
}

absl::StatusOr<ShardManifest> Client::Seal(const std::string& table, const std::string& shard_id,
                                           const CallOptions& options) const {
  auto request = About<v1::SealShardRequest>(table, shard_id);
  request.set_request_id(core_->RequestIdFor(options));
  return ManifestOf(core_->Mutate(&Arbiter::SealShard, request, core_->DeadlineOf(options)));
}

absl::StatusOr<ShardManifest> Client::Unseal(const std::string& table, const std::string& shard_id,
                                             const CallOptions& options) const {
  auto request = About<v1::UnsealShardRequest>(table, shard_id);
  request.set_request_id(core_->RequestIdFor(options));
  return ManifestOf(core_->Mutate(&Arbiter::UnsealShard, request, core_->DeadlineOf(options)));
}

absl::StatusOr<ShardManifest> Client::Drop(const std::string& table, const std::string& shard_id,
                                           std::optional<uint64_t> expected_epoch,
                                           const CallOptions& options) const {
  auto request = About<v1::DropShardRequest>(table, shard_id);
  request.set_request_id(core_->RequestIdFor(options));
  if (expected_epoch.has_value()) request.set_expected_epoch(*expected_epoch);
  return ManifestOf(core_->Mutate(&Arbiter::DropShard, request, core_->DeadlineOf(options)));
}

}  // namespace claimd
