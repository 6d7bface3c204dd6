#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/child_process.h"
#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/server_process.h"
#include "tests/e2e/harness/syscall_trace.h"
#include "tests/e2e/harness/temp_dir.h"

// OK means durable: seen from the system calls of the real server under strace.
namespace claimd::e2e {
namespace {

bool StraceWorks() {
  const TempDir dir;
  ChildProcess::Options options;
  options.command = {"strace", "-o", dir.Join("trace"), "true"};
  options.stdout_path = dir.Join("out");
  options.stderr_path = dir.Join("err");
  const auto process = ChildProcess::Start(options);
  if (!process.ok()) return false;
  const auto exit = (*process)->WaitForExit(absl::Seconds(30));
  return exit.ok() && exit->code == 0;
}

class FsyncTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!StraceWorks()) GTEST_SKIP() << "strace is not there or may not trace";
  }
};

TEST_F(FsyncTest, EveryMutationIsSyncedBeforeItIsAnswered) {
  const TempDir dir;
  const std::string trace_path = dir.Join("trace");
  ServerProcess::Options options;
  // -D: the tracer is the grandchild, so that signals reach the server. -y: names of descriptors.
  options.wrapper = {"strace", "-D",
                     "-f",     "-y",
                     "-s",     "100000",
                     "-e",     "trace=write,writev,pwrite64,pwritev,fsync,fdatasync,sendmsg,sendto",
                     "-o",     trace_path};
  // Leak checking cannot work under a tracer.
  options.environment = {"ASAN_OPTIONS=detect_leaks=0", "LSAN_OPTIONS=detect_leaks=0"};
  auto started = ServerProcess::Start(options);
  ASSERT_TRUE(started.ok()) << started.status();
  ServerProcess& server = **started;
  std::vector<std::string> markers;
  {
    const Client client(server.address());
    const Shard shard = FreshShard();
    for (int i = 0; i < 5; ++i) {
      markers.push_back(absl::StrCat("claim-marker-", i, "-end"));
      ASSERT_TRUE(IsOk(client.Claim(shard, markers.back()).status));
    }
    auto commit = CommitAfter(client.Get(shard).response.manifest());
    markers.emplace_back("commit-marker-end");
    (*commit.mutable_manifest()->mutable_annotations())["marker"] = markers.back();
    ASSERT_TRUE(IsOk(client.Call(commit).status));
  }
  const auto exit = server.Stop();
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 0);
  const SyscallTrace trace(ReadFile(trace_path));
  for (const std::string& marker : markers) {
    const absl::Status synced = trace.CheckSyncedBeforeAnswer(marker);
    EXPECT_TRUE(synced.ok()) << synced;
  }
}

}  // namespace
}  // namespace claimd::e2e
