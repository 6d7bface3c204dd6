#include <csignal>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <google/protobuf/any.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

#include "tests/e2e/harness/child_process.h"
#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/syscall_trace.h"
#include "tests/e2e/harness/temp_dir.h"

// The checkers of the other tests, on input that they must not let pass.
namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;

constexpr absl::Duration kPatience = absl::Seconds(30);

// What a well-formed refusal is made of.
struct Parts {
  std::string reason = "SHARD_SEALED";
  std::string domain = "claimd";
  std::string message = "Shard is sealed.";
  std::string details_message = "Shard is sealed.";
  std::string table = "orders";
  size_t padding = 0;
};

grpc::Status RefusalOf(const Parts& parts) {
  google::rpc::ErrorInfo info;
  info.set_reason(parts.reason);
  info.set_domain(parts.domain);
  (*info.mutable_metadata())["table"] = parts.table;
  (*info.mutable_metadata())["shard_id"] = "id";
  (*info.mutable_metadata())["padding"] = std::string(parts.padding, 'x');
  google::rpc::Status details;
  details.set_code(StatusCode::FAILED_PRECONDITION);
  details.set_message(parts.details_message);
  details.add_details()->PackFrom(info);
  return {StatusCode::FAILED_PRECONDITION, parts.message, details.SerializeAsString()};
}

bool Passes(const grpc::Status& status) {
  return Refused(status, StatusCode::FAILED_PRECONDITION, "SHARD_SEALED", Shard{"orders", "id"});
}

TEST(RefusedTest, PassesAWellFormedRefusalOnly) {
  EXPECT_TRUE(Passes(RefusalOf({})));
  EXPECT_FALSE(Passes(grpc::Status::OK));
  EXPECT_FALSE(Passes({StatusCode::FAILED_PRECONDITION, "Without details."}));
  EXPECT_FALSE(Passes(RefusalOf({.reason = "SHARD_HELD"})));
  EXPECT_FALSE(Passes(RefusalOf({.domain = "example.com"})));
  EXPECT_FALSE(Passes(RefusalOf({.details_message = "Something else."})));
  EXPECT_FALSE(Passes(RefusalOf({.message = "sealed", .details_message = "sealed"})));
  EXPECT_FALSE(Passes(RefusalOf({.table = "customers"})));
  EXPECT_FALSE(Passes(RefusalOf({.padding = 8000})));
}

TEST(RandomUuidTest, IsAVersionFourUuidAndNew) {
  const std::string id = RandomUuid();
  EXPECT_THAT(id, ::testing::MatchesRegex(
                      "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_NE(id, RandomUuid());
}

class ChildProcessTest : public ::testing::Test {
 protected:
  std::unique_ptr<ChildProcess> Shell(const std::string& script) {
    ChildProcess::Options options;
    options.command = {"sh", "-c", script};
    options.environment = {"HARNESS_TEST=from the test"};
    options.stdout_path = dir_.Join("out");
    options.stderr_path = dir_.Join("err");
    auto process = ChildProcess::Start(std::move(options));
    EXPECT_TRUE(process.ok()) << process.status();
    return *std::move(process);
  }

 private:
  const TempDir dir_;
};

TEST_F(ChildProcessTest, TellsCodeAndOutput) {
  const auto process = Shell("echo \"$HARNESS_TEST\"; echo oops >&2; exit 7");
  const auto exit = process->WaitForExit(kPatience);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 7);
  EXPECT_EQ(exit->signal, 0);
  EXPECT_EQ(process->Stdout(), "from the test\n");
  EXPECT_EQ(process->Stderr(), "oops\n");
}

TEST_F(ChildProcessTest, TellsTheSignal) {
  const auto process = Shell("exec sleep 600");
  EXPECT_TRUE(absl::IsDeadlineExceeded(process->WaitForExit(absl::Milliseconds(1)).status()));
  process->Signal(SIGKILL);
  const auto exit = process->WaitForExit(kPatience);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, -1);
  EXPECT_EQ(exit->signal, SIGKILL);
}

TEST_F(ChildProcessTest, ProgramThatIsNotThereExitsWith127) {
  const TempDir dir;
  ChildProcess::Options options;
  options.command = {dir.Join("nothing")};
  options.stdout_path = dir.Join("out");
  options.stderr_path = dir.Join("err");
  const auto process = ChildProcess::Start(options);
  ASSERT_TRUE(process.ok());
  const auto exit = (*process)->WaitForExit(kPatience);
  ASSERT_TRUE(exit.ok()) << exit.status();
  EXPECT_EQ(exit->code, 127);
}

constexpr char kWrite[] = "11 write(9</store/000004.log>, \"..marker..\", 90) = 90\n";
constexpr char kSync[] = "11 fdatasync(9</store/000004.log>) = 0\n";
constexpr char kSend[] = "12 sendmsg(7<socket:[5]>, {\"..marker..\"}, 0) = 40\n";

absl::StatusCode CheckOf(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return SyscallTrace(text).CheckSyncedBeforeAnswer("marker").code();
}

TEST(SyscallTraceTest, PassesOnlyWhatWasSyncedBeforeItWasAnswered) {
  EXPECT_EQ(CheckOf({kWrite, kSync, kSend}), absl::StatusCode::kOk);
  EXPECT_EQ(CheckOf({kWrite, kSend, kSync}), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CheckOf({kSend, kWrite, kSync}), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CheckOf({kSync, kWrite, kSend}), absl::StatusCode::kNotFound);
  EXPECT_EQ(CheckOf({kWrite, kSync}), absl::StatusCode::kNotFound);
  EXPECT_EQ(CheckOf({kSync, kSend}), absl::StatusCode::kNotFound);
  EXPECT_EQ(CheckOf({kWrite, "11 fdatasync(9</store/000004.log>) = -1 EIO\n", kSend}),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(CheckOf({kWrite, "11 fdatasync(8</store/000003.log>) = 0\n", kSend}),
            absl::StatusCode::kNotFound);
}

TEST(SyscallTraceTest, FollowsCallsThatOthersOvertook) {
  const std::string begun = "11 fdatasync(9</store/000004.log> <unfinished ...>\n";
  const std::string ended = "11 <... fdatasync resumed>) = 0\n";
  EXPECT_EQ(CheckOf({kWrite, begun, ended, kSend}), absl::StatusCode::kOk);
  EXPECT_EQ(CheckOf({kWrite, begun, kSend, ended}), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CheckOf({kWrite, begun, "13 <... fdatasync resumed>) = 0\n", kSend}),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace claimd::e2e
