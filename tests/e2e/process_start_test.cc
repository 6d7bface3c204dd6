#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/admin.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/child_process.h"
#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/server_process.h"
#include "tests/e2e/harness/temp_dir.h"

// How the program starts, and how it says that it cannot.
namespace claimd::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kExitUsage = 2;
constexpr int kExitStore = 3;
constexpr int kExitListen = 4;

std::unique_ptr<ServerProcess> StartOrDie(ServerProcess::Options options = {}) {
  absl::StatusOr<std::unique_ptr<ServerProcess>> server = ServerProcess::Start(std::move(options));
  EXPECT_TRUE(server.ok()) << server.status();
  return server.ok() ? *std::move(server) : nullptr;
}

// Runs the server with flags that must stop it, and checks exit code and that one line of what it
// wrote says why in words that contain 'says'.
void ExpectRefusesToStart(const std::vector<std::string>& flags, int code, const std::string& says,
                          const std::vector<std::string>& environment = {}) {
  const absl::StatusOr<RunResult> run = RunServerBinary(flags, environment);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->exit.code, code) << "signal " << run->exit.signal << "\n" << run->err;
  EXPECT_THAT(run->err, HasSubstr(says));
  EXPECT_THAT(run->err, Not(HasSubstr("Check failure stack trace"))) << "a crash is no answer";
}

TEST(HelpTest, NamesTheFlagsAndExitsZero) {
  const absl::StatusOr<RunResult> run = RunServerBinary({"--help"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->exit.code, 0);
  for (const char* flag : {"listen", "store", "ready_file", "history_versions", "claim_history",
                           "max_manifest_bytes", "max_epoch_jump", "drain_timeout"}) {
    std::string dashed = flag;
    std::replace(dashed.begin(), dashed.end(), '_', '-');
    EXPECT_TRUE(run->out.find(flag) != std::string::npos ||
                run->out.find(dashed) != std::string::npos)
        << "--" << dashed << " is not in:\n"
        << run->out;
  }
  EXPECT_THAT(run->out, HasSubstr("CLAIMD_")) << "the environment twins are told";
  EXPECT_THAT(run->out, HasSubstr("127.0.0.1:7420")) << "defaults are told";
}

TEST(VersionTest, IsToldAndExitsZero) {
  const absl::StatusOr<RunResult> run = RunServerBinary({"--version"});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->exit.code, 0);
  EXPECT_THAT(run->out, HasSubstr("claimd"));
}

TEST(FlagsTest, BadOnesAreUsageErrors) {
  const TempDir dir;
  const std::string store = absl::StrCat("--store=rocksdb:", dir.Join("store"));
  const std::string listen = "--listen=127.0.0.1:0";
  ExpectRefusesToStart({"--no-such-flag=1"}, kExitUsage, "no-such-flag");
  ExpectRefusesToStart({listen, store, "--history-versions=many"}, kExitUsage, "history");
  ExpectRefusesToStart({listen, store, "--history-versions=0"}, kExitUsage, "history");
  ExpectRefusesToStart({listen, store, "--claim-history=0"}, kExitUsage, "claim");
  ExpectRefusesToStart({listen, store, "--claim-history=-5"}, kExitUsage, "claim");
  ExpectRefusesToStart({listen, store, "--drain-timeout=soon"}, kExitUsage, "drain");
  ExpectRefusesToStart({listen, store, "--max-manifest-bytes=0"}, kExitUsage, "max");
  ExpectRefusesToStart({listen, "--store=redis:localhost"}, kExitUsage, "store");
  ExpectRefusesToStart({listen, "--store="}, kExitUsage, "store");
  ExpectRefusesToStart({listen, "--store=rocksdb:"}, kExitUsage, "directory");
  ExpectRefusesToStart({store, "--listen=nonsense"}, kExitUsage, "listen");
  ExpectRefusesToStart({store, "--listen="}, kExitUsage, "listen");
  ExpectRefusesToStart({store, "--listen=127.0.0.1:99999"}, kExitUsage, "listen");
  ExpectRefusesToStart({listen, store, "stray"}, kExitUsage, "stray");
}

TEST(FlagsTest, PlaintextBeyondLoopbackNeedsTheFlagThatSaysSo) {
  const TempDir dir;
  const std::string store = absl::StrCat("--store=rocksdb:", dir.Join("store"));
  ExpectRefusesToStart({store, "--listen=0.0.0.0:0"}, kExitUsage, "insecure");
}

