#include "tests/e2e/harness/shared_server.h"

#include <iostream>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include <gtest/gtest.h>

#include "tests/e2e/harness/child_process.h"

namespace claimd::e2e {
namespace {

struct Shared {
  std::unique_ptr<ServerProcess> server;
  std::unique_ptr<Client> client;
};

// Suites of one program run one after the other.
Shared& TheShared() {
  static auto* const shared = new Shared;
  return *shared;
}

}  // namespace

void SharedServerTest::StartServer(ServerProcess::Options options) {
  absl::StatusOr<std::unique_ptr<ServerProcess>> started = ServerProcess::Start(std::move(options));
  ASSERT_TRUE(started.ok()) << started.status();
  TheShared().server = *std::move(started);
  TheShared().client = std::make_unique<Client>(TheShared().server->address());
}

void SharedServerTest::TearDownTestSuite() {
  TheShared().client.reset();
  if (TheShared().server == nullptr) return;
  const absl::StatusOr<ChildProcess::Exit> exit = TheShared().server->Stop();
  EXPECT_TRUE(exit.ok()) << exit.status();
  if (exit.ok()) {
    EXPECT_EQ(exit->code, 0) << "signal " << exit->signal << "\n" << TheShared().server->Stderr();
  }
  TheShared().server.reset();
}

void SharedServerTest::SetUp() {
  ASSERT_NE(TheShared().server, nullptr) << "the server did not start";
}

void SharedServerTest::TearDown() {
  if (TheShared().server == nullptr) return;
  const absl::Status running = TheShared().server->CheckRunning();
  EXPECT_TRUE(running.ok()) << running;
  if (HasFailure()) std::cerr << "The server's log:\n" << TheShared().server->Stderr();
}

ServerProcess& SharedServerTest::server() { return *TheShared().server; }
const Client& SharedServerTest::client() { return *TheShared().client; }

}  // namespace claimd::e2e
