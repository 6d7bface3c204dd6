#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/admin.grpc.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"

#include "tests/e2e/harness/child_process.h"
#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/server_process.h"

// Health, draining and the ways to stop.
namespace claimd::e2e {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr absl::Duration kPatience = absl::Seconds(60);

std::chrono::system_clock::time_point Deadline() {
  return std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience);
}

// A stream of health states.
class HealthWatch {
 public:
  explicit HealthWatch(const Client& client, const std::string& service = "") {
    context_.set_deadline(Deadline());
    HealthCheckRequest request;
    request.set_service(service);
    reader_ = client.health().Watch(&context_, request);
  }

  // The next state, or UNKNOWN when the stream ended.
  HealthCheckResponse::ServingStatus Next() {
    HealthCheckResponse response;
    return reader_->Read(&response) ? response.status() : HealthCheckResponse::UNKNOWN;
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader_;
};

// An import that the server has begun to serve and that ends when the test says so.
class OpenImport {
 public:
  explicit OpenImport(const Client& client) {
    context_.set_deadline(Deadline());
    writer_ = client.admin().ImportManifests(&context_, &response_);
    v1::ImportManifestsRequest request;
    v1::ShardManifest* manifest = request.mutable_manifest();
    const Shard shard = FreshShard();
    manifest->set_table(shard.table);
    manifest->set_shard_id(shard.id);
    manifest->set_version(1);
    manifest->set_current_generation(1);
    manifest->set_status(v1::SHARD_STATUS_ACTIVE);
    shard_ = shard;
    writer_->Write(request);
    // Once the manifest can be read, the call is certainly in flight.
    while (!client.Get(shard).ok() && absl::Now() < began_ + kPatience) std::this_thread::yield();
  }

  grpc::Status Finish() {
    writer_->WritesDone();
    return writer_->Finish();
  }
  const v1::ImportManifestsResponse& response() const { return response_; }

 private:
  const absl::Time began_ = absl::Now();
  grpc::ClientContext context_;
  v1::ImportManifestsResponse response_;
  std::unique_ptr<grpc::ClientWriter<v1::ImportManifestsRequest>> writer_;
  Shard shard_;
};

class ProcessStopTest : public ::testing::Test {
 protected:
  void Start(const std::vector<std::string>& flags) {
    ServerProcess::Options options;
    options.flags = flags;
    absl::StatusOr<std::unique_ptr<ServerProcess>> started = ServerProcess::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    client_ = std::make_unique<Client>(server_->address());
  }

  ServerProcess& server() { return *server_; }
  const Client& client() { return *client_; }

 private:
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ProcessStopTest, HealthIsToldForTheServerAndForEachService) {
  Start({});
  for (const char* service : {"", "claimd.v1.ShardArbiter", "claimd.v1.Admin"}) {
    HealthCheckRequest request;
    request.set_service(service);
    const auto health = client().Call(request);
    EXPECT_TRUE(IsOk(health.status)) << service;
    EXPECT_EQ(health.response.status(), HealthCheckResponse::SERVING) << service;
  }
  HealthCheckRequest unknown;
  unknown.set_service("no.such.Service");
  EXPECT_EQ(client().Call(unknown).status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ProcessStopTest, HealthWatchOfAnUnknownServiceSaysSo) {
  Start({});
  HealthWatch watch(client(), "no.such.Service");
  EXPECT_EQ(watch.Next(), HealthCheckResponse::SERVICE_UNKNOWN);
}

TEST_F(ProcessStopTest, IdleServerStopsWithCodeZeroOnEitherSignal) {
  for (const int signal_number : {SIGTERM, SIGINT}) {
    Start({});
    server().Signal(signal_number);
    const auto exit = server().WaitForExit(kPatience);
    ASSERT_TRUE(exit.ok()) << exit.status();
    EXPECT_EQ(exit->code, 0) << server().Stderr();
  }
}

TEST_F(ProcessStopTest, DrainFinishesWhatRunsAndTellsHealth) {
  Start({"--drain-timeout=60s"});
  HealthWatch watch(client());
  ASSERT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  HealthWatch service_watch(client(), "claimd.v1.ShardArbiter");
  ASSERT_EQ(service_watch.Next(), HealthCheckResponse::SERVING);
  OpenImport import(client());

  server().Signal(SIGTERM);
  EXPECT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(service_watch.Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_TRUE(Refused(client().Claim(FreshShard(), "late").status, grpc::StatusCode::UNAVAILABLE,
                      "DRAINING"));
  EXPECT_TRUE(IsOk(import.Finish()));
  ASSERT_EQ(import.response().results_size(), 1);
  EXPECT_EQ(import.response().results(0).code(), 0);
  const auto exit = server().WaitForExit(kPatience);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 0) << server().Stderr();
}

TEST_F(ProcessStopTest, DrainIsBoundedByItsTimeout) {
  Start({"--drain-timeout=200ms"});
  OpenImport import(client());
  server().Signal(SIGTERM);
  const auto exit = server().WaitForExit(kPatience / 2);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 0) << server().Stderr();
  EXPECT_FALSE(import.Finish().ok());
}

TEST_F(ProcessStopTest, SecondSignalExitsAtOnce) {
  Start({"--drain-timeout=10m"});
  HealthWatch watch(client());
  ASSERT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  OpenImport import(client());
  server().Signal(SIGTERM);
  ASSERT_EQ(watch.Next(), HealthCheckResponse::NOT_SERVING);
  server().Signal(SIGTERM);
  const auto exit = server().WaitForExit(kPatience / 2);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_NE(exit->code, 0) << "an unfinished drain is not a clean stop";
}

TEST_F(ProcessStopTest, OpenHealthWatchDoesNotHoldUpTheStop) {
  Start({"--drain-timeout=10m"});
  HealthWatch watch(client());
  ASSERT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  server().Signal(SIGTERM);
  const auto exit = server().WaitForExit(kPatience / 2);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 0) << server().Stderr();
}

