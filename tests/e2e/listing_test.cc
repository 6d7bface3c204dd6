#include <algorithm>
#include <atomic>
#include <cstddef>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "claimd/v1/shard_arbiter.pb.h"

#include "tests/e2e/harness/client.h"
#include "tests/e2e/harness/refusal.h"
#include "tests/e2e/harness/server_process.h"
#include "tests/e2e/harness/shared_server.h"
#include "tests/e2e/harness/state_fingerprint.h"

namespace claimd::e2e {
namespace {

using ::grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

class ListingTest : public SharedServerTest {
 protected:
  // A table of its own with this many claimed shards; their ids in order.
  static std::vector<std::string> MakeShards(const Client& to, const std::string& table,
                                             int count) {
    constexpr int kBatch = 1000;
    std::vector<std::string> ids;
    while (static_cast<int>(ids.size()) < count) {
      v1::BatchClaimEpochRequest batch;
      while (batch.requests_size() < kBatch && static_cast<int>(ids.size()) < count) {
        ids.push_back(RandomUuid());
        *batch.add_requests() = ClaimOf(Shard{table, ids.back()}, "maker");
      }
      const auto made = to.Call(batch);
      EXPECT_TRUE(IsOk(made.status));
      for (const auto& result : made.response.results()) EXPECT_TRUE(result.has_response());
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }

  static std::vector<std::string> IdsOf(const v1::ListShardsResponse& page) {
    std::vector<std::string> ids;
    for (const auto& shard : page.shards()) ids.push_back(shard.shard_id());
    return ids;
  }

  static std::vector<std::string> ListAll(const Client& from, v1::ListShardsRequest request) {
    std::vector<std::string> ids;
    do {
      const auto page = from.Call(request);
      EXPECT_TRUE(IsOk(page.status));
      const std::vector<std::string> some = IdsOf(page.response);
      ids.insert(ids.end(), some.begin(), some.end());
      request.set_page_token(page.response.next_page_token());
    } while (!request.page_token().empty());
    return ids;
  }

  static v1::ListShardsRequest ListOf(const std::string& table, int page_size = 0) {
    v1::ListShardsRequest request;
    request.set_table(table);
    request.set_page_size(page_size);
    return request;
  }

  static void ExpectBadToken(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), StatusCode::INVALID_ARGUMENT) << Describe(status);
    EXPECT_THAT(BadFields(status), ElementsAre("page_token"));
  }
};

TEST_F(ListingTest, TenThousandShardsAreListedOnceEachWhileClaimsGoOn) {
  constexpr int kShards = 10'000;
  constexpr int kPage = 137;
  const std::string table = "ten thousand";
  const std::vector<std::string> ids = MakeShards(client(), table, kShards);

  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::vector<std::thread> writers;
  constexpr size_t kWriters = 2;
  writers.reserve(kWriters);
  for (size_t w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      const Client own(server().address());
      for (size_t i = w; !stop; i += 7919) {
        // Half of the claims renew shards of the list, half make new ones between them.
        const Shard shard{table, written % 2 == 0 ? ids[i % ids.size()] : RandomUuid()};
        if (own.Claim(shard, "meanwhile").ok()) ++written;
      }
    });
  }
  const std::vector<std::string> listed = ListAll(client(), ListOf(table, kPage));
  stop = true;
  for (auto& writer : writers) writer.join();
  EXPECT_GT(written, 0) << "nothing went on meanwhile";

  EXPECT_TRUE(std::is_sorted(listed.begin(), listed.end()));
  EXPECT_EQ(std::set<std::string>(listed.begin(), listed.end()).size(), listed.size())
      << "one is listed twice";
  EXPECT_TRUE(std::includes(listed.begin(), listed.end(), ids.begin(), ids.end()))
      << "one is missing";

  // Filters that match few leave pages short or empty, and lose nothing.
  auto request = ListOf(table, 1000);
  request.set_claimant("nobody");
  EXPECT_THAT(ListAll(client(), request), ElementsAre());
  request.set_claimant("maker");
  std::vector<std::string> parts = ListAll(client(), request);
  request.set_claimant("meanwhile");
  const std::vector<std::string> renewed = ListAll(client(), request);
  parts.insert(parts.end(), renewed.begin(), renewed.end());
  std::sort(parts.begin(), parts.end());
  EXPECT_EQ(parts, ListAll(client(), ListOf(table, 1000)));
}

