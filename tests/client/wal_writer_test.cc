#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <poll.h>
#include <sstream>
#include <string>
#include <sys/inotify.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/client.h"
#include "tests/e2e/harness/child_process.h"
#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/server_process.h"
#include "tests/e2e/harness/temp_dir.h"

// The write-ahead-log writer of client/examples, run as a program.
namespace claimd {
namespace {

using ::claimd::e2e::ChildProcess;
using ::claimd::e2e::FreshShard;
using ::claimd::e2e::ReadFile;
using ::claimd::e2e::ServerProcess;
using ::claimd::e2e::Shard;
using ::claimd::e2e::TempDir;
using ::testing::Ge;
using ::testing::SizeIs;

constexpr absl::Duration kPatience = absl::Minutes(3);
constexpr int kExitFenced = 3;

using Fields = std::map<std::string, std::string>;

Fields Parse(absl::string_view line) {
  Fields fields;
  for (const absl::string_view word : absl::StrSplit(line, ' ', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> field = absl::StrSplit(word, absl::MaxSplits('=', 1));
    fields[field.first] = field.second;
  }
  return fields;
}

uint64_t Number(const Fields& fields, const std::string& name) {
  uint64_t number = 0;
  const auto field = fields.find(name);
  if (field == fields.end() || !absl::SimpleAtoi(field->second, &number)) abort();
  return number;
}

// Complete lines that begin with a word.
std::vector<Fields> Lines(const std::string& text, const std::string& word) {
  std::vector<Fields> lines;
  std::istringstream stream(text.substr(0, text.rfind('\n') + 1));
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind(word + " ", 0) == 0) lines.push_back(Parse(line));
  }
  return lines;
}

class WalWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = ServerProcess::Start();
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::unique_ptr<ChildProcess> Start(const std::string& name, const std::string& run,
                                      uint64_t entries) {
    ChildProcess::Options options;
    options.command = {CLAIMD_WAL_WRITER,
                       absl::StrCat("--server=", server_->address()),
                       absl::StrCat("--dir=", LogDir()),
                       absl::StrCat("--table=", shard_.table),
                       absl::StrCat("--shard=", shard_.id),
                       absl::StrCat("--name=", name),
                       absl::StrCat("--entries=", entries),
                       "--flush_every=7"};
    options.stdout_path = dir_.Join(run + ".out");
    options.stderr_path = dir_.Join(run + ".err");
    return ChildProcess::Start(std::move(options)).value();
  }