TEST_F(ProcessStopTest, CancelledAndExpiredCallsDoNotHoldUpTheStop) {
  Start({"--drain-timeout=10m"});
  constexpr int kCalls = 200;
  const Shard shard = FreshShard();
  for (int i = 0; i < kCalls; ++i) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::microseconds(10 * i));
    v1::ClaimEpochResponse response;
    client().arbiter().ClaimEpoch(&context, ClaimOf(shard, "impatient"), &response);
    grpc::ClientContext cancelled;
    v1::ImportManifestsResponse imported;
    const auto import = client().admin().ImportManifests(&cancelled, &imported);
    cancelled.TryCancel();
    EXPECT_FALSE(import->Finish().ok());
  }
  // On a shard of its own: the last impatient claims may still be deciding who wins theirs.
  EXPECT_TRUE(IsOk(client().Claim(FreshShard(), "patient").status));
  const auto exit = server().Stop();
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 0) << server().Stderr();
}

TEST_F(ProcessStopTest, CallsPastTheLimitAreToldToComeBack) {
  Start({"--max-inflight=1"});
  // Health and reading the import back need no place inside.
  HealthWatch watch(client());
  ASSERT_EQ(watch.Next(), HealthCheckResponse::SERVING);
  // An import that comes while a claim is inside is refused itself; then another one is opened.
  constexpr int kClaimsBesideOneImport = 50;
  std::unique_ptr<grpc::ClientContext> context;
  v1::ImportManifestsResponse imported;
  std::unique_ptr<grpc::ClientWriter<v1::ImportManifestsRequest>> import;
  grpc::Status refused;
  for (const absl::Time end = absl::Now() + kPatience; refused.ok() && absl::Now() < end;) {
    if (import != nullptr) {
      context->TryCancel();
      import->Finish();
    }
    context = std::make_unique<grpc::ClientContext>();
    import = client().admin().ImportManifests(context.get(), &imported);
    for (int i = 0; i < kClaimsBesideOneImport && refused.ok(); ++i) {
      refused = client().Claim(FreshShard(), "writer").status;
    }
  }
  EXPECT_TRUE(Refused(refused, grpc::StatusCode::RESOURCE_EXHAUSTED, "OVERLOADED"));
  google::rpc::RetryInfo retry;
  const google::rpc::Status details = DetailsOf(refused);
  for (const auto& detail : details.details()) detail.UnpackTo(&retry);
  EXPECT_GT(retry.retry_delay().seconds() + retry.retry_delay().nanos(), 0);

  import->WritesDone();
  EXPECT_TRUE(IsOk(import->Finish()));
  v1::BatchClaimEpochRequest heavy;
  for (int i = 0; i < 10; ++i) *heavy.add_requests() = ClaimOf(FreshShard(), "node");
  grpc::Status alone(grpc::StatusCode::UNKNOWN, "not tried");
  // The import leaves a little after its answer.
  for (const absl::Time end = absl::Now() + kPatience / 6; !alone.ok() && absl::Now() < end;) {
    alone = client().Call(heavy).status;
  }
  EXPECT_TRUE(IsOk(alone)) << "a batch heavier than the limit is let in alone";
}

TEST_F(ProcessStopTest, ClaimsUnderWayAreAnsweredOrRefusedAndNothingAnsweredIsLost) {
  Start({});
  constexpr int kThreads = 8;
  std::atomic<int> granted{0};
  std::vector<Shard> shards;
  shards.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) shards.push_back(FreshShard());
  std::vector<uint64_t> newest(kThreads, 0);
  std::vector<grpc::Status> ends(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const Client own(server().address());
      while (true) {
        const auto claim = own.Claim(shards[i], "writer");
        if (!claim.ok()) {
          ends[i] = claim.status;
          return;
        }
        newest[i] = claim.response.writer_epoch();
        ++granted;
      }
    });
  }
  while (granted < 200) std::this_thread::yield();
  const auto exit = server().Stop();
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 0) << server().Stderr();
  for (const auto& end : ends) {
    // gRPC itself cancels a call that arrives after the server said goodbye and before the client
    // heard it; such a call never ran.
    EXPECT_THAT(end.error_code(),
                ::testing::AnyOf(grpc::StatusCode::UNAVAILABLE, grpc::StatusCode::CANCELLED))
        << Describe(end);
  }
  ASSERT_TRUE(server().Restart().ok());
  const Client after(server().address());
  for (int i = 0; i < kThreads; ++i) {
    const auto head = after.Get(shards[i]);
    ASSERT_TRUE(IsOk(head.status));
    EXPECT_GE(head.response.manifest().writer_epoch(), newest[i]);
    EXPECT_LE(head.response.manifest().writer_epoch(), newest[i] + 1)
        << "only the call that ended without answer may have landed";
  }
}

}  // namespace
}  // namespace claimd::e2e