TEST_F(ListingTest, FiltersByStatusClaimantAndSpec) {
  const std::string table = "filters";
  const Shard active = FreshShard(table);
  const Shard sealed = FreshShard(table);
  const Shard dropped = FreshShard(table);
  const Shard free = FreshShard(table);
  ASSERT_TRUE(IsOk(client().Claim(active, "a", 1).status));
  ASSERT_TRUE(IsOk(client().Claim(sealed, "b", 2).status));
  ASSERT_TRUE(IsOk(client().Seal(sealed).status));
  ASSERT_TRUE(IsOk(client().Claim(dropped, "a", 1).status));
  ASSERT_TRUE(IsOk(client().Seal(dropped).status));
  ASSERT_TRUE(IsOk(client().Drop(dropped).status));
  ASSERT_TRUE(IsOk(client().Call(For<v1::InitializeShardRequest>(free)).status));

  auto request = ListOf(table);
  EXPECT_THAT(ListAll(client(), request), UnorderedElementsAre(active.id, sealed.id, free.id));
  request.set_status(v1::SHARD_STATUS_ACTIVE);
  EXPECT_THAT(ListAll(client(), request), UnorderedElementsAre(active.id, free.id));
  request.set_status(v1::SHARD_STATUS_SEALED);
  EXPECT_THAT(ListAll(client(), request), ElementsAre(sealed.id));
  request.set_status(v1::SHARD_STATUS_DROPPED);
  EXPECT_THAT(ListAll(client(), request), ElementsAre(dropped.id));
  request.clear_status();
  request.set_claimant("a");
  EXPECT_THAT(ListAll(client(), request), ElementsAre(active.id));
  request.clear_claimant();
  request.set_shard_spec_id(0);
  EXPECT_THAT(ListAll(client(), request), ElementsAre(free.id));
  request.set_shard_spec_id(2);
  EXPECT_THAT(ListAll(client(), request), ElementsAre(sealed.id));
}

TEST_F(ListingTest, ViewsAnswerShardsWithAndWithoutSsTables) {
  const std::string table = "views";
  const Shard shard = FreshShard(table);
  const auto claim = client().Claim(shard, "writer");
  const auto stored = client().Call(FlushAfter(claim.response.manifest())).response.manifest();
  auto request = ListOf(table);
  request.set_view(v1::SHARD_VIEW_FULL);
  EXPECT_EQ(Bytes(client().Call(request).response.shards(0)), Bytes(stored));
  auto basic = stored;
  basic.clear_sstables();
  request.set_view(v1::SHARD_VIEW_BASIC);
  EXPECT_EQ(Bytes(client().Call(request).response.shards(0)), Bytes(basic));
  request.clear_view();
  EXPECT_EQ(Bytes(client().Call(request).response.shards(0)), Bytes(basic));
}

TEST_F(ListingTest, TableWithoutShardsIsEmptyAndNeighboursStayOut) {
  ASSERT_TRUE(IsOk(client().Claim(FreshShard("neighbour"), "writer").status));
  ASSERT_TRUE(IsOk(client().Claim(FreshShard("neighbours and more"), "writer").status));
  EXPECT_THAT(ListAll(client(), ListOf("neighbours")), ElementsAre());
  EXPECT_EQ(ListAll(client(), ListOf("neighbour")).size(), 1U);
}

