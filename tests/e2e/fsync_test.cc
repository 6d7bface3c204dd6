#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/child_process.h"
#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/server_process.h"
#include "tests/e2e/harness/temp_dir.h"

// OK means durable: seen from the system calls of the real server under strace.
namespace claimd::e2e {
namespace {

// The system calls of one trace, in the order in which they finished.
class Trace {
 public:
  explicit Trace(const std::string& text) {
    for (absl::string_view line : absl::StrSplit(text, '\n')) lines_.emplace_back(line);
  }

  static constexpr size_t kNone = static_cast<size_t>(-1);

  // The first line from 'from' on that has all of these, or kNone.
  size_t Find(size_t from, const std::vector<std::string>& parts) const {
    for (size_t i = from; i < lines_.size(); ++i) {
      bool all = true;
      for (const std::string& part : parts) all = all && absl::StrContains(lines_[i], part);
      if (all) return i;
    }
    return kNone;
  }

  // The line where the call of line 'start' has returned: itself, or the one that resumes it.
  size_t Finish(size_t start) const {
    if (start == kNone || !absl::StrContains(lines_[start], "<unfinished")) return start;
    const std::string thread =
        std::string(absl::string_view(lines_[start]).substr(0, lines_[start].find(' ')));
    return Find(start + 1, {thread, "resumed>"});
  }

  const std::string& line(size_t index) const { return lines_[index]; }

 private:
  std::vector<std::string> lines_;
};

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

  // The answer that carries 'marker' must have been sent after the write-ahead log that carries it
  // was written and synced.
  static void ExpectSyncedBeforeAnswer(const Trace& trace, const std::string& marker) {
    const size_t written = trace.Find(0, {"write", ".log>", marker});
    ASSERT_NE(written, Trace::kNone) << "no log write carries " << marker;
    const std::string log = trace.line(written).substr(
        trace.line(written).find('<'),
        trace.line(written).find('>') - trace.line(written).find('<') + 1);
    size_t synced = trace.Find(trace.Finish(written), {"sync(", log});
    ASSERT_NE(synced, Trace::kNone) << "no sync of " << log << " follows";
    synced = trace.Finish(synced);
    ASSERT_NE(synced, Trace::kNone);
    EXPECT_TRUE(absl::StrContains(trace.line(synced), "= 0")) << trace.line(synced);
    const size_t answered = trace.Find(0, {"send", "socket:", marker});
    const size_t answered_tcp = trace.Find(0, {"send", "TCP:", marker});
    const size_t first_answer = std::min(answered, answered_tcp);
    ASSERT_NE(first_answer, Trace::kNone) << "no answer carries " << marker;
    EXPECT_LT(synced, first_answer) << "answered before the log was synced:\n"
                                    << trace.line(first_answer) << "\n"
                                    << trace.line(synced);
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
  const Trace trace(ReadFile(trace_path));
  for (const std::string& marker : markers) ExpectSyncedBeforeAnswer(trace, marker);
}

}  // namespace
}  // namespace claimd::e2e
