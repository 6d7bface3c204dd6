#ifndef CLAIMD_CLIENT_SRC_RETRY_H_
#define CLAIMD_CLIENT_SRC_RETRY_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

#include "claimd/options.h"
#include "client/src/environment.h"

namespace claimd::internal {

// Whether a call that answered this may be sent again as it is. Lost races, fences and mismatches
// never are.
bool IsRetryable(const absl::Status& status);

// Whether a refusal says that no earlier attempt of its request id is in force. Not so where the
// server answers before it looks at what the request id did, or cannot look.
bool SettlesOutcome(const absl::Status& status);

// How long to wait before attempt 'retry' + 1, from 'retry' = 1: full jitter, on top of the delay
// that the server asked for.
absl::Duration BackoffBefore(int retry, const RetryPolicy& policy, absl::Duration server_delay,
                             double random_fraction);

// One call with all its attempts.
class RetryLoop {
 public:
  // 'environment' and 'policy' are not owned and must outlive this. 'deadline' is on the
  // environment's clock. 'request_id' is empty for a call that changes nothing.
  RetryLoop(const Environment* environment, const RetryPolicy* policy, absl::Duration deadline,
            std::string request_id);

  // Runs one attempt within the given time; it must leave the request as it is.
  using Attempt = absl::FunctionRef<absl::Status(absl::Duration timeout)>;

  // Runs attempts until one is answered for good or the deadline comes. An error carries CallFacts,
  // and one that used up the budget says so.
  absl::Status Run(Attempt attempt);

  // Whether an answer was lost on the way to a status that Run answered, so that the call may have
  // been carried out by an earlier attempt.
  bool lost_an_answer() const { return lost_an_answer_; }

  // Attempts that have been answered.
  int attempts() const { return attempts_; }

 private:
  absl::Status GaveUp(const absl::Status& last) const;
  absl::Status Finish(absl::Status status, bool may_have_landed) const;
  void Learn(const absl::Status& status);

  const Environment* const environment_;
  const RetryPolicy* const policy_;
  const absl::Duration deadline_;
  const std::string request_id_;
  absl::Duration start_;
  int attempts_ = 0;
  bool lost_an_answer_ = false;
  // The last error that was not merely "too slow".
  absl::Status cause_;
};

}  // namespace claimd::internal

#endif  // CLAIMD_CLIENT_SRC_RETRY_H_
