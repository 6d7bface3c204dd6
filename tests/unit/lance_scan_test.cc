#include "client/ctl/lance_scan.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"

#include "proto/lance/manifest_codec.h"

namespace claimd::ctl {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kShardId[] = "8e131bde-8368-54ff-89d9-c2e1cc781b29";
constexpr char kOtherShardId[] = "aa48498d-ac91-59e2-8452-69f46010ace2";

auto FindingOf(const std::string& path_end, const std::string& problem_part) {
  return AllOf(Field(&Finding::path, EndsWith(path_end)),
               Field(&Finding::problem, HasSubstr(problem_part)));
}

class LanceScanTest : public ::testing::Test {
 protected:
  LanceScanTest() {
    std::string pattern = (fs::temp_directory_path() / "claimd-scan-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    fs::create_directories(manifests());
  }
  ~LanceScanTest() override { fs::remove_all(root_); }
  LanceScanTest(const LanceScanTest&) = delete;
  LanceScanTest& operator=(const LanceScanTest&) = delete;

  ShardFolder folder() const {
    return {"users", kShardId, root_ / "users.lance" / "_mem_wal" / kShardId};
  }
  fs::path manifests() const { return fs::path(folder().path) / "manifest"; }

  static v1::ShardManifest Manifest(uint64_t version, uint64_t epoch = 1) {
    v1::ShardManifest manifest;
    manifest.set_shard_id(kShardId);
    manifest.set_version(version);
    manifest.set_writer_epoch(epoch);
    manifest.set_current_generation(1);
    manifest.set_shard_spec_id(1);
    manifest.set_status(v1::SHARD_STATUS_ACTIVE);
    return manifest;
  }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(manifests() / name, std::ios::binary) << content;
  }
  void WriteVersion(const v1::ShardManifest& manifest) const {
    Write(lance::ManifestFileName(manifest.version()), *lance::EncodeManifest(manifest));
  }
  void WriteVersions(const std::vector<uint64_t>& versions) const {
    for (const uint64_t version : versions) WriteVersion(Manifest(version));
  }

