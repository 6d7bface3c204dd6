#include "client/src/retry.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "claimd/errors.h"
#include "claimd/options.h"
#include "client/src/environment.h"
#include "client/src/status.h"

namespace claimd::internal {
bool IsRetryable(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
         absl::IsDeadlineExceeded(status);
}

bool SettlesOutcome(const absl::Status& status) {
  switch (ReasonOf(status)) {
    case ErrorReason::kNone:
    case ErrorReason::kUnknown:
    case ErrorReason::kInvalidRequest:
    case ErrorReason::kPermissionDenied:
    case ErrorReason::kUnauthenticated:
    case ErrorReason::kStoreCorrupt:
    case ErrorReason::kStoreUnavailable:
    case ErrorReason::kOutcomeUnknown:
    case ErrorReason::kOverloaded:
    case ErrorReason::kClaimTooSoon:
    case ErrorReason::kDraining:
      return false;
    default:
      return true;
  }
}

absl::Duration BackoffBefore(int retry, const RetryPolicy& policy, absl::Duration server_delay,
                             double random_fraction) {
  // Beyond this exponent every policy has reached its maximum, or never will.
  constexpr int kExponentMax = 64;
  const absl::Duration ceiling =
      policy.initial_backoff * std::pow(policy.multiplier, std::min(retry - 1, kExponentMax));
  return std::max(server_delay, absl::ZeroDuration()) +
         std::min(ceiling, policy.max_backoff) * random_fraction;
}

RetryLoop::RetryLoop(const Environment* environment, const RetryPolicy* policy,
                     absl::Duration deadline, std::string request_id)
    : environment_(environment),
      policy_(policy),
      deadline_(deadline),
      request_id_(std::move(request_id)),
      start_(environment->monotonic_now()) {}

absl::Status RetryLoop::Run(Attempt attempt) {
  absl::Status last = absl::DeadlineExceededError("The deadline was over before the call began");
  while (true) {
    const absl::Duration remaining = deadline_ - environment_->monotonic_now();
    if (remaining <= absl::ZeroDuration()) return GaveUp(last);
    last = attempt(std::min(policy_->attempt_timeout, remaining));
    ++attempts_;
    if (last.ok()) return last;
    Learn(last);
    if (!IsRetryable(last)) {
      return Finish(last, lost_an_answer_ && !SettlesOutcome(last));
    }
    const absl::Duration wait =
        BackoffBefore(attempts_, *policy_, RetryDelayOf(last).value_or(absl::ZeroDuration()),
                      environment_->random_fraction());
    if (environment_->monotonic_now() + wait >= deadline_) return GaveUp(last);
    environment_->sleep(wait);
  }
}

void RetryLoop::Learn(const absl::Status& status) {
  const ErrorReason reason = ReasonOf(status);
  if (reason == ErrorReason::kNone || reason == ErrorReason::kUnknown ||
      reason == ErrorReason::kOutcomeUnknown) {
    lost_an_answer_ = true;
  }
  if (!absl::IsDeadlineExceeded(status)) cause_ = status;
}

absl::Status RetryLoop::GaveUp(const absl::Status& last) const {
  std::string message = absl::StrCat(last.message(), " (gave up after ", attempts_, " attempts in ",
                                     absl::FormatDuration(environment_->monotonic_now() - start_));
  if (absl::IsDeadlineExceeded(last) && !cause_.ok()) {
    absl::StrAppend(&message,
                    "; before that: ", cause_.ToString(absl::StatusToStringMode::kWithNoExtraData));
  }
  absl::StrAppend(&message, ")");
  return Finish(WithMessage(last, message), lost_an_answer_);
}

absl::Status RetryLoop::Finish(absl::Status status, bool may_have_landed) const {
  SetCallFacts({.request_id = request_id_,
                .attempts = attempts_,
                .may_have_landed = may_have_landed && !request_id_.empty()},
               &status);
  return status;
}

}  // namespace claimd::internal
