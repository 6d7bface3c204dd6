#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/v1/manifest.pb.h"
#include "google/rpc/error_details.pb.h"
#include "lance/mem_wal.pb.h"

#include "proto/lance/manifest_codec.h"

namespace claimd::lance {
namespace {

namespace fs = std::filesystem;
namespace wire = ::lance::mem_wal;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kMaxNumber = std::numeric_limits<uint64_t>::max();
constexpr char kShardId[] = "8e131bde-8368-54ff-89d9-c2e1cc781b29";
constexpr char kOtherShardId[] = "aa48498d-ac91-59e2-8452-69f46010ace2";

std::string ReadBytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct RealFile {
  fs::path path;
  ManifestPlace place;
};

// Every manifest below a folder of tests/data, with what its path says.
std::vector<RealFile> RealFiles(const std::string& folder) {
  std::vector<RealFile> files;
  const fs::path root = fs::path(CLAIMD_TEST_DATA_DIR) / folder;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".binpb") continue;
    const fs::path shard = entry.path().parent_path().parent_path();
    ManifestPlace place;
    place.table = shard.parent_path().parent_path().stem().string();
    place.shard_id = shard.filename().string();
    place.version = VersionOfFileName(entry.path().filename().string());
    files.push_back({entry.path(), place});
  }
  return files;
}

wire::ShardManifest Valid() {
  wire::ShardManifest manifest;
  manifest.set_version(8);
  manifest.set_writer_epoch(3);
  manifest.set_replay_after_wal_entry_position(5);
  manifest.set_wal_entry_position_last_seen(6);
  manifest.set_current_generation(4);
  manifest.set_shard_spec_id(1);
  manifest.mutable_shard_id()->set_uuid(
      "\x8e\x13\x1b\xde\x83\x68\x54\xff\x89\xd9\xc2\xe1\xcc\x78\x1b\x29");
  wire::SsTable* table = manifest.add_sstables();
  table->set_generation(3);
  table->set_path("08034019_gen_3");
  return manifest;
}

ManifestPlace Place() { return {"users", kShardId, 8}; }

template <typename Payload>
Payload PayloadOf(const absl::Status& status) {
  Payload message;
  const auto payload =
      status.GetPayload(absl::StrCat("type.googleapis.com/", Payload::descriptor()->full_name()));
  EXPECT_TRUE(payload.has_value() && message.ParseFromString(std::string(*payload))) << status;
  return message;
}

std::vector<std::string> BadFields(const absl::Status& status) {
  std::vector<std::string> fields;
  const auto bad_request = PayloadOf<google::rpc::BadRequest>(status);
  for (const auto& violation : bad_request.field_violations()) {
    fields.push_back(violation.field());
  }
  return fields;
}

std::vector<std::string> BadFieldsOf(const wire::ShardManifest& manifest,
                                     const ManifestPlace& place = Place()) {
  return BadFields(DecodeManifest(manifest.SerializeAsString(), place).status());
}

TEST(LanceManifestCodecTest, EveryHealthyRealManifestComesBackByteForByte) {
  const std::vector<RealFile> files = RealFiles("lance");
  ASSERT_GE(files.size(), 8U);
  for (const RealFile& file : files) {
    const std::string bytes = ReadBytes(file.path);
    const auto manifest = DecodeManifest(bytes, file.place);
    ASSERT_TRUE(manifest.ok()) << file.path << ": " << manifest.status();
    EXPECT_EQ(manifest->table(), file.place.table);
    EXPECT_EQ(manifest->shard_id(), *file.place.shard_id);
    EXPECT_EQ(manifest->version(), *file.place.version);
    EXPECT_EQ(manifest->shard_spec_id(), 1U);
    EXPECT_EQ(manifest->status(), v1::SHARD_STATUS_ACTIVE);
    const auto again = EncodeManifest(*manifest);
    ASSERT_TRUE(again.ok()) << file.path << ": " << again.status();
    EXPECT_EQ(*again, bytes) << file.path;
    EXPECT_EQ(ManifestFileName(manifest->version()), file.path.filename().string());
  }
}

