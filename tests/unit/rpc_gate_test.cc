#include <thread>

#include "absl/time/time.h"
#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"

#include "server/arbiter/errors.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/request_log.h"
#include "tests/unit/arbiter_fixture.h"

namespace claimd::rpc {
namespace {

using arbiter::ReasonOf;

TEST(CallGateTest, BoundsWhatIsInside) {
  CallGate gate(10);
  EXPECT_TRUE(gate.Enter(9).ok());
  EXPECT_EQ(ReasonOf(gate.Enter(2)), "OVERLOADED");
  EXPECT_TRUE(gate.Enter(1).ok());
  gate.Leave(9);
  EXPECT_TRUE(gate.Enter(9).ok());
}

TEST(CallGateTest, LetsOneHeavyCallInAlone) {
  CallGate gate(10);
  EXPECT_TRUE(gate.Enter(1'024).ok()) << "or a full batch could never run";
  EXPECT_EQ(ReasonOf(gate.Enter(1)), "OVERLOADED");
}

TEST(CallGateTest, DrainingRefusesNewCallsAndWaitsForTheOthers) {
  CallGate gate(10);
  ASSERT_TRUE(gate.Enter(1).ok());
  gate.StartDraining();
  EXPECT_EQ(ReasonOf(gate.Enter(1)), "DRAINING");
  EXPECT_EQ(gate.AwaitIdle(absl::ZeroDuration()).code(), absl::StatusCode::kDeadlineExceeded);
  std::thread last([&gate] { gate.Leave(1); });
  EXPECT_TRUE(gate.AwaitIdle(absl::Minutes(1)).ok());
  last.join();
}

TEST(RequestLogTest, AFloodIsCountedInsteadOfWritten) {
  testing::ManualClock clock;
  RequestLog log(&clock);
  for (int i = 0; i < 1'000; ++i) log.Granted("ClaimEpoch", v1::ShardManifest());
  EXPECT_EQ(log.suppressed_total(), 800U);
  clock.Advance(absl::Seconds(1));
  for (int i = 0; i < 100; ++i) {
    log.Refused("ClaimEpoch", "t", "\n", arbiter::DrainingError());
  }
  EXPECT_EQ(log.suppressed_total(), 800U);
}

}  // namespace
}  // namespace claimd::rpc
