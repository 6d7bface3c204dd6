#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"

#include "client/ctl/command_line.h"
#include "client/ctl/commands.h"
#include "client/ctl/exit_code.h"

namespace claimd::ctl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<Invocation> Parse(const std::vector<std::string>& words) {
  return Invocation::Parse(ClaimctlGrammar(), words);
}

TEST(CommandLineTest, FlagsAndArgumentsComeInAnyOrder) {
  const auto parsed = Parse({"--server", "a:1", "claim", "--spec=7", "users", "--label", "x=1",
                             "id", "--server=b:2", "--label=y==", "-o", "json"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->command(), "claim");
  EXPECT_THAT(parsed->arguments(), ElementsAre("users", "id"));
  EXPECT_THAT(parsed->Values("server"), ElementsAre("a:1", "b:2"));
  EXPECT_EQ(**parsed->SmallNumber("spec"), 7U);
  EXPECT_EQ(parsed->Text("output"), "json");
  EXPECT_THAT(*parsed->Map("label"), ::testing::UnorderedElementsAre(::testing::Pair("x", "1"),
                                                                     ::testing::Pair("y", "=")));
}

TEST(CommandLineTest, WordsBehindTwoDashesAreArguments) {
  const auto parsed = Parse({"get", "--", "--version", "-h"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_FALSE(parsed->help());
  EXPECT_THAT(parsed->arguments(), ElementsAre("--version", "-h"));
}

TEST(CommandLineTest, ACommandsOwnFlagWinsOverTheProgramsOwn) {
  const auto parsed = Parse({"get", "users", "id", "--version=3"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(**parsed->Number("version"), 3U);
  EXPECT_TRUE(Parse({"--version"}).ok());
}

TEST(CommandLineTest, HelpNeedsNothingElseToBeRight) {
  const auto parsed = Parse({"claim", "--nonsense", "--help"});
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(parsed->help());
  EXPECT_EQ(parsed->command(), "claim");
}

TEST(CommandLineTest, WrongNumbersTimesAndPairsAreUsageErrors) {
  const std::vector<std::string> shard = {"claim", "users", "id"};
  for (const char* const flag : {"--spec=-1", "--spec=4294967296", "--spec=", "--spec=1x",
                                 "--expected-epoch=18446744073709551616", "--timeout=10",
                                 "--timeout=0s", "--label=x", "--label==x"}) {
    std::vector<std::string> words = shard;
    words.emplace_back(flag);
    const auto parsed = Parse(words);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const std::vector<absl::Status> results = {
        parsed->SmallNumber("spec").status(), parsed->Number("expected-epoch").status(),
        parsed->Duration("timeout").status(), parsed->Map("label").status()};
    int errors = 0;
    for (const absl::Status& status : results) {
      if (!status.ok()) ++errors;
      EXPECT_TRUE(status.ok() || IsUsageError(status)) << flag;
    }
    EXPECT_EQ(errors, 1) << flag;
  }
}

TEST(GrammarTest, EveryCommandExplainsItself) {
  for (const CommandSpec& command : ClaimctlGrammar().commands) {
    const std::string page = HelpPage(ClaimctlGrammar(), command);
    EXPECT_FALSE(command.examples.empty()) << command.name;
    for (const std::string& example : command.examples) {
      EXPECT_THAT(example, HasSubstr("claimctl ")) << command.name;
      EXPECT_THAT(page, HasSubstr(example));
    }
    for (const FlagSpec& flag : command.flags) EXPECT_THAT(page, HasSubstr("--" + flag.name));
  }
}

struct Case {
  std::string reason;
  absl::StatusCode code;
  ExitCode exit_code;
  // Whether there is something that a person can do about it.
  bool next_step = true;
};
void PrintTo(const Case& test, std::ostream* out) { *out << test.reason; }

absl::Status StatusOf(const Case& test) {
  absl::Status status(test.code, "message");
  google::rpc::ErrorInfo info;
  info.set_reason(test.reason);
  info.set_domain("claimd");
  if (!test.reason.empty()) {
    status.SetPayload("type.googleapis.com/google.rpc.ErrorInfo",
                      absl::Cord(info.SerializeAsString()));
  }
  return status;
}

class ExitCodeTest : public ::testing::TestWithParam<Case> {};

TEST_P(ExitCodeTest, FollowsTheClassOfTheReason) {
  const absl::Status status = StatusOf(GetParam());
  EXPECT_EQ(ExitCodeOf(status), GetParam().exit_code);
  EXPECT_EQ(!NextStep(status).empty(), GetParam().next_step) << NextStep(status);
}

using Code = absl::StatusCode;
INSTANTIATE_TEST_SUITE_P(
    Reasons, ExitCodeTest,
    ::testing::Values(Case{"SHARD_NOT_FOUND", Code::kNotFound, ExitCode::kNotFound},
                      Case{"VERSION_NOT_FOUND", Code::kNotFound, ExitCode::kNotFound},
                      Case{"WRITER_FENCED", Code::kFailedPrecondition, ExitCode::kLost},
                      Case{"CLAIM_SUPERSEDED", Code::kAborted, ExitCode::kLost},
                      Case{"CLAIM_LOST_RACE", Code::kAborted, ExitCode::kLost},
                      Case{"EPOCH_MISMATCH", Code::kAborted, ExitCode::kLost},
                      Case{"MANIFEST_VERSION_CONFLICT", Code::kAborted, ExitCode::kLost},
                      Case{"MANIFEST_CONTENTION", Code::kAborted, ExitCode::kLost},
                      Case{"SHARD_SPEC_MISMATCH", Code::kInvalidArgument, ExitCode::kRefused},
                      Case{"SHARD_SPEC_FINGERPRINT_MISMATCH", Code::kInvalidArgument,
                           ExitCode::kRefused},
                      Case{"SHARD_IDENTITY_CONFLICT", Code::kAlreadyExists, ExitCode::kRefused},
                      Case{"SHARD_EXISTS", Code::kAlreadyExists, ExitCode::kRefused},
                      Case{"INVALID_REQUEST", Code::kInvalidArgument, ExitCode::kRefused},
                      Case{"INVALID_MANIFEST", Code::kInvalidArgument, ExitCode::kRefused},
                      Case{"REQUEST_ID_REUSED", Code::kInvalidArgument, ExitCode::kRefused},
                      Case{"EPOCH_FLOOR_TOO_HIGH", Code::kInvalidArgument, ExitCode::kRefused},
                      Case{"EPOCH_FROM_FUTURE", Code::kInvalidArgument, ExitCode::kRefused},
                      Case{"SHARD_SEALED", Code::kFailedPrecondition, ExitCode::kState},
                      Case{"SHARD_NOT_SEALED", Code::kFailedPrecondition, ExitCode::kState},
                      Case{"SHARD_HELD", Code::kFailedPrecondition, ExitCode::kState},
                      Case{"EPOCH_EXHAUSTED", Code::kFailedPrecondition, ExitCode::kState, false},
                      Case{"OVERLOADED", Code::kResourceExhausted, ExitCode::kUnavailable},
                      Case{"STORE_UNAVAILABLE", Code::kUnavailable, ExitCode::kUnavailable},
                      Case{"OUTCOME_UNKNOWN", Code::kUnavailable, ExitCode::kUnavailable, false},
                      Case{"DRAINING", Code::kUnavailable, ExitCode::kUnavailable},
                      Case{"PERMISSION_DENIED", Code::kPermissionDenied, ExitCode::kDenied},
                      Case{"UNAUTHENTICATED", Code::kUnauthenticated, ExitCode::kDenied},
                      Case{"STORE_CORRUPT", Code::kDataLoss, ExitCode::kCorrupt},
                      Case{"OF_A_NEWER_SERVER", Code::kFailedPrecondition, ExitCode::kState, false},
                      Case{"", Code::kUnavailable, ExitCode::kUnavailable},
                      Case{"", Code::kDeadlineExceeded, ExitCode::kUnavailable},
                      Case{"", Code::kInternal, ExitCode::kOther, false},
                      Case{"", Code::kUnimplemented, ExitCode::kOther}));

}  // namespace
}  // namespace claimd::ctl