TEST(LanceManifestCodecTest, OddRealManifestsAreRefusedOrComeBackByteForByte) {
  std::vector<std::string> refused;
  for (const RealFile& file : RealFiles("lance-odd")) {
    const std::string bytes = ReadBytes(file.path);
    const auto manifest = DecodeManifest(bytes, file.place);
    if (!manifest.ok()) {
      refused.push_back(absl::StrCat(file.place.table, " ", *file.place.version, " ",
                                     BadFields(manifest.status()).at(0)));
      continue;
    }
    const auto again = EncodeManifest(*manifest);
    ASSERT_TRUE(again.ok()) << file.path << ": " << again.status();
    EXPECT_EQ(*again, bytes) << file.path;
    const bool sealed = file.place.table == "sealed_active_writer" && *file.place.version > 1;
    EXPECT_EQ(manifest->status(), sealed ? v1::SHARD_STATUS_SEALED : v1::SHARD_STATUS_ACTIVE)
        << file.path;
  }
  EXPECT_THAT(refused,
              ::testing::UnorderedElementsAre("garbage_tip 6 manifest", "status2 6 status"));
}

TEST(LanceManifestCodecTest, EachFieldHasItsPlace) {
  wire::ShardManifest lance = Valid();
  lance.mutable_sstables(0)->set_physical_rows(0);
  auto* entry = lance.add_shard_field_entries();
  entry->set_field_id("bucket");
  entry->set_value(std::string("\0\1", 2));
  lance.set_status(1);
  const auto manifest = DecodeManifest(lance.SerializeAsString(), Place());
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->table(), "users");
  EXPECT_EQ(manifest->shard_id(), kShardId);
  EXPECT_EQ(manifest->version(), 8U);
  EXPECT_EQ(manifest->writer_epoch(), 3U);
  EXPECT_EQ(manifest->replay_after_wal_entry_position(), 5U);
  EXPECT_EQ(manifest->wal_entry_position_last_seen(), 6U);
  EXPECT_EQ(manifest->current_generation(), 4U);
  EXPECT_EQ(manifest->shard_spec_id(), 1U);
  EXPECT_EQ(manifest->status(), v1::SHARD_STATUS_SEALED);
  EXPECT_EQ(manifest->shard_field_values().at("bucket"), std::string("\0\1", 2));
  ASSERT_EQ(manifest->sstables_size(), 1);
  EXPECT_EQ(manifest->sstables(0).generation(), 3U);
  EXPECT_EQ(manifest->sstables(0).path(), "08034019_gen_3");
  EXPECT_FALSE(manifest->sstables(0).has_in_memory_bytes());
  EXPECT_TRUE(manifest->sstables(0).has_physical_rows());
  EXPECT_FALSE(manifest->sstables(0).has_primary_key_bytes());
  EXPECT_FALSE(manifest->has_claim());
  EXPECT_THAT(manifest->annotations(), IsEmpty());
}

TEST(LanceManifestCodecTest, AbsentCounterIsNotZero) {
  wire::ShardManifest absent = Valid();
  wire::ShardManifest zero = Valid();
  zero.mutable_sstables(0)->set_in_memory_bytes(0);
  zero.mutable_sstables(0)->set_physical_rows(0);
  zero.mutable_sstables(0)->set_primary_key_bytes(0);
  for (const auto& lance : {absent, zero}) {
    const auto manifest = DecodeManifest(lance.SerializeAsString(), Place());
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_EQ(*EncodeManifest(*manifest), lance.SerializeAsString());
  }
  EXPECT_NE(absent.SerializeAsString(), zero.SerializeAsString());
}

TEST(LanceManifestCodecTest, FieldEntriesKeepTheOrderThatLanceGaveThem) {
  wire::ShardManifest lance = Valid();
  for (const char* field : {"c", "a", "b"}) {
    auto* entry = lance.add_shard_field_entries();
    entry->set_field_id(field);
    entry->set_value(field);
  }
  const auto manifest = DecodeManifest(lance.SerializeAsString(), Place());
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(*EncodeManifest(*manifest), lance.SerializeAsString());

  // Whatever somebody writes into the annotation, all entries are written.
  for (const char* const order : {"", "0", "0,1,1", "0,1,3", "x", "-1,0,1"}) {
    v1::ShardManifest spoiled = *manifest;
    (*spoiled.mutable_annotations())[kFieldOrderAnnotation] = order;
    wire::ShardManifest written;
    ASSERT_TRUE(written.ParseFromString(*EncodeManifest(spoiled)));
    std::vector<std::string> fields;
    for (const auto& entry : written.shard_field_entries()) fields.push_back(entry.field_id());
    EXPECT_THAT(fields, ElementsAre("a", "b", "c")) << order;
  }
}