TEST(EnvironmentTest, IsTheTwinOfEachFlag) {
  const TempDir dir;
  ServerProcess::Options options;
  options.environment = {"CLAIMD_HISTORY_VERSIONS=7", "CLAIMD_CLAIM_HISTORY=8",
                         "CLAIMD_MAX_EPOCH_JUMP=9"};
  options.flags = {"--claim-history=11"};
  const auto server = StartOrDie(options);
  ASSERT_NE(server, nullptr);
  const auto info = Client(server->address()).Call(v1::GetServerInfoRequest());
  EXPECT_EQ(info.response.limits().history_versions(), 7U);
  EXPECT_EQ(info.response.limits().max_epoch_jump(), 9U);
  EXPECT_EQ(info.response.limits().claim_history(), 11U) << "a flag wins over the environment";
}

TEST(EnvironmentTest, BadValueIsAUsageErrorThatNamesTheVariable) {
  const TempDir dir;
  ExpectRefusesToStart(
      {"--listen=127.0.0.1:0", absl::StrCat("--store=rocksdb:", dir.Join("store"))}, kExitUsage,
      "CLAIMD_HISTORY_VERSIONS", {"CLAIMD_HISTORY_VERSIONS=many"});
}

TEST(StoreTest, InUseIsRefused) {
  const auto first = StartOrDie();
  ASSERT_NE(first, nullptr);
  ExpectRefusesToStart(
      {"--listen=127.0.0.1:0", absl::StrCat("--store=rocksdb:", first->store_dir())}, kExitStore,
      first->store_dir());
  EXPECT_TRUE(IsOk(Client(first->address()).Claim(FreshShard(), "unharmed").status));
}

TEST(StoreTest, FileInPlaceOfADirectoryIsRefused) {
  const TempDir dir;
  WriteFile(dir.Join("file"), "not a directory");
  ExpectRefusesToStart({"--listen=127.0.0.1:0", absl::StrCat("--store=rocksdb:", dir.Join("file"))},
                       kExitStore, dir.Join("file"));
  EXPECT_EQ(ReadFile(dir.Join("file")), "not a directory");
}

TEST(StoreTest, ForeignDirectoryIsNotTakenOver) {
  const TempDir dir;
  WriteFile(dir.Join("CURRENT"), "MANIFEST-000009\n");
  ExpectRefusesToStart({"--listen=127.0.0.1:0", absl::StrCat("--store=rocksdb:", dir.path())},
                       kExitStore, dir.path());
}

TEST(StoreTest, CorruptFilesAreRefused) {
  const auto server = StartOrDie();
  ASSERT_NE(server, nullptr);
  {
    const Client client(server->address());
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(IsOk(client.Claim(FreshShard(), "writer").status));
    }
  }
  ASSERT_TRUE(server->Stop().ok());
  for (const auto& entry : std::filesystem::directory_iterator(server->store_dir())) {
    if (entry.path().filename().string().rfind("MANIFEST-", 0) == 0) {
      WriteFile(entry.path().string(), std::string(1000, 'x'));
    }
  }
  ExpectRefusesToStart(
      {"--listen=127.0.0.1:0", absl::StrCat("--store=rocksdb:", server->store_dir())}, kExitStore,
      server->store_dir());
}

TEST(StoreTest, BrokenRecordInsideTheLogIsNotDroppedSilently) {
  const auto server = StartOrDie();
  ASSERT_NE(server, nullptr);
  {
    const Client client(server->address());
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(IsOk(client.Claim(FreshShard(), "writer").status));
    }
  }
  server->Kill9();
  std::string largest;
  for (const auto& entry : std::filesystem::directory_iterator(server->store_dir())) {
    if (entry.path().extension() != ".log") continue;
    if (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)) {
      largest = entry.path().string();
    }
  }
  ASSERT_FALSE(largest.empty());
  std::string log = ReadFile(largest);
  ASSERT_GT(log.size(), 1000U);
  for (size_t i = 0; i < 16; ++i) log[log.size() / 2 + i] ^= 0x55;
  WriteFile(largest, log);
  ExpectRefusesToStart(
      {"--listen=127.0.0.1:0", absl::StrCat("--store=rocksdb:", server->store_dir())}, kExitStore,
      server->store_dir());
}

TEST(StoreTest, DirectoryWithoutParentIsRefused) {
  const TempDir dir;
  ExpectRefusesToStart(
      {"--listen=127.0.0.1:0", absl::StrCat("--store=rocksdb:", dir.Join("missing/store"))},
      kExitStore, dir.Join("missing"));
  EXPECT_FALSE(std::filesystem::exists(dir.Join("missing")));
}

