// Every rpc of every service is served, whatever is added to the protos.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include "claimd/v1/admin.grpc.pb.h"
#include "claimd/v1/shard_arbiter.grpc.pb.h"
#include "grpc/health/v1/health.pb.h"

#include "google/protobuf/descriptor.h"
#include "server/rpc/admin_service.h"
#include "server/rpc/call_gate.h"
#include "server/rpc/health_service.h"
#include "server/rpc/raw_call.h"
#include "server/rpc/request_log.h"
#include "server/rpc/shard_arbiter_service.h"
#include "server/store/memory_store.h"
#include "tests/unit/arbiter_fixture.h"

namespace claimd::rpc {
namespace {

class ServicesTest : public ::testing::Test {
 protected:
  ServicesTest() {
    const Environment environment{.arbiter = &arbiter_.arbiter(), .gate = &gate_, .log = &log_};
    shards_ = MakeShardArbiterService(environment);
    admin_ = MakeAdminService(environment, &store_,
                              {.version = "test", .start_time = absl::UnixEpoch(), .limits = {}});
    grpc::ServerBuilder builder;
    builder.RegisterService(shards_.get());
    builder.RegisterService(admin_.get());
    builder.RegisterService(&health_);
    server_ = builder.BuildAndStart();
    channel_ = server_->InProcessChannel({});
  }
  ~ServicesTest() override {
    health_.Shutdown();
    server_->Shutdown();
  }

  // What the method answers to these bytes.
  grpc::Status Call(const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, method, &queue);
    const grpc::Slice slice(bytes);
    grpc::Status status;
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
    queue.Next(&tag, &ok);
    // An answer that is not read would hold up the status behind it.
    grpc::ByteBuffer answer;
    call->Read(&answer, nullptr);
    queue.Next(&tag, &ok);
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
    return status;
  }

  store::MemoryStore store_;
  testing::SyncArbiter arbiter_{&store_};
  testing::ManualClock clock_;
  CallGate gate_{100};
  RequestLog log_{&clock_};
  HealthService health_;
  std::unique_ptr<grpc::Service> shards_;
  std::unique_ptr<grpc::Service> admin_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(ServicesTest, EveryRpcOfTheProtosIsServed) {
  int methods = 0;
  for (const char* service : {"claimd.v1.ShardArbiter", "claimd.v1.Admin"}) {
    const auto* descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    ASSERT_NE(descriptor, nullptr) << service;
    for (int i = 0; i < descriptor->method_count(); ++i) {
      const std::string method = absl::StrCat("/", service, "/", descriptor->method(i)->name());
      const grpc::StatusCode code = Call(method, "").error_code();
      EXPECT_NE(code, grpc::StatusCode::UNIMPLEMENTED) << method;
      EXPECT_NE(code, grpc::StatusCode::DEADLINE_EXCEEDED) << method;
      ++methods;
    }
  }
  EXPECT_EQ(methods, 15);
  EXPECT_EQ(Call("/claimd.v1.ShardArbiter/NoSuch", "").error_code(),
            grpc::StatusCode::UNIMPLEMENTED)
      << "or this test could not fail";
}

TEST_F(ServicesTest, BytesThatDoNotParseAreABadRequest) {
  for (const char* method : {"ClaimEpoch", "BatchClaimEpoch", "CommitManifest", "ListShards"}) {
    const grpc::Status status = Call(absl::StrCat("/claimd.v1.ShardArbiter/", method), "\x0a\x7f");
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_NE(status.error_details().find("BadRequest"), std::string::npos) << method;
  }
}

TEST_F(ServicesTest, CallsLeaveTheGateWhateverBecameOfThem) {
  for (int i = 0; i < 200; ++i) {
    Call("/claimd.v1.ShardArbiter/ClaimEpoch", i % 2 == 0 ? "" : "\x0a\x7f");
  }
  gate_.StartDraining();
  EXPECT_TRUE(gate_.AwaitIdle(absl::ZeroDuration()).ok());
  EXPECT_EQ(Call("/claimd.v1.Admin/GetServerInfo", "").error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace claimd::rpc