TEST(LanceManifestCodecTest, PlaceIsCheckedWhenGiven) {
  const std::string bytes = Valid().SerializeAsString();
  EXPECT_TRUE(DecodeManifest(bytes, {"users", std::nullopt, std::nullopt}).ok());
  EXPECT_TRUE(DecodeManifest(bytes, {"users", "8E131BDE-8368-54FF-89D9-C2E1CC781B29", 8}).ok());
  EXPECT_THAT(BadFieldsOf(Valid(), {"users", kOtherShardId, 8}), ElementsAre("shard_id"));
  EXPECT_THAT(BadFieldsOf(Valid(), {"users", kShardId, 9}), ElementsAre("version"));
}

TEST(LanceManifestCodecTest, RefusalSaysEverythingAtOnce) {
  wire::ShardManifest lance = Valid();
  lance.clear_shard_id();
  lance.set_status(2);
  lance.set_writer_epoch(kMaxNumber);
  const absl::Status status = DecodeManifest(lance.SerializeAsString(), Place()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(BadFields(status), ElementsAre("shard_id", "status", "writer_epoch"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("status is 2"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("shard_id is missing"));
  const auto info = PayloadOf<google::rpc::ErrorInfo>(status);
  EXPECT_EQ(info.reason(), "INVALID_MANIFEST");
  EXPECT_EQ(info.domain(), "claimd");
  EXPECT_EQ(info.metadata().at("table"), "users");
  EXPECT_EQ(info.metadata().at("shard_id"), kShardId);
}

TEST(LanceManifestCodecTest, NumbersAtTheEndsAreRefused) {
  wire::ShardManifest lance = Valid();
  lance.set_version(0);
  EXPECT_THAT(BadFieldsOf(lance, {"users", kShardId, std::nullopt}), ElementsAre("version"));
  lance.set_version(kMaxNumber);
  EXPECT_THAT(BadFieldsOf(lance, {"users", kShardId, kMaxNumber}), ElementsAre("version"));
  lance = Valid();
  lance.set_writer_epoch(kMaxNumber);
  EXPECT_THAT(BadFieldsOf(lance), ElementsAre("writer_epoch"));
  lance = Valid();
  lance.clear_sstables();
  lance.set_current_generation(0);
  EXPECT_THAT(BadFieldsOf(lance), ElementsAre("current_generation"));
}

TEST(LanceManifestCodecTest, NumbersNextToTheEndsAreTaken) {
  wire::ShardManifest lance = Valid();
  lance.set_version(kMaxNumber - 1);
  lance.set_writer_epoch(kMaxNumber - 1);
  EXPECT_TRUE(DecodeManifest(lance.SerializeAsString(), {"users", kShardId, kMaxNumber - 1}).ok());
  lance.set_version(1);
  lance.set_writer_epoch(0);
  lance.clear_sstables();
  lance.set_current_generation(1);
  EXPECT_TRUE(DecodeManifest(lance.SerializeAsString(), {"users", kShardId, 1}).ok());
}

TEST(LanceManifestCodecTest, MalformedShardIdIsRefused) {
  wire::ShardManifest lance = Valid();
  lance.mutable_shard_id()->set_uuid("123456789012345");
  EXPECT_THAT(BadFieldsOf(lance), ElementsAre("shard_id"));
  lance.mutable_shard_id()->clear_uuid();
  EXPECT_THAT(BadFieldsOf(lance), ElementsAre("shard_id"));
}

TEST(LanceManifestCodecTest, SsTableGenerationsAreChecked) {
  for (const uint64_t generation : {uint64_t{0}, uint64_t{3}, uint64_t{4}}) {
    wire::ShardManifest lance = Valid();
    lance.add_sstables()->set_generation(generation);
    EXPECT_THAT(BadFieldsOf(lance), ElementsAre("sstables[1].generation")) << generation;
  }
}

TEST(LanceManifestCodecTest, FieldThatComesTwiceIsRefused) {
  wire::ShardManifest lance = Valid();
  lance.add_shard_field_entries()->set_field_id("bucket");
  lance.add_shard_field_entries()->set_field_id("bucket");
  EXPECT_THAT(BadFieldsOf(lance), ElementsAre("shard_field_values"));
}

TEST(LanceManifestCodecTest, BytesThatWouldNotComeBackAreRefused) {
  const std::string valid = Valid().SerializeAsString();
  // An unknown field of the manifest, one of an sstable, and a field that is written twice.
  const std::string unknown = valid + std::string("\x80\x01\x05", 3);
  EXPECT_THAT(BadFields(DecodeManifest(unknown, Place()).status()), ElementsAre("manifest"));
  wire::ShardManifest lance = Valid();
  wire::SsTable* table = lance.mutable_sstables(0);
  table->GetReflection()->MutableUnknownFields(table)->AddVarint(9, 1);
  EXPECT_THAT(BadFieldsOf(lance), ElementsAre("manifest"));
  EXPECT_THAT(BadFields(DecodeManifest(valid + std::string("\x08\x08", 2), Place()).status()),
              ElementsAre("manifest"));
}

TEST(LanceManifestCodecTest, EmptyAndGarbledBytesAreRefused) {
  const absl::Status empty = DecodeManifest("", Place()).status();
  EXPECT_THAT(std::string(empty.message()), HasSubstr("is empty"));
  EXPECT_THAT(BadFields(empty), ElementsAre("manifest"));
  const std::string valid = Valid().SerializeAsString();
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), valid.substr(0, valid.size() - 1)}) {
    EXPECT_THAT(BadFields(DecodeManifest(bytes, Place()).status()), ElementsAre("manifest"));
  }
}