TEST(StoreTest, NewerFormatIsRefusedAndLeftAlone) {
  const auto server = StartOrDie();
  ASSERT_NE(server, nullptr);
  ASSERT_TRUE(server->Stop().ok());
  const std::string marker = absl::StrCat(server->store_dir(), "/CLAIMD_STORE");
  WriteFile(marker, "claimd store, format 99\n");
  ExpectRefusesToStart(
      {"--listen=127.0.0.1:0", absl::StrCat("--store=rocksdb:", server->store_dir())}, kExitStore,
      "format 99");
  EXPECT_EQ(ReadFile(marker), "claimd store, format 99\n");
}

TEST(ListenTest, PortInUseIsRefused) {
  const auto first = StartOrDie();
  ASSERT_NE(first, nullptr);
  const TempDir dir;
  ExpectRefusesToStart({absl::StrCat("--listen=", first->address()),
                        absl::StrCat("--store=rocksdb:", dir.Join("store"))},
                       kExitListen, first->address());
}

TEST(ListenTest, UnixSocketIsServed) {
  const TempDir dir;
  ServerProcess::Options options;
  options.flags = {absl::StrCat("--listen=unix:", dir.Join("claimd.sock"))};
  const auto server = StartOrDie(options);
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(server->address(), absl::StrCat("unix:", dir.Join("claimd.sock")));
  EXPECT_TRUE(IsOk(Client(server->address()).Claim(FreshShard(), "writer").status));
}

TEST(ListenTest, UnixSocketLeftByAKilledServerIsTakenOver) {
  const TempDir dir;
  ServerProcess::Options options;
  options.flags = {absl::StrCat("--listen=unix:", dir.Join("claimd.sock"))};
  const auto server = StartOrDie(options);
  ASSERT_NE(server, nullptr);
  server->Kill9();
  const absl::Status restarted = server->Restart();
  ASSERT_TRUE(restarted.ok()) << restarted;
  EXPECT_TRUE(IsOk(Client(server->address()).Claim(FreshShard(), "writer").status));
}

TEST(ListenTest, UnixSocketInUseIsRefused) {
  const TempDir dir;
  ServerProcess::Options options;
  options.flags = {absl::StrCat("--listen=unix:", dir.Join("claimd.sock"))};
  const auto first = StartOrDie(options);
  ASSERT_NE(first, nullptr);
  ExpectRefusesToStart({absl::StrCat("--listen=", first->address()),
                        absl::StrCat("--store=rocksdb:", dir.Join("store"))},
                       kExitListen, first->address());
  EXPECT_TRUE(IsOk(Client(first->address()).Claim(FreshShard(), "unharmed").status));
}

TEST(ListenTest, FileInPlaceOfASocketIsRefusedAndLeftAlone) {
  const TempDir dir;
  WriteFile(dir.Join("file"), "precious");
  ExpectRefusesToStart({absl::StrCat("--listen=unix:", dir.Join("file")),
                        absl::StrCat("--store=rocksdb:", dir.Join("store"))},
                       kExitListen, dir.Join("file"));
  EXPECT_EQ(ReadFile(dir.Join("file")), "precious");
}

TEST(ListenTest, UnixPathThatDoesNotFitASocketIsRefused) {
  const TempDir dir;
  ExpectRefusesToStart({absl::StrCat("--listen=unix:", dir.Join(std::string(120, 'x'))),
                        absl::StrCat("--store=rocksdb:", dir.Join("store"))},
                       kExitListen, "too long");
}

TEST(ListenTest, SeveralAddressesAreServedAtOnce) {
  const TempDir dir;
  ServerProcess::Options options;
  options.flags = {absl::StrCat("--listen=127.0.0.1:0,unix:", dir.Join("claimd.sock"))};
  const auto server = StartOrDie(options);
  ASSERT_NE(server, nullptr);
  ASSERT_EQ(server->addresses().size(), 2U);
  const Shard shard = FreshShard();
  EXPECT_EQ(Client(server->addresses()[0]).Claim(shard, "tcp").response.writer_epoch(), 1U);
  EXPECT_EQ(Client(server->addresses()[1]).Claim(shard, "unix").response.writer_epoch(), 2U);
}

