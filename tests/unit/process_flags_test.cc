#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/process/flags.h"

namespace claimd::process {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each test sets what it looks at: flags are the process's, and keep their values.
std::string Complaint(const std::vector<std::string>& arguments) {
  const auto line = ParseCommandLine(arguments);
  EXPECT_EQ(line.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(line.status().message());
}

TEST(FlagsTest, BothSpellingsAndFormsAreTaken) {
  const auto line = ParseCommandLine({"--history-versions=7", "--claim_history", "9",
                                      "--drain-timeout=1m", "--listen=127.0.0.1:0,unix:/s"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->config.history_versions, 7U);
  EXPECT_EQ(line->config.claim_history, 9U);
  EXPECT_EQ(line->config.drain_timeout, absl::Minutes(1));
  EXPECT_THAT(line->config.listen, ElementsAre("127.0.0.1:0", "unix:/s"));
}

TEST(FlagsTest, TheCommandLineWinsOverTheEnvironment) {
  setenv("CLAIMD_CHANGE_LOG", "5", 1);
  EXPECT_EQ(ParseCommandLine({})->config.change_log, 5U);
  EXPECT_EQ(ParseCommandLine({"--change-log=6"})->config.change_log, 6U);
  setenv("CLAIMD_CHANGE_LOG", "five", 1);
  EXPECT_THAT(Complaint({}), HasSubstr("CLAIMD_CHANGE_LOG"));
  unsetenv("CLAIMD_CHANGE_LOG");
}

TEST(FlagsTest, HelpAndVersionAreAnsweredWithoutMore) {
  EXPECT_EQ(ParseCommandLine({"--help"})->action, CommandLine::Action::kHelp);
  EXPECT_EQ(ParseCommandLine({"--version"})->action, CommandLine::Action::kVersion);
}

TEST(FlagsTest, EveryFlagIsInTheHelpWithItsTwin) {
  const std::string help = HelpText();
  for (const char* text : {"--listen  (CLAIMD_LISTEN, default 127.0.0.1:7420)", "--store",
                           "--max-inflight", "CLAIMD_MAX_EPOCH_JUMP", "Exit codes"}) {
    EXPECT_THAT(help, HasSubstr(text));
  }
}

TEST(FlagsTest, WhatIsWrongIsNamed) {
  EXPECT_THAT(Complaint({"--nope=1"}), HasSubstr("--nope"));
  EXPECT_THAT(Complaint({"--minloglevel=1"}), HasSubstr("--minloglevel"));
  EXPECT_THAT(Complaint({"serve"}), HasSubstr("serve"));
  EXPECT_THAT(Complaint({"--store"}), HasSubstr("--store"));
  EXPECT_THAT(Complaint({"--history-versions=0"}), HasSubstr("history-versions"));
  ASSERT_TRUE(ParseCommandLine({"--history-versions=1"}).ok());
}

TEST(FlagsTest, BoundsOfEachNumberAreChecked) {
  for (const char* flag :
       {"history-versions", "claim-history", "change-log", "block-cache-bytes",
        "max-manifest-bytes", "max-request-bytes", "max-inflight", "max-epoch-jump"}) {
    const std::string name = absl::StrCat("--", flag);
    const std::string kept =
        absl::FindCommandLineFlag(absl::StrReplaceAll(flag, {{"-", "_"}}))->CurrentValue();
    const std::string too_large = absl::StrCat(name, "=", uint64_t{1} << 63U);
    EXPECT_THAT(Complaint({too_large}), AllOf(HasSubstr(name), HasSubstr("must be from"))) << flag;
    EXPECT_THAT(Complaint({absl::StrCat(name, "=-1")}), HasSubstr(name));
    EXPECT_THAT(Complaint({absl::StrCat(name, "=1x")}), HasSubstr(name));
    ASSERT_TRUE(ParseCommandLine({absl::StrCat(name, "=", kept)}).ok()) << flag;
  }
  EXPECT_THAT(Complaint({"--drain-timeout=-1s"}), HasSubstr("--drain-timeout"));
  EXPECT_THAT(Complaint({"--drain-timeout=25h"}), HasSubstr("--drain-timeout"));
  ASSERT_TRUE(ParseCommandLine({"--drain-timeout=0s"}).ok());
}

TEST(FlagsTest, EachManifestThatIsAllowedFitsIntoARequest) {
  EXPECT_THAT(Complaint({"--max-manifest-bytes=1048576", "--max-request-bytes=1048576"}),
              AllOf(HasSubstr("--max-request-bytes"), HasSubstr("--max-manifest-bytes")));
  ASSERT_TRUE(ParseCommandLine({"--max-request-bytes=1114112"}).ok());
}

TEST(FlagsTest, ABadAddressIsNamed) {
  for (const char* bad : {"", "host", "host:", ":1", "host:65536", "host:-1", "unix:", "a:b"}) {
    EXPECT_THAT(Complaint({std::string("--listen=") + bad}), HasSubstr("--listen")) << bad;
  }
  ASSERT_TRUE(ParseCommandLine({"--listen=127.0.0.1:0"}).ok());
}

TEST(FlagsTest, PlaintextLeavesTheMachineOnlyWhenThatIsSaid) {
  for (const char* address : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example:1", "127.evil.x.y:1"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
    EXPECT_THAT(Complaint({std::string("--listen=") + address}), HasSubstr("--allow-insecure"));
  }
  EXPECT_TRUE(ParseCommandLine({"--listen=0.0.0.0:1", "--allow-insecure"}).ok());
  EXPECT_THAT(Complaint({"--listen=0.0.0.0:1", "--noallow-insecure"}), HasSubstr("insecure"));
  for (const char* address : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "unix:/x"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  ASSERT_TRUE(ParseCommandLine({"--listen=127.0.0.1:0"}).ok());
}

}  // namespace
}  // namespace claimd::process
