#include "client/src/convert.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "claimd/v1/admin.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "claimd/json.h"
#include "claimd/types.h"

namespace claimd {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::HasSubstr;

// Every field, with values at the edges.
v1::ShardManifest FullManifest() {
  v1::ShardManifest proto;
  const bool parsed = google::protobuf::TextFormat::ParseFromString(
      R"pb(
        table: "orders"
        shard_id: "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
        version: 18446744073709551615
        shard_spec_id: 4294967295
        shard_field_values { key: "bucket" value: "\000\377" }
        writer_epoch: 7
        replay_after_wal_entry_position: 40
        wal_entry_position_last_seen: 41
        current_generation: 3
        sstables { generation: 1 path: "one" }
        sstables {
          generation: 2
          path: "two"
          in_memory_bytes: 0
          physical_rows: 5
          primary_key_bytes: 6
        }
        status: SHARD_STATUS_SEALED
        claim {
          writer_epoch: 7
          claimant: "a"
          labels { key: "pod" value: "p" }
          claim_time { seconds: 1700000000 nanos: 123456789 }
          request_id: "r"
          lease_duration { seconds: 30 nanos: 1 }
        }
        annotations { key: "k" value: "v" }
        create_time { seconds: 1700000000 nanos: 999999999 }
        update_time { seconds: -1 nanos: 5 }
        shard_spec_fingerprint: "\001\002"
      )pb",
      &proto);
  if (!parsed) abort();
  return proto;
}

TEST(ConvertTest, AManifestComesBackUnchanged) {
  const v1::ShardManifest proto = FullManifest();
  const v1::ShardManifest back = internal::ToProto(internal::FromProto(proto));
  EXPECT_TRUE(MessageDifferencer::Equals(back, proto)) << back.DebugString();
}

TEST(ConvertTest, EveryFieldOfTheManifestIsInTheTest) {
  const v1::ShardManifest proto = FullManifest();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  proto.GetReflection()->ListFields(proto, &fields);
  EXPECT_EQ(static_cast<int>(fields.size()), v1::ShardManifest::descriptor()->field_count())
      << "a new field needs a member in types.h and both ways in convert.cc";
  proto.claim().GetReflection()->ListFields(proto.claim(), &fields);
  EXPECT_EQ(static_cast<int>(fields.size()), v1::Claim::descriptor()->field_count());
}

TEST(ConvertTest, AnAbsentCounterIsNotZero) {
  const ShardManifest manifest = internal::FromProto(FullManifest());
  EXPECT_EQ(manifest.sstables[0].in_memory_bytes, std::nullopt);
  EXPECT_EQ(manifest.sstables[1].in_memory_bytes, 0U);
}

TEST(ConvertTest, FieldsOfANewerServerSurvive) {
  v1::ShardManifest proto = FullManifest();
  proto.GetReflection()->MutableUnknownFields(&proto)->AddVarint(99, 12345);
  v1::SsTable* table = proto.mutable_sstables(0);
  table->GetReflection()->MutableUnknownFields(table)->AddLengthDelimited(98, "new");
  const v1::ShardManifest back = internal::ToProto(internal::FromProto(proto));
  EXPECT_EQ(back.SerializeAsString().size(), proto.SerializeAsString().size());
  const auto& unknown = back.GetReflection()->GetUnknownFields(back);
  ASSERT_EQ(unknown.field_count(), 1);
  EXPECT_EQ(unknown.field(0).varint(), 12345U);
  const v1::SsTable& first = back.sstables(0);
  const auto& unknown_in_table = first.GetReflection()->GetUnknownFields(first);
  ASSERT_EQ(unknown_in_table.field_count(), 1);
  EXPECT_EQ(unknown_in_table.field(0).length_delimited(), "new");
}

TEST(ConvertTest, AStatusOfANewerServerIsUnknown) {
  v1::ShardManifest proto;
  proto.set_status(static_cast<v1::ShardStatus>(77));
  EXPECT_EQ(internal::FromProto(proto).status, ShardStatus::kUnknown);
}

TEST(ConvertTest, AClaimRecordComesBackUnchanged) {
  v1::ClaimRecord proto;
  *proto.mutable_claim() = FullManifest().claim();
  proto.mutable_end_time()->set_seconds(5);
  proto.set_end_reason(v1::CLAIM_END_REASON_RELEASED);
  proto.set_next_writer_epoch(8);
  proto.set_note("operator said so");
  EXPECT_TRUE(MessageDifferencer::Equals(internal::ToProto(internal::FromProto(proto)), proto));
}

TEST(ConvertTest, ServerInfoComesBackUnchanged) {
  v1::GetServerInfoResponse proto;
  proto.set_server_version("0.1.0");
  proto.set_store_kind("rocksdb");
  proto.set_store_id("id");
  proto.set_store_format_version(1);
  proto.set_revision(9);
  proto.mutable_start_time()->set_seconds(5);
  proto.mutable_limits()->set_max_manifest_bytes(1);
  proto.mutable_limits()->set_max_epoch_jump(2);
  proto.mutable_limits()->set_history_versions(3);
  proto.mutable_limits()->set_claim_history(4);
  EXPECT_TRUE(MessageDifferencer::Equals(internal::ToProto(internal::FromProto(proto)), proto));
}

TEST(ConvertTest, EqualityLooksAtEveryPart) {
  const ShardManifest manifest = internal::FromProto(FullManifest());
  EXPECT_EQ(manifest, ShardManifest(manifest));
  ShardManifest other = manifest;
  other.sstables[1].physical_rows = 6;
  EXPECT_NE(manifest, other);
  other = manifest;
  other.claim->labels["pod"] = "q";
  EXPECT_NE(manifest, other);
  other = manifest;
  other.unknown_fields = "x";
  EXPECT_NE(manifest, other);
}

TEST(JsonTest, IsTheProtoJsonOfTheManifest) {
  const v1::ShardManifest proto = FullManifest();
  const std::string json = ToJson(internal::FromProto(proto));
  v1::ShardManifest parsed;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &parsed).ok()) << json;
  EXPECT_TRUE(MessageDifferencer::Equals(parsed, proto)) << json;
  EXPECT_EQ(json.find('\n'), std::string::npos);
}

TEST(JsonTest, ZeroesAreWrittenOut) {
  EXPECT_THAT(ToJson(ShardManifest()), HasSubstr("\"writerEpoch\":\"0\""));
}

TEST(TypesTest, EncodedSizeIsTheSizeOnTheWire) {
  const v1::ShardManifest proto = FullManifest();
  EXPECT_EQ(EncodedSize(internal::FromProto(proto)), proto.ByteSizeLong());
}

}  // namespace
}  // namespace claimd