TEST(LanceManifestCodecTest, WhatLanceCannotSayIsLeftOutOrRefused) {
  const auto imported = DecodeManifest(Valid().SerializeAsString(), Place());
  ASSERT_TRUE(imported.ok()) << imported.status();
  v1::ShardManifest manifest = *imported;
  manifest.mutable_claim()->set_claimant("writer");
  manifest.mutable_update_time()->set_seconds(1);
  (*manifest.mutable_annotations())["note"] = "ours";
  EXPECT_EQ(*EncodeManifest(manifest), Valid().SerializeAsString());

  manifest.set_status(v1::SHARD_STATUS_DROPPED);
  EXPECT_THAT(BadFields(EncodeManifest(manifest).status()), ElementsAre("status"));
  manifest = *imported;
  manifest.set_shard_id("8e131bde8368-54ff-89d9-c2e1cc781b29-");
  EXPECT_THAT(BadFields(EncodeManifest(manifest).status()), ElementsAre("shard_id"));
}

TEST(LanceFileNameTest, VersionBitsComeLowestFirst) {
  EXPECT_EQ(ManifestFileName(6), absl::StrCat("011", std::string(61, '0'), ".binpb"));
  EXPECT_EQ(ManifestFileName(kMaxNumber), absl::StrCat(std::string(64, '1'), ".binpb"));
  for (const uint64_t version :
       {uint64_t{0}, uint64_t{1}, uint64_t{17}, uint64_t{1} << 63U, kMaxNumber - 1, kMaxNumber}) {
    EXPECT_EQ(VersionOfFileName(ManifestFileName(version)), version);
  }
}

TEST(LanceFileNameTest, OtherNamesAreNoVersions) {
  const std::string name = ManifestFileName(6);
  for (const std::string& other :
       {std::string("version_hint.json"), std::string(), std::string(".binpb"), name + ".tmp.1",
        name + "#1", "0" + name, name.substr(1), "2" + name.substr(1), name.substr(0, 64)}) {
    EXPECT_EQ(VersionOfFileName(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace claimd::lance
