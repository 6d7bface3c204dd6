#ifndef CLAIMD_TESTS_E2E_HARNESS_SHARED_SERVER_H_
#define CLAIMD_TESTS_E2E_HARNESS_SHARED_SERVER_H_

#include <gtest/gtest.h>

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/server_process.h"

namespace claimd::e2e {

// A suite whose tests share one server; each takes fresh shards. Checks after each test that the
// server still runs, and at the end that it stops cleanly. On failure the server's log is shown.
class SharedServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { StartServer({}); }
  static void TearDownTestSuite();
  void SetUp() override;
  void TearDown() override;

  // For suites that need flags: call it from their own SetUpTestSuite.
  static void StartServer(ServerProcess::Options options);

  static ServerProcess& server();
  static const Client& client();
};

}  // namespace claimd::e2e

#endif  // CLAIMD_TESTS_E2E_HARNESS_SHARED_SERVER_H_