TEST(ReadyFileTest, ThatCannotBeWrittenIsAnError) {
  const TempDir dir;
  const std::string path = dir.Join("missing/ready");
  const absl::StatusOr<RunResult> run =
      RunServerBinary({"--listen=127.0.0.1:0", absl::StrCat("--store=rocksdb:", dir.Join("store")),
                       absl::StrCat("--ready-file=", path)});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_GT(run->exit.code, 0) << "signal " << run->exit.signal;
  EXPECT_THAT(run->err, HasSubstr(path));
}

TEST(ReadyFileTest, IsGoneAfterTheStop) {
  const TempDir dir;
  ServerProcess::Options options;
  const auto server = StartOrDie(options);
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(std::filesystem::exists(server->dir().Join("start-1/ready")));
  ASSERT_TRUE(server->Stop().ok());
  EXPECT_FALSE(std::filesystem::exists(server->dir().Join("start-1/ready")));
}

TEST(ReadyFileTest, NamesTheBoundAddress) {
  const auto server = StartOrDie();
  ASSERT_NE(server, nullptr);
  ASSERT_EQ(server->addresses().size(), 1U);
  EXPECT_THAT(server->address(), ::testing::StartsWith("127.0.0.1:"));
  EXPECT_THAT(server->address(), Not(::testing::EndsWith(":0")));
}

TEST(LogTest, ValuesFromCallersCannotForgeFieldsOrLines) {
  const auto server = StartOrDie();
  ASSERT_NE(server, nullptr);
  const Client client(server->address());
  ASSERT_TRUE(IsOk(client.Claim(FreshShard(), "x\" writer_epoch=99 claimant=\"y").status));
  EXPECT_FALSE(client.Claim(Shard{"t\nI2026 msg=forged", "\" reason=FORGED \""}, "x").ok());
  const std::string log = server->Stderr();
  EXPECT_THAT(log, HasSubstr("claimant=\"x\\\" writer_epoch=99 claimant=\\\"y\"")) << log;
  EXPECT_THAT(log, Not(HasSubstr("\nI2026 msg=forged"))) << log;
  EXPECT_THAT(log, Not(HasSubstr("\"\" reason=FORGED"))) << log;
}

TEST(LogTest, FloodOfRefusalsIsNoFloodOfLines) {
  const auto server = StartOrDie();
  ASSERT_NE(server, nullptr);
  const Client client(server->address());
  const Shard shard = FreshShard();
  ASSERT_TRUE(IsOk(client.Claim(shard, "writer", 1).status));
  v1::BatchClaimEpochRequest flood;
  constexpr int kRefusals = 1000;
  for (int i = 0; i < kRefusals; ++i) *flood.add_requests() = ClaimOf(shard, "intruder", 2);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(IsOk(client.Call(flood).status));
  const std::string log = server->Stderr();
  EXPECT_LT(std::count(log.begin(), log.end(), '\n'), 2 * kRefusals) << "of 3,000 refusals";
}

TEST(LogTest, HasOneLineForEachClaimSealDropAndRefusalAndNoneForReads) {
  const auto server = StartOrDie();
  ASSERT_NE(server, nullptr);
  const Client client(server->address());
  const Shard shard = FreshShard();
  const auto lines_with_shard = [&] {
    const std::string log = server->Stderr();
    int lines = 0;
    for (size_t at = log.find(shard.id); at != std::string::npos; at = log.find(shard.id, at + 1)) {
      ++lines;
    }
    return lines;
  };
  ASSERT_TRUE(IsOk(client.Claim(shard, "writer", 1).status));
  EXPECT_EQ(lines_with_shard(), 1) << server->Stderr();
  EXPECT_FALSE(client.Claim(shard, "writer", 2).ok());
  EXPECT_GE(lines_with_shard(), 2) << server->Stderr();
  EXPECT_THAT(server->Stderr(), HasSubstr("SHARD_SPEC_MISMATCH"));
  const int before_reads = lines_with_shard();
  ASSERT_TRUE(IsOk(client.Get(shard).status));
  ASSERT_TRUE(IsOk(client.CheckFence(shard, 1).status));
  EXPECT_EQ(lines_with_shard(), before_reads) << server->Stderr();
  ASSERT_TRUE(IsOk(client.Seal(shard).status));
  EXPECT_EQ(lines_with_shard(), before_reads + 1) << server->Stderr();
  ASSERT_TRUE(IsOk(client.Drop(shard).status));
  EXPECT_EQ(lines_with_shard(), before_reads + 2) << server->Stderr();
}

}  // namespace
}  // namespace claimd::e2e