TEST_F(ListingTest, PageSizesAreCapped) {
  const std::string table = "sizes";
  MakeShards(client(), table, 1200);
  EXPECT_EQ(client().Call(ListOf(table)).response.shards_size(), 100);
  EXPECT_EQ(client().Call(ListOf(table, 7)).response.shards_size(), 7);
  EXPECT_EQ(client().Call(ListOf(table, 1000)).response.shards_size(), 1000);
  EXPECT_EQ(client().Call(ListOf(table, 2'147'483'647)).response.shards_size(), 1000);
  const auto negative = client().Call(ListOf(table, -1));
  EXPECT_EQ(negative.status.error_code(), StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(BadFields(negative.status), ElementsAre("page_size"));
}

TEST_F(ListingTest, PageOfLargeShardsStaysBelowTheMessageLimit) {
  const std::string table = "large";
  constexpr int kShards = 8;
  for (int i = 0; i < kShards; ++i) {
    auto commit = CommitAfter(client().Claim(FreshShard(table), "writer").response.manifest());
    (*commit.mutable_manifest()->mutable_annotations())["blob"] = std::string(900'000, 'x');
    ASSERT_TRUE(IsOk(client().Call(commit).status));
  }
  auto request = ListOf(table, 1000);
  request.set_view(v1::SHARD_VIEW_FULL);
  const auto page = client().Call(request);
  ASSERT_TRUE(IsOk(page.status));
  EXPECT_LT(page.response.ByteSizeLong(), size_t{4} << 20U) << "what gRPC clients take by default";
  EXPECT_EQ(ListAll(client(), request).size(), static_cast<size_t>(kShards));
}

TEST_F(ListingTest, ForgedTokensAreRefused) {
  const std::string table = "forged";
  MakeShards(client(), table, 10);
  auto request = ListOf(table, 3);
  const std::string token = client().Call(request).response.next_page_token();
  ASSERT_FALSE(token.empty());
  std::vector<std::string> forged = {
      "x",         "AAAA",          std::string(5000, 'A'),
      token + "A", token.substr(1), token.substr(0, token.size() - 1)};
  // Not the last two characters: some of their bits may carry nothing.
  for (size_t i = 0; i + 2 < token.size(); i += 3) {
    forged.push_back(token);
    forged.back()[i] = token[i] == 'B' ? 'C' : 'B';
  }
  for (const std::string& bad : forged) {
    request.set_page_token(bad);
    ExpectBadToken(client().Call(request).status);
  }
  request.set_page_token(token);
  EXPECT_TRUE(IsOk(client().Call(request).status));
}

TEST_F(ListingTest, TokenServesOnlyTheListingThatItCameFrom) {
  const std::string table = "scope";
  const std::vector<std::string> ids = MakeShards(client(), table, 10);
  MakeShards(client(), "other scope", 10);
  auto request = ListOf(table, 3);
  const std::string token = client().Call(request).response.next_page_token();

  auto other_table = ListOf("other scope", 3);
  other_table.set_page_token(token);
  ExpectBadToken(client().Call(other_table).status);
  auto other_status = request;
  other_status.set_page_token(token);
  other_status.set_status(v1::SHARD_STATUS_SEALED);
  ExpectBadToken(client().Call(other_status).status);
  auto other_claimant = request;
  other_claimant.set_page_token(token);
  other_claimant.set_claimant("maker");
  ExpectBadToken(client().Call(other_claimant).status);
  auto other_spec = request;
  other_spec.set_page_token(token);
  other_spec.set_shard_spec_id(0);
  ExpectBadToken(client().Call(other_spec).status);

  const Shard shard{table, ids.front()};
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(IsOk(client().Claim(shard, "again").status));
  auto claims = For<v1::ListClaimsRequest>(shard);
  claims.set_page_size(2);
  claims.set_page_token(token);
  ExpectBadToken(client().Call(claims).status);
  claims.clear_page_token();
  const std::string claims_token = client().Call(claims).response.next_page_token();
  ASSERT_FALSE(claims_token.empty());
  auto versions = For<v1::ListManifestVersionsRequest>(shard);
  versions.set_page_token(claims_token);
  ExpectBadToken(client().Call(versions).status);
  auto other_shard = For<v1::ListClaimsRequest>(Shard{table, ids.back()});
  other_shard.set_page_token(claims_token);
  ExpectBadToken(client().Call(other_shard).status);

  request.set_page_token(token);
  request.set_page_size(5);
  EXPECT_TRUE(IsOk(client().Call(request).status)) << "the page size may change";
}

TEST_F(ListingTest, TokenSurvivesARestartAndDoesNotCrossStores) {
  auto own = ServerProcess::Start();
  ASSERT_TRUE(own.ok()) << own.status();
  auto request = ListOf("restart", 3);
  std::vector<std::string> ids;
  std::vector<std::string> first_page;
  {
    const Client before((*own)->address());
    ids = MakeShards(before, "restart", 10);
    const auto page = before.Call(request);
    first_page = IdsOf(page.response);
    request.set_page_token(page.response.next_page_token());
  }
  (*own)->Kill9();
  const absl::Status restarted = (*own)->Restart();
  ASSERT_TRUE(restarted.ok()) << restarted;
  const std::vector<std::string> rest = ListAll(Client((*own)->address()), request);
  first_page.insert(first_page.end(), rest.begin(), rest.end());
  EXPECT_EQ(first_page, ids);

  MakeShards(client(), "restart", 10);
  ExpectBadToken(client().Call(request).status);
}

}  // namespace
}  // namespace claimd::e2e
