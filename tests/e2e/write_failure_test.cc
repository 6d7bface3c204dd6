#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/server_process.h"

// The disk refuses a write while the server runs: no OK from then on, nothing answered is lost, and
// what was under way is settled by repeating it after a restart.
namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;
using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;
using ::testing::AnyOf;

v1::ClaimEpochRequest LargeClaim(const Shard& shard) {
  auto request = ClaimOf(shard, "writer", 1);
  request.set_request_id(RandomUuid());
  for (int i = 0; i < 20; ++i) {
    (*request.mutable_labels())[absl::StrCat("label-", i)] = std::string(1000, 'v');
  }
  return request;
}

TEST(WriteFailureTest, EndsWritingAndLosesNothingThatWasAnswered) {
  ServerProcess::Options options;
  // No file may grow past 512 blocks of 512 bytes; without the signal, the write itself fails.
  options.wrapper = {"sh", "-c", "trap '' XFSZ; ulimit -f 512; exec \"$@\"", "sh"};
  auto started = ServerProcess::Start(options);
  ASSERT_TRUE(started.ok()) << started.status();
  ServerProcess& server = **started;
  const Shard shard = FreshShard();
  v1::ClaimEpochRequest in_doubt;
  uint64_t granted = 0;
  {
    const Client client(server.address());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    const auto watch = client.health().Watch(&context, HealthCheckRequest());
    HealthCheckResponse health;
    ASSERT_TRUE(watch->Read(&health));
    ASSERT_EQ(health.status(), HealthCheckResponse::SERVING);

    constexpr uint64_t kClaimsMax = 1000;
    grpc::Status failure;
    while (failure.ok() && granted < kClaimsMax) {
      in_doubt = LargeClaim(shard);
      const auto claim = client.Call(in_doubt);
      failure = claim.status;
      if (claim.ok()) granted = claim.response.writer_epoch();
    }
    ASSERT_GT(granted, 0U);
    EXPECT_TRUE(Refused(failure, StatusCode::UNAVAILABLE, "OUTCOME_UNKNOWN", shard));
    ASSERT_TRUE(watch->Read(&health));
    EXPECT_EQ(health.status(), HealthCheckResponse::NOT_SERVING);

    for (int i = 0; i < 5; ++i) {
      const auto later = client.Claim(FreshShard(), "later");
      EXPECT_EQ(later.status.error_code(), StatusCode::UNAVAILABLE);
      EXPECT_THAT(Reason(later.status), AnyOf("STORE_UNAVAILABLE", "OUTCOME_UNKNOWN"));
    }
    // Reads may go on, but never past what is durable.
    const auto head = client.Get(shard);
    if (head.ok()) {
      EXPECT_EQ(head.response.manifest().writer_epoch(), granted);
    } else {
      EXPECT_TRUE(Refused(head.status, StatusCode::UNAVAILABLE, "STORE_UNAVAILABLE", shard));
    }
  }
  server.Kill9();
  server.options().wrapper.clear();
  const absl::Status restarted = server.Restart();
  ASSERT_TRUE(restarted.ok()) << restarted;

  const Client client(server.address());
  EXPECT_GE(client.Get(shard).response.manifest().writer_epoch(), granted);
  const auto settled = client.Call(in_doubt);
  ASSERT_TRUE(IsOk(settled.status));
  EXPECT_EQ(settled.response.writer_epoch(), granted + 1);
  EXPECT_EQ(client.Call(in_doubt).response.writer_epoch(), granted + 1);
  EXPECT_EQ(client.Get(shard).response.manifest().version(), granted + 1);
}

}  // namespace
}  // namespace claimd::e2e
