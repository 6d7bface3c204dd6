#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/base/uuid.h"
#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"
#include "tests/conformance/store_conformance.h"

namespace claimd::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ListingConformanceTest : public StoreConformanceTest {
 protected:
  // Makes shards 0 … count - 1 of a table.
  static void Fill(ManifestStore* store, const std::string& table, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) MustSwap(store, Create(KeyOf(table, i), "r"));
  }
};

INSTANTIATE_TEST_SUITE_P(Listing, ListingConformanceTest, ::testing::ValuesIn(AllStores()), NameOf);

std::string IdOf(uint32_t number) { return base::FormatUuid(KeyOf("t", number).shard_id); }

std::vector<std::string> IdsIn(const ListPage& page) {
  std::vector<std::string> ids;
  for (const ShardRecordPtr& record : page.records) ids.push_back(record->manifest().shard_id());
  return ids;
}

TEST_P(ListingConformanceTest, TableWithoutShardsIsEmpty) {
  ManifestStore* store = Open();
  Fill(store, "t", 1);
  const auto page = List(store, {.table = "u"});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->records, IsEmpty());
  EXPECT_FALSE(page->next_after.has_value());
}

TEST_P(ListingConformanceTest, ListsOneTableInTheOrderOfIds) {
  ManifestStore* store = Open();
  for (const char* table : {"a", "ab", "b"}) {
    for (const uint32_t number : {3U, 1U, 0U, 2U}) {
      MustSwap(store, Create(KeyOf(table, number), "r"));
    }
  }
  for (const char* table : {"a", "ab", "b"}) {
    const auto page = List(store, {.table = table});
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_THAT(IdsIn(*page), ElementsAre(IdOf(0), IdOf(1), IdOf(2), IdOf(3))) << table;
    EXPECT_FALSE(page->next_after.has_value());
    for (const ShardRecordPtr& record : page->records) EXPECT_EQ(record->manifest().table(), table);
  }
}

TEST_P(ListingConformanceTest, PagesGoOnBehindTheLastShard) {
  ManifestStore* store = Open();
  Fill(store, "t", 5);
  ListQuery query{.table = "t", .results_max = 2};
  auto page = List(store, std::move(query));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(IdsIn(*page), ElementsAre(IdOf(0), IdOf(1)));
  ASSERT_TRUE(page->next_after.has_value());
  page = List(store, {.table = "t", .after = page->next_after, .results_max = 3});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(IdsIn(*page), ElementsAre(IdOf(2), IdOf(3), IdOf(4)));
  EXPECT_FALSE(page->next_after.has_value()) << "there is no more";
}

TEST_P(ListingConformanceTest, GoesOnBehindAShardThatIsNotThere) {
  ManifestStore* store = Open();
  MustSwap(store, Create(KeyOf("t", 1), "r"));
  MustSwap(store, Create(KeyOf("t", 3), "r"));
  const auto page = List(store, {.table = "t", .after = KeyOf("t", 2).shard_id});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(IdsIn(*page), ElementsAre(IdOf(3)));
}

TEST_P(ListingConformanceTest, FirstAndLastIdsAreListed) {
  ManifestStore* store = Open();
  ShardKey lowest{.table = "t", .shard_id = {}};
  ShardKey highest = lowest;
  highest.shard_id.fill(0xff);
  MustSwap(store, Create(lowest, "r"));
  MustSwap(store, Create(highest, "r"));
  MustSwap(store, Create(KeyOf("t\x7f", 1), "r"));
  const auto page = List(store, {.table = "t"});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->records.size(), 2);
}

TEST_P(ListingConformanceTest, FilterChoosesAmongAllHeads) {
  ManifestStore* store = Open();
  Fill(store, "t", 4);
  MustSwap(store, Drop(KeyOf("t", 2), Load(store, KeyOf("t", 2))->record, "drop"));
  ListQuery query{.table = "t"};
  query.filter = [](const storage::v1::ShardRecord& record) {
    return record.manifest().status() == v1::SHARD_STATUS_DROPPED;
  };
  const auto page = List(store, std::move(query));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(IdsIn(*page), ElementsAre(IdOf(2)));
}

TEST_P(ListingConformanceTest, ScanEndsAtItsBoundEvenIfNothingWasFound) {
  ManifestStore* store = Open();
  Fill(store, "t", 5);
  ListQuery query{.table = "t", .scanned_max = 3};
  query.filter = [](const storage::v1::ShardRecord& /*record*/) { return false; };
  const auto page = List(store, std::move(query));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->records, IsEmpty());
  EXPECT_EQ(page->next_after, KeyOf("t", 2).shard_id);
}

TEST_P(ListingConformanceTest, PageEndsWithTheShardThatReachesItsBytes) {
  ManifestStore* store = Open();
  Fill(store, "t", 3);
  const size_t size = Load(store, KeyOf("t", 0))->record->ByteSizeLong();
  auto page = List(store, {.table = "t", .bytes_max = 1});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(IdsIn(*page), ElementsAre(IdOf(0)));
  EXPECT_EQ(page->next_after, KeyOf("t", 0).shard_id);
  page = List(store, {.table = "t", .bytes_max = size + 1});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_LE(page->records.size(), 2);
  EXPECT_TRUE(page->next_after.has_value());
}

TEST_P(ListingConformanceTest, ListsEveryShardOnceWhileOthersAreWritten) {
  ManifestStore* store = Open();
  constexpr uint32_t kShards = 200;
  // Even shards are there from the start; odd ones come, and all change, while pages are read.
  for (uint32_t i = 0; i < kShards; i += 2) MustSwap(store, Create(KeyOf("t", i), "r"));
  std::thread writer([store] {
    for (uint32_t i = 1; i < kShards; i += 2) {
      MustSwap(store, Create(KeyOf("t", i), "r"));
      const ShardKey key = KeyOf("t", i - 1);
      MustSwap(store, Claim(key, Load(store, key)->record, "c"));
    }
  });
  std::map<std::string, int> seen;
  std::optional<base::Uuid> after;
  do {
    const auto page = List(store, {.table = "t", .after = after, .results_max = 7});
    ASSERT_TRUE(page.ok()) << page.status();
    for (const std::string& id : IdsIn(*page)) ++seen[id];
    after = page->next_after;
  } while (after.has_value());
  writer.join();
  for (uint32_t i = 0; i < kShards; i += 2) EXPECT_EQ(seen[IdOf(i)], 1) << "shard " << i;
  for (const auto& [id, count] : seen) EXPECT_LE(count, 1) << id;
}

}  // namespace
}  // namespace claimd::store