  // Waits until a writer has acknowledged some entries.
  void WaitUntilAccepted(const std::string& run, size_t count) {
    const std::string path = dir_.Join(run + ".out");
    const int notify = inotify_init1(IN_CLOEXEC);
    ASSERT_GE(inotify_add_watch(notify, path.c_str(), IN_MODIFY), 0);
    const absl::Time deadline = absl::Now() + kPatience;
    while (Accepted(run).size() < count && absl::Now() < deadline) {
      pollfd event{notify, POLLIN, 0};
      poll(&event, 1, 1'000);
      char events[4096];
      if (event.revents != 0 && read(notify, events, sizeof(events)) < 0) abort();
    }
    close(notify);
    ASSERT_THAT(Accepted(run), SizeIs(Ge(count))) << ReadFile(dir_.Join(run + ".err"));
  }

  std::vector<Fields> Accepted(const std::string& run) const {
    return Lines(ReadFile(dir_.Join(run + ".out")), "accepted");
  }
  std::string LogDir() const { return dir_.Join("log"); }

  // The log of all writers together: entry n is at position n + 1.
  std::vector<Fields> MergedLog() const {
    std::vector<Fields> log;
    while (true) {
      std::string name = std::to_string(log.size() + 1);
      name.insert(0, 20 - name.size(), '0');
      const std::string line = ReadFile(absl::StrCat(LogDir(), "/wal/", name, ".entry"));
      if (line.empty()) return log;
      log.push_back(Parse(absl::StripSuffix(line, "\n")));
    }
  }

  // No entry of an older epoch follows one of a newer epoch, and whatever was acknowledged is where
  // it was acknowledged to be.
  void CheckLog(const std::vector<std::string>& runs) {
    const std::vector<Fields> log = MergedLog();
    for (size_t i = 1; i < log.size(); ++i) {
      EXPECT_LE(Number(log[i - 1], "epoch"), Number(log[i], "epoch")) << "at position " << i + 1;
    }
    for (const std::string& run : runs) {
      for (const Fields& accepted : Accepted(run)) {
        const uint64_t position = Number(accepted, "position");
        ASSERT_LE(position, log.size()) << run << " acknowledged an entry that is not in the log";
        EXPECT_EQ(log[position - 1].at("payload"), accepted.at("payload"));
        EXPECT_EQ(log[position - 1].at("epoch"), accepted.at("epoch"));
      }
    }
  }

  // The generations hold every entry of the log up to the replay position, in order, once.
  void CheckGenerations() {
    ClientOptions options;
    options.targets = {server_->address()};
    const ShardManifest manifest =
        Client::Connect(options).value().Get(shard_.table, shard_.id).value();
    std::vector<std::string> flushed;
    for (const SsTable& table : manifest.sstables) {
      std::istringstream content(ReadFile(LogDir() + "/" + table.path));
      for (std::string line; std::getline(content, line);) {
        flushed.push_back(Parse(line).at("payload"));
      }
    }
    std::vector<std::string> logged;
    const std::vector<Fields> log = MergedLog();
    ASSERT_LE(manifest.replay_after_wal_entry_position, log.size());
    for (size_t i = 0; i < manifest.replay_after_wal_entry_position; ++i) {
      if (log[i].at("kind") == "entry") logged.push_back(log[i].at("payload"));
    }
    EXPECT_EQ(flushed, logged);
  }

  const Shard shard_ = FreshShard();
  TempDir dir_;
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(WalWriterTest, ASecondWriterTakesOverAndTheFirstOneStops) {
  const auto first = Start("a", "first", /*entries=*/0);
  WaitUntilAccepted("first", 20);
  const auto second = Start("b", "second", /*entries=*/40);
  const auto second_end = second->WaitForExit(kPatience);
  ASSERT_TRUE(second_end.ok()) << second_end.status();
  EXPECT_EQ(second_end->code, 0) << second->Stderr();
  const auto first_end = first->WaitForExit(kPatience);
  ASSERT_TRUE(first_end.ok()) << first_end.status();
  EXPECT_EQ(first_end->code, kExitFenced) << first->Stderr();

  EXPECT_THAT(Accepted("second"), SizeIs(40));
  EXPECT_THAT(Lines(second->Stdout(), "sentinel"), SizeIs(1));
  EXPECT_EQ(Number(Lines(first->Stdout(), "claimed").at(0), "epoch"), 1U);
  EXPECT_EQ(Number(Lines(second->Stdout(), "claimed").at(0), "epoch"), 2U);
  CheckLog({"first", "second"});
  CheckGenerations();
}

TEST_F(WalWriterTest, AWriterThatIsKilledGoesOnWhereItWas) {
  const auto before = Start("a", "before", /*entries=*/0);
  WaitUntilAccepted("before", 25);
  before->Signal(SIGKILL);
  ASSERT_TRUE(before->WaitForExit(kPatience).ok());
  const auto after = Start("a", "after", /*entries=*/10);
  const auto end = after->WaitForExit(kPatience);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->code, 0) << after->Stderr();
  CheckLog({"before", "after"});
  CheckGenerations();
}

TEST_F(WalWriterTest, WritersInARowEachTakeOver) {
  std::vector<std::unique_ptr<ChildProcess>> writers;
  std::vector<std::string> runs;
  for (int i = 0; i < 4; ++i) {
    runs.push_back(absl::StrCat("w", i));
    writers.push_back(Start(runs.back(), runs.back(), /*entries=*/0));
    WaitUntilAccepted(runs.back(), 5);
  }
  for (size_t i = 0; i + 1 < writers.size(); ++i) {
    const auto end = writers[i]->WaitForExit(kPatience);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(end->code, kExitFenced) << writers[i]->Stderr();
  }
  writers.back()->Signal(SIGKILL);
  ASSERT_TRUE(writers.back()->WaitForExit(kPatience).ok());
  CheckLog(runs);
  CheckGenerations();
}

TEST_F(WalWriterTest, TheFirstExampleOfTheReadmeRuns) {
  for (const char* printed : {"writing under epoch 1\ncommitted version 2\n",
                              "writing under epoch 2\ncommitted version 4\n"}) {
    ChildProcess::Options options;
    options.command = {CLAIMD_FIRST_CLAIM};
    options.environment = {absl::StrCat("CLAIMD_SERVER=", server_->address())};
    options.stdout_path = dir_.Join("example.out");
    options.stderr_path = dir_.Join("example.err");
    const auto example = ChildProcess::Start(std::move(options)).value();
    const auto end = example->WaitForExit(kPatience);
    ASSERT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(end->code, 0) << example->Stderr();
    EXPECT_EQ(example->Stdout(), printed);
  }
}

}  // namespace
}  // namespace claimd
