#include "client/src/retry.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/errors.h"
#include "claimd/options.h"
#include "tests/client/fake_environment.h"
#include "tests/client/scripted_server.h"

namespace claimd::internal {
namespace {

using ::claimd::testing::AttachRetryDelay;
using ::claimd::testing::FakeEnvironment;
using ::claimd::testing::Refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(BackoffBeforeTest, CeilingGrowsByTheMultiplierUpToTheMaximum) {
  const RetryPolicy policy{.initial_backoff = absl::Milliseconds(100),
                           .max_backoff = absl::Seconds(1),
                           .multiplier = 3.0};
  std::vector<absl::Duration> ceilings;
  for (int retry = 1; retry <= 5; ++retry) {
    ceilings.push_back(BackoffBefore(retry, policy, absl::ZeroDuration(), 1.0));
  }
  EXPECT_THAT(ceilings, ElementsAre(absl::Milliseconds(100), absl::Milliseconds(300),
                                    absl::Milliseconds(900), absl::Seconds(1), absl::Seconds(1)));
}

TEST(BackoffBeforeTest, JitterIsFull) {
  const RetryPolicy policy;
  EXPECT_EQ(BackoffBefore(1, policy, absl::ZeroDuration(), 0.0), absl::ZeroDuration());
  EXPECT_EQ(BackoffBefore(1, policy, absl::ZeroDuration(), 0.5), policy.initial_backoff / 2);
}

TEST(BackoffBeforeTest, ServersDelayIsALowerBound) {
  const RetryPolicy policy;
  EXPECT_EQ(BackoffBefore(1, policy, absl::Seconds(7), 0.0), absl::Seconds(7));
  EXPECT_GT(BackoffBefore(1, policy, absl::Seconds(7), 0.9), absl::Seconds(7));
}

TEST(BackoffBeforeTest, ManyRetriesDoNotOverflow) {
  const RetryPolicy policy;
  EXPECT_EQ(BackoffBefore(1'000'000'000, policy, absl::ZeroDuration(), 1.0), policy.max_backoff);
}

class RetryLoopTest : public ::testing::Test {
 protected:
  // Runs a mutation whose attempts are answered by 'answers', the last one again and again.
  absl::Status Run(const std::vector<absl::Status>& answers) {
    const Environment environment = fake_.Get();
    RetryLoop loop(&environment, &policy_, environment.monotonic_now() + policy_.total_budget,
                   "id-1");
    return loop.Run([&](absl::Duration timeout) {
      timeouts_.push_back(timeout);
      fake_.Advance(attempt_takes_);
      const size_t n = std::min(timeouts_.size(), answers.size()) - 1;
      return answers[n];
    });
  }

  FakeEnvironment fake_;
  RetryPolicy policy_{.total_budget = absl::Seconds(10),
                      .attempt_timeout = absl::Seconds(4),
                      .initial_backoff = absl::Seconds(1),
                      .max_backoff = absl::Seconds(2),
                      .multiplier = 2.0};
  absl::Duration attempt_takes_ = absl::ZeroDuration();
  std::vector<absl::Duration> timeouts_;
};

TEST_F(RetryLoopTest, StopsAtTheFirstSuccess) {
  EXPECT_TRUE(Run({absl::UnavailableError("x"), absl::OkStatus()}).ok());
  EXPECT_EQ(timeouts_.size(), 2U);
  EXPECT_THAT(fake_.sleeps(), ElementsAre(absl::Milliseconds(500)));
}

TEST_F(RetryLoopTest, AttemptsAreBoundedByWhatIsLeftOfTheBudget) {
  attempt_takes_ = absl::Seconds(4);
  EXPECT_FALSE(Run({absl::DeadlineExceededError("slow")}).ok());
  // 4 s + 0.5 s wait + 4 s + 1 s wait leave half a second.
  EXPECT_THAT(timeouts_, ElementsAre(absl::Seconds(4), absl::Seconds(4), absl::Milliseconds(500)));
}

TEST_F(RetryLoopTest, GivesUpWithinTheBudgetAndSaysSo) {
  const absl::Status status = Run({absl::UnavailableError("connection refused")});
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("connection refused (gave up after "));
  absl::Duration slept;
  for (const absl::Duration sleep : fake_.sleeps()) slept += sleep;
  EXPECT_LE(slept, policy_.total_budget);
  const ErrorDetails details = ErrorDetails::From(status);
  EXPECT_EQ(details.attempts, static_cast<int>(timeouts_.size()));
  EXPECT_EQ(details.request_id, "id-1");
}

TEST_F(RetryLoopTest, ATimeoutAtTheEndDoesNotHideTheCause) {
  attempt_takes_ = absl::Seconds(4);
  const absl::Status status =
      Run({absl::UnavailableError("connection refused"), absl::DeadlineExceededError("slow")});
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("connection refused"));
}

TEST_F(RetryLoopTest, ADelayBeyondTheBudgetIsNotWaitedFor) {
  absl::Status overloaded = Refusal(absl::StatusCode::kResourceExhausted, "OVERLOADED");
  AttachRetryDelay(absl::Seconds(60), &overloaded);
  const absl::Status status = Run({overloaded});
  EXPECT_EQ(timeouts_.size(), 1U);
  EXPECT_THAT(fake_.sleeps(), IsEmpty());
  EXPECT_EQ(ErrorDetails::From(status).reason, ErrorReason::kOverloaded);
  EXPECT_EQ(ErrorDetails::From(status).retry_delay, absl::Seconds(60));
}

TEST_F(RetryLoopTest, ALostAnswerIsReportedAsPerhapsLanded) {
  EXPECT_TRUE(ErrorDetails::From(Run({absl::UnavailableError("reset")})).may_have_landed);
}

TEST_F(RetryLoopTest, RefusalsThatWroteNothingAreNotReportedAsPerhapsLanded) {
  const absl::Status draining = Refusal(absl::StatusCode::kUnavailable, "DRAINING");
  EXPECT_FALSE(ErrorDetails::From(Run({draining})).may_have_landed);
}

TEST_F(RetryLoopTest, ARuleOfTheServerSettlesALostAnswer) {
  const absl::Status sealed = Refusal(absl::StatusCode::kFailedPrecondition, "SHARD_SEALED");
  EXPECT_FALSE(ErrorDetails::From(Run({absl::UnavailableError("reset"), sealed})).may_have_landed);
}

TEST_F(RetryLoopTest, ARefusalAtTheDoorDoesNotSettleALostAnswer) {
  const absl::Status denied = Refusal(absl::StatusCode::kPermissionDenied, "PERMISSION_DENIED");
  EXPECT_TRUE(ErrorDetails::From(Run({absl::UnavailableError("reset"), denied})).may_have_landed);
}

}  // namespace
}  // namespace claimd::internal
