#include "server/store/rocksdb_keys.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include <gtest/gtest.h>

#include "claimd/storage/v1/storage.pb.h"

#include "server/store/shard_key.h"
#include "tests/conformance/store_conformance.h"

namespace claimd::store::rocksdb_keys {
namespace {

ShardKey Key() {
  ShardKey key{.table = "t", .shard_id = {}};
  for (uint8_t i = 0; i < 16; ++i) key.shard_id[i] = static_cast<uint8_t>(0xf0U + i);
  return key;
}

// These bytes are on people's disks.
TEST(RocksDbKeysTest, KeysLookAsTheyAlwaysDid) {
  const std::string shard = EncodeShard(Key());
  const std::string id = "\xf0\xf1\xf2\xf3\xf4\xf5\xf6\xf7\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff";
  EXPECT_EQ(shard, std::string("t\0", 2) + id);
  EXPECT_EQ(EncodeNumbered(shard, 0x0102), shard + std::string("\0\0\0\0\0\0\x01\x02", 8));
  EXPECT_EQ(EncodeRequest(shard, "r"), shard + "r");
  EXPECT_EQ(EncodeRevision(1), std::string("\0\0\0\0\0\0\0\x01", 8));
}

TEST(RocksDbKeysTest, EnvelopeLooksAsItAlwaysDid) {
  storage::v1::AppliedRequest applied;
  applied.set_version(5);
  std::string envelope = Wrap(applied);
  EXPECT_EQ(envelope, std::string("\x01\0\0\0\0\0\0\0\0\x10\x05", 11));
  StampRevision(0x0201, &envelope);
  EXPECT_EQ(envelope, std::string("\x01\x01\x02\0\0\0\0\0\0\x10\x05", 11));
}

TEST(RocksDbKeysTest, ShardComesBack) {
  for (const std::string& table : {std::string("t"), std::string(512, 'x'), std::string("ä/b c")}) {
    ShardKey key = Key();
    key.table = table;
    const absl::StatusOr<ShardKey> decoded = DecodeShard(EncodeShard(key));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, key);
  }
}

TEST(RocksDbKeysTest, KeyThatIsNoShardIsDataLoss) {
  const std::string shard = EncodeShard(Key());
  for (const std::string& bytes :
       {std::string(), std::string("t"), shard.substr(1), shard.substr(0, 17), shard + "x"}) {
    EXPECT_TRUE(absl::IsDataLoss(DecodeShard(bytes).status())) << bytes.size();
  }
}

TEST(RocksDbKeysTest, NumbersAreInOrderAndComeBack) {
  const std::string shard = EncodeShard(Key());
  std::string last;
  for (const uint64_t number :
       {uint64_t{0}, uint64_t{1}, uint64_t{255}, uint64_t{256}, uint64_t{1} << 63U, UINT64_MAX}) {
    const std::string key = EncodeNumbered(shard, number);
    EXPECT_LT(last, key) << number;
    const absl::StatusOr<uint64_t> decoded = DecodeNumber(key);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, number);
    last = key;
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeNumber("1234567").status()));
}

TEST(RocksDbKeysTest, TablePrefixHoldsItsTableAndNoOther) {
  ShardKey highest{.table = "t", .shard_id = {}};
  highest.shard_id.fill(0xff);
  for (const ShardKey& key : {KeyOf("t", 0), highest}) {
    EXPECT_LE(TablePrefix("t"), EncodeShard(key));
    EXPECT_LT(EncodeShard(key), TableEnd("t"));
  }
  for (const char* other : {"s", "t ", "ta", "u", "\x7f"}) {
    const std::string key = EncodeShard(KeyOf(other, 1));
    EXPECT_FALSE(TablePrefix("t") <= key && key < TableEnd("t")) << other;
  }
}

TEST(RocksDbKeysTest, RevisionOfAnEnvelopeComesBack) {
  std::string envelope = Wrap(*Create(KeyOf("t", 1), "r").next);
  StampRevision(UINT64_MAX - 7, &envelope);
  const absl::StatusOr<Envelope> unwrapped = Unwrap(envelope);
  ASSERT_TRUE(unwrapped.ok()) << unwrapped.status();
  EXPECT_EQ(unwrapped->revision, UINT64_MAX - 7);
  EXPECT_TRUE(DecodeRecord(KeyOf("t", 1), envelope).ok());
}

TEST(RocksDbKeysTest, RecordOfAnotherVersionIsDataLoss) {
  const std::string envelope = Wrap(*Create(KeyOf("t", 1), "r").next);
  EXPECT_TRUE(DecodeRecordAt(KeyOf("t", 1), 1, envelope).ok());
  EXPECT_TRUE(absl::IsDataLoss(DecodeRecordAt(KeyOf("t", 1), 2, envelope).status()));
}

TEST(RocksDbKeysTest, RecordWithoutVersionIsDataLoss) {
  storage::v1::ShardRecord record = *Create(KeyOf("t", 1), "r").next;
  record.mutable_manifest()->set_version(0);
  EXPECT_TRUE(absl::IsDataLoss(DecodeRecord(KeyOf("t", 1), Wrap(record)).status()));
}

}  // namespace
}  // namespace claimd::store::rocksdb_keys
