#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"
#include "claimd/v1/shard_arbiter.pb.h"

#include "proto/lance/manifest_codec.h"
#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/temp_dir.h"

// Manifests of real Lance tables, taken over by a server through its API.
namespace claimd::e2e {
namespace {

namespace fs = std::filesystem;

using ::grpc::StatusCode;

// The newest manifest of each shard below a folder of tests/data that decodes, and its bytes.
std::vector<std::pair<v1::ShardManifest, std::string>> NewestManifests(const std::string& folder) {
  std::map<fs::path, uint64_t> newest;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(CLAIMD_TEST_DATA_DIR) / folder)) {
    const auto version = lance::VersionOfFileName(entry.path().filename().string());
    if (!version.has_value()) continue;
    uint64_t& largest = newest[entry.path().parent_path()];
    largest = std::max(largest, *version);
  }
  std::vector<std::pair<v1::ShardManifest, std::string>> manifests;
  for (const auto& [path, version] : newest) {
    const fs::path shard = path.parent_path();
    const std::string bytes = ReadFile((path / lance::ManifestFileName(version)).string());
    auto manifest = lance::DecodeManifest(
        bytes, {shard.parent_path().parent_path().stem().string(), shard.filename(), version});
    if (manifest.ok()) manifests.emplace_back(*std::move(manifest), bytes);
  }
  return manifests;
}

class LanceManifestsTest : public SharedServerTest {};

TEST_F(LanceManifestsTest, AreTakenOverAndGoOnUnderTheirSpecOnly) {
  const auto real = NewestManifests("lance");
  ASSERT_EQ(real.size(), 8U);
  std::vector<v1::ShardManifest> manifests;
  manifests.reserve(real.size());
  for (const auto& [manifest, bytes] : real) manifests.push_back(manifest);
  const auto imported = client().Import(manifests);
  ASSERT_TRUE(IsOk(imported.status));
  for (const auto& result : imported.response.results()) EXPECT_TRUE(IsOk(AsGrpcStatus(result)));

  for (const auto& [manifest, bytes] : real) {
    const Shard shard{manifest.table(), manifest.shard_id()};
    SCOPED_TRACE(shard.table + " " + shard.id);
    const auto stored = client().Get(shard);
    ASSERT_TRUE(IsOk(stored.status));
    EXPECT_EQ(*lance::EncodeManifest(stored.response.manifest()), bytes);
    EXPECT_TRUE(IsOk(client().CheckFence(shard, manifest.writer_epoch()).status));
    for (const uint32_t other : {0U, 2U}) {
      EXPECT_TRUE(Refused(client().Claim(shard, "writer", other).status,
                          StatusCode::INVALID_ARGUMENT, "SHARD_SPEC_MISMATCH", shard));
    }
    const auto claim = client().Claim(shard, "writer", 1);
    ASSERT_TRUE(IsOk(claim.status));
    EXPECT_EQ(claim.response.writer_epoch(), manifest.writer_epoch() + 1);
    EXPECT_EQ(claim.response.manifest().version(), manifest.version() + 1);
    EXPECT_EQ(claim.response.manifest().sstables_size(), manifest.sstables_size());
  }
}

TEST_F(LanceManifestsTest, SealIsKeptAndTheIncumbentMayDrain) {
  for (const auto& [manifest, bytes] : NewestManifests("lance-odd")) {
    if (manifest.status() != v1::SHARD_STATUS_SEALED) continue;
    const Shard shard{manifest.table(), manifest.shard_id()};
    ASSERT_TRUE(IsOk(client().Import({manifest}).status));
    EXPECT_TRUE(Refused(client().Claim(shard, "writer", 1).status, StatusCode::FAILED_PRECONDITION,
                        "SHARD_SEALED", shard));
    const auto committed = client().Call(FlushAfter(client().Get(shard).response.manifest()));
    ASSERT_TRUE(IsOk(committed.status));
    EXPECT_EQ(committed.response.manifest().status(), v1::SHARD_STATUS_SEALED);
    EXPECT_EQ(committed.response.manifest().version(), manifest.version() + 1);
    return;
  }
  FAIL() << "tests/data/lance-odd has no sealed manifest";
}

}  // namespace
}  // namespace claimd::e2e