  fs::path root_;
};

TEST_F(LanceScanTest, NewestFileNameDecidesWhateverTheHintSays) {
  WriteVersions({1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  for (const std::string& hint :
       {std::string("{\"version\":3}"), std::string("{\"version\":10}"), std::string("garbage"),
        std::string(), std::string("{\"version\":-1}"), std::string(9999, 'x')}) {
    Write("version_hint.json", hint);
    const ShardScan scan = ScanShard(folder());
    ASSERT_TRUE(scan.manifest.has_value()) << hint.substr(0, 20);
    EXPECT_EQ(scan.manifest->version(), 10U) << hint.substr(0, 20);
    EXPECT_EQ(scan.manifest->table(), "users");
    EXPECT_THAT(scan.notes, IsEmpty()) << hint.substr(0, 20);
  }
}

TEST_F(LanceScanTest, HintAboveTheNewestFileIsNoted) {
  WriteVersions({1, 2});
  Write("version_hint.json", "{\"version\": 7}");
  const ShardScan scan = ScanShard(folder());
  ASSERT_TRUE(scan.manifest.has_value());
  EXPECT_EQ(scan.manifest->version(), 2U);
  EXPECT_THAT(scan.notes, ElementsAre(FindingOf("version_hint.json", "names version 7")));
}

TEST_F(LanceScanTest, TemporaryFilesAreNormalAndOtherFilesAreNoted) {
  WriteVersions({1});
  Write(lance::ManifestFileName(2) + ".tmp.4711", "half");
  Write(".tmp.something", "half");
  Write(lance::ManifestFileName(2) + "#1", "half");
  Write("notes.txt", "");
  const ShardScan scan = ScanShard(folder());
  ASSERT_TRUE(scan.manifest.has_value());
  EXPECT_EQ(scan.manifest->version(), 1U);
  EXPECT_THAT(scan.notes, ElementsAre(FindingOf("notes.txt", "no manifest")));
}

TEST_F(LanceScanTest, OldestVersionsMayHaveBeenTrimmed) {
  WriteVersions({5, 6});
  const ShardScan scan = ScanShard(folder());
  ASSERT_TRUE(scan.manifest.has_value());
  EXPECT_EQ(scan.manifest->version(), 6U);
}

TEST_F(LanceScanTest, GapIsRefusedAndSaysWhichVersionsAreMissing) {
  WriteVersions({1, 3, 4, 7});
  const ShardScan scan = ScanShard(folder());
  EXPECT_FALSE(scan.manifest.has_value());
  EXPECT_THAT(scan.refusals, ElementsAre(FindingOf("manifest", "version 2, 5 to 6 below")));
  EXPECT_EQ(scan.newest_version, 7U);
}

TEST_F(LanceScanTest, ManyGapsAreCounted) {
  WriteVersions({1, 3, 5, 7, 9, 11, 13, 15});
  EXPECT_THAT(ScanShard(folder()).refusals,
              ElementsAre(FindingOf("manifest", "2, 4, 6, 8, 10 and 2 more gaps below")));
}

TEST_F(LanceScanTest, UnusableNewestFileIsNotReplacedByAnOlderOne) {
  WriteVersions({1, 2});
  const std::string newest = lance::ManifestFileName(3);
  Write(newest, "\xff\xff\xff");
  EXPECT_THAT(ScanShard(folder()).refusals, ElementsAre(FindingOf(newest, "cannot be decoded")));
  Write(newest, "");
  EXPECT_THAT(ScanShard(folder()).refusals, ElementsAre(FindingOf(newest, "is empty")));
  fs::remove(manifests() / newest);
  fs::create_directory(manifests() / newest);
  EXPECT_THAT(ScanShard(folder()).refusals, ElementsAre(FindingOf(newest, "cannot")));
  EXPECT_FALSE(ScanShard(folder()).manifest.has_value());
}

TEST_F(LanceScanTest, NewestFileMustSayWhatItsPathSays) {
  v1::ShardManifest foreign = Manifest(1);
  foreign.set_shard_id(kOtherShardId);
  WriteVersion(foreign);
  EXPECT_THAT(ScanShard(folder()).refusals,
              ElementsAre(FindingOf(".binpb", std::string("shard_id is ") + kOtherShardId)));
  fs::remove(manifests() / lance::ManifestFileName(1));
  Write(lance::ManifestFileName(2), *lance::EncodeManifest(Manifest(1)));
  EXPECT_THAT(ScanShard(folder()).refusals, ElementsAre(FindingOf(".binpb", "version is 1, but")));
}

TEST_F(LanceScanTest, VersionAtTheEndIsRefused) {
  WriteVersions({1});
  v1::ShardManifest last = Manifest(~uint64_t{0} - 1);
  std::string bytes = *lance::EncodeManifest(last);
  // The version is the first field: the last varint bits make it 2^64-1.
  bytes[1] = '\xff';
  Write(lance::ManifestFileName(~uint64_t{0}), bytes);
  const ShardScan scan = ScanShard(folder());
  EXPECT_FALSE(scan.manifest.has_value());
  EXPECT_THAT(scan.refusals, ::testing::Contains(FindingOf(".binpb", "is 2^64-1")));
}

TEST_F(LanceScanTest, UnusableOlderFileIsNotedAndDecidesNothing) {
  WriteVersions({1, 2, 3});
  Write(lance::ManifestFileName(2), "\xff\xff\xff");
  const ShardScan scan = ScanShard(folder());
  ASSERT_TRUE(scan.manifest.has_value());
  EXPECT_EQ(scan.manifest->version(), 3U);
  EXPECT_THAT(scan.notes,
              ElementsAre(FindingOf(lance::ManifestFileName(2), "version 2: manifest cannot be")));
}

TEST_F(LanceScanTest, UnknownStatusThatALaterWriterDroppedIsRefused) {
  WriteVersions({1, 2, 3});
  Write(lance::ManifestFileName(2), *lance::EncodeManifest(Manifest(2)) + "\x78\x02");
  const ShardScan scan = ScanShard(folder());
  EXPECT_FALSE(scan.manifest.has_value());
  EXPECT_THAT(scan.refusals, ElementsAre(FindingOf(lance::ManifestFileName(2), "status is 2")));
}

TEST_F(LanceScanTest, EpochThatWentBackIsRefused) {
  WriteVersion(Manifest(1, 4));
  WriteVersion(Manifest(2, 3));
  const ShardScan scan = ScanShard(folder());
  EXPECT_FALSE(scan.manifest.has_value());
  EXPECT_THAT(scan.refusals, ElementsAre(FindingOf(".binpb", "version 1 has epoch 4")));
}

TEST_F(LanceScanTest, SealedShardStaysSealed) {
  v1::ShardManifest sealed = Manifest(2);
  sealed.set_status(v1::SHARD_STATUS_SEALED);
  WriteVersions({1});
  WriteVersion(sealed);
  const ShardScan scan = ScanShard(folder());
  ASSERT_TRUE(scan.manifest.has_value());
  EXPECT_EQ(scan.manifest->status(), v1::SHARD_STATUS_SEALED);
}

TEST_F(LanceScanTest, FolderWithoutManifestsIsRefused) {
  EXPECT_THAT(ScanShard(folder()).refusals, ElementsAre(FindingOf("manifest", "no manifest")));
  fs::remove(manifests());
  EXPECT_THAT(ScanShard(folder()).refusals, ElementsAre(FindingOf("manifest", "cannot list")));
}

TEST_F(LanceScanTest, AllTablesOfADirectoryAreFound) {
  fs::create_directories(root_ / "events.lance" / "_mem_wal" / kOtherShardId / "manifest");
  fs::create_directories(root_ / "plain.lance" / "data");
  fs::create_directories(root_ / "other" / "_mem_wal" / kOtherShardId / "manifest");
  std::ofstream(root_ / "file.lance") << "";
  std::ofstream(root_ / "events.lance" / "_mem_wal" / "stray") << "";
  const auto found = FindShardFolders(root_.string());
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->shards.size(), 2U);
  EXPECT_EQ(found->shards[0].table, "events");
  EXPECT_EQ(found->shards[0].shard_id, kOtherShardId);
  EXPECT_EQ(found->shards[1].table, "users");
  EXPECT_THAT(found->notes, ElementsAre(FindingOf("stray", "no shard")));
}

TEST_F(LanceScanTest, OneTableCanBeNamedByItself) {
  for (const std::string& path :
       {(root_ / "users.lance").string(), (root_ / "users.lance").string() + "/"}) {
    const auto found = FindShardFolders(path);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->shards.size(), 1U) << path;
    EXPECT_EQ(found->shards[0].table, "users");
  }
  EXPECT_FALSE(FindShardFolders((root_ / "absent.lance").string()).ok());
  EXPECT_FALSE(FindShardFolders((root_ / "absent").string()).ok());
}

}  // namespace
}  // namespace claimd::ctl
