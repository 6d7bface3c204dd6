#include "client/src/core.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "claimd/v1/shard_arbiter.pb.h"

#include "claimd/options.h"
#include "client/src/channels.h"
#include "client/src/claim_state.h"
#include "client/src/convert.h"
#include "client/src/environment.h"

namespace claimd::internal {
namespace {

absl::Status ValidateRetry(const RetryPolicy& retry) {
  if (retry.total_budget <= absl::ZeroDuration() || retry.attempt_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("total_budget and attempt_timeout must be above zero");
  }
  if (retry.initial_backoff <= absl::ZeroDuration() || retry.max_backoff < retry.initial_backoff) {
    return absl::InvalidArgumentError(
        "initial_backoff must be above zero, and max_backoff no smaller than it");
  }
  // Written so that a NaN fails too.
  if (!(retry.multiplier >= 1.0)) {
    return absl::InvalidArgumentError("the backoff multiplier must be at least 1");
  }
  return absl::OkStatus();
}

absl::Status ValidateKeepalive(const KeepaliveOptions& keepalive) {
  constexpr absl::Duration kIntervalMax = absl::Hours(24);
  if (keepalive.time <= absl::ZeroDuration() || keepalive.time > kIntervalMax ||
      keepalive.timeout <= absl::ZeroDuration() || keepalive.timeout > kIntervalMax) {
    return absl::InvalidArgumentError(
        "keepalive time and timeout must be above zero and at most 24 hours");
  }
  return absl::OkStatus();
}

}  // namespace

Core::Core(ClientOptions options, Environment environment, std::unique_ptr<Channels> channels)
    : options_(std::move(options)),
      environment_(std::move(environment)),
      channels_(std::move(channels)) {}

absl::StatusOr<std::shared_ptr<Core>> Core::Make(ClientOptions options, Environment environment) {
  if (absl::Status valid = ValidateRetry(options.retry); !valid.ok()) return valid;
  if (absl::Status valid = ValidateKeepalive(options.keepalive); !valid.ok()) return valid;
  absl::StatusOr<std::unique_ptr<Channels>> channels = Channels::Open(options);
  if (!channels.ok()) return channels.status();
  if (!environment.sleep) {
    // Both belong to the core.
    environment.sleep = [owned = channels->get()](absl::Duration duration) {
      owned->WaitFor(duration);
    };
  }
  return std::shared_ptr<Core>(
      new Core(std::move(options), std::move(environment), *std::move(channels)));
}

v1::ClaimEpochRequest MakeClaimRequest(const Core& core, const ClaimTarget& target) {
  v1::ClaimEpochRequest request;
  request.set_table(target.table);
  request.set_shard_id(target.shard_id);
  if (target.shard_spec_id.has_value()) request.set_shard_spec_id(*target.shard_spec_id);
  request.set_claimant(core.options().claimant);
  request.mutable_labels()->insert(core.options().labels.begin(), core.options().labels.end());
  request.set_request_id(
      core.RequestIdFor({.timeout = std::nullopt, .request_id = target.request_id}));
  request.set_mode(target.options.mode == ClaimMode::kIfFree ? v1::CLAIM_MODE_IF_FREE
                                                             : v1::CLAIM_MODE_PREEMPT);
  if (target.options.expected_epoch.has_value()) {
    request.set_expected_epoch(*target.options.expected_epoch);
  }
  request.set_epoch_floor(target.options.epoch_floor);
  request.mutable_shard_field_values()->insert(target.options.shard_field_values.begin(),
                                               target.options.shard_field_values.end());
  request.set_shard_spec_fingerprint(target.options.shard_spec_fingerprint);
  return request;
}

ShardClaim MakeClaim(const std::shared_ptr<Core>& core, const ClaimTarget& target,
                     const v1::ClaimEpochResponse& response) {
  ClaimState::Grant grant;
  grant.epoch = response.writer_epoch();
  grant.manifest = FromProto(response.manifest());
  grant.created = response.created();
  if (response.has_previous_claim()) grant.previous_claim = FromProto(response.previous_claim());
  grant.on_fenced = target.options.on_fenced;
  return Access::MakeClaim(std::make_shared<ClaimState>(core, std::move(grant)));
}

}  // namespace claimd::internal
