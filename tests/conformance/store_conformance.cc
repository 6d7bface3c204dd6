#include "tests/conformance/store_conformance.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <gtest/gtest.h>

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/base/uuid.h"
#include "server/store/manifest_store.h"
#include "server/store/memory_store.h"
#include "server/store/rocksdb_options.h"
#include "server/store/rocksdb_store.h"
#include "server/store/shard_key.h"

namespace claimd::store {
namespace {

using storage::v1::MutationKind;
using storage::v1::ShardRecord;

absl::StatusOr<std::unique_ptr<ManifestStore>> OpenMemory(const std::string& /*directory*/,
                                                          const RetentionOptions& retention) {
  return std::make_unique<MemoryStore>(retention);
}

absl::StatusOr<std::unique_ptr<ManifestStore>> OpenRocksDb(const std::string& directory,
                                                           const RetentionOptions& retention) {
  RocksDbOptions options;
  options.retention = retention;
  absl::StatusOr<std::unique_ptr<RocksDbStore>> store =
      RocksDbStore::Open(directory, std::move(options));
  if (!store.ok()) return store.status();
  return *std::move(store);
}

// The swap from 'head' to a copy of it with the next version, to be changed before Seal.
struct Draft {
  SwapRequest request;
  std::shared_ptr<ShardRecord> next = std::make_shared<ShardRecord>();

  v1::ShardManifest& manifest() const { return *next->mutable_manifest(); }
};

Draft Next(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id) {
  Draft draft;
  draft.request.key = key;
  draft.request.request_id = std::string(request_id);
  if (head == nullptr) {
    draft.manifest().set_table(key.table);
    draft.manifest().set_shard_id(base::FormatUuid(key.shard_id));
    draft.manifest().set_status(v1::SHARD_STATUS_ACTIVE);
    draft.manifest().set_current_generation(1);
    draft.next->set_first_version(1);
  } else {
    *draft.next = *head;
    draft.request.expected_version = head->manifest().version();
  }
  draft.manifest().set_version(draft.request.expected_version + 1);
  draft.next->clear_request_ids();
  draft.next->add_request_ids(std::string(request_id));
  return draft;
}

void EndClaim(v1::ClaimEndReason reason, Draft* draft) {
  if (!draft->manifest().has_claim()) return;
  v1::ClaimRecord ended;
  *ended.mutable_claim() = draft->manifest().claim();
  ended.set_end_reason(reason);
  draft->manifest().clear_claim();
  draft->next->set_ended_claims(draft->next->ended_claims() + 1);
  draft->request.applied.set_ended_claim_sequence(draft->next->ended_claims());
  draft->request.ended_claim = std::move(ended);
}

SwapRequest Seal(Draft draft, MutationKind kind) {
  draft.request.applied.set_kind(kind);
  draft.request.applied.set_version(draft.manifest().version());
  draft.request.applied.set_writer_epoch(draft.manifest().writer_epoch());
  draft.request.next = std::move(draft.next);
  return std::move(draft.request);
}

}  // namespace

void PrintTo(const StoreUnderTest& store, std::ostream* out) { *out << store.name; }

std::vector<StoreUnderTest> AllStores() {
  return {{.name = "Memory", .durable = false, .open = OpenMemory},
          {.name = "RocksDb", .durable = true, .open = OpenRocksDb}};
}

std::string NameOf(const ::testing::TestParamInfo<StoreUnderTest>& info) { return info.param.name; }

ScopedDirectory::ScopedDirectory() {
  path_ = absl::StrCat(::testing::TempDir(), "/claimd-store-XXXXXX");
  if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "no temporary directory " << path_;
}

ScopedDirectory::~ScopedDirectory() {
  std::error_code ignored;  // The test is over; what is left behind harms nobody.
  std::filesystem::remove_all(path_, ignored);
}

std::string ScopedDirectory::At(absl::string_view name) const {
  return absl::StrCat(path_, "/", name);
}

absl::StatusOr<ShardState> Load(ManifestStore* store, const ShardKey& key,
                                absl::string_view request_id) {
  Inbox<absl::StatusOr<ShardState>> inbox;
  store->Load(key, request_id,
              [&inbox](absl::StatusOr<ShardState> state) { inbox.Put(std::move(state)); });
  return inbox.Take();
}

absl::StatusOr<ShardRecordPtr> LoadVersion(ManifestStore* store, const ShardKey& key,
                                           uint64_t version) {
  Inbox<absl::StatusOr<ShardRecordPtr>> inbox;
  store->LoadVersion(key, version, [&inbox](absl::StatusOr<ShardRecordPtr> record) {
    inbox.Put(std::move(record));
  });
  return inbox.Take();
}

SwapOutcome Swap(ManifestStore* store, SwapRequest request) {
  Inbox<SwapOutcome> inbox;
  store->CompareAndSwap(std::move(request),
                        [&inbox](SwapOutcome outcome) { inbox.Put(std::move(outcome)); });
  return inbox.Take();
}

absl::StatusOr<ListPage> List(ManifestStore* store, ListQuery query) {
  Inbox<absl::StatusOr<ListPage>> inbox;
  store->List(std::move(query),
              [&inbox](absl::StatusOr<ListPage> page) { inbox.Put(std::move(page)); });
  return inbox.Take();
}

absl::StatusOr<VersionPage> ListVersions(ManifestStore* store, HistoryQuery query) {
  Inbox<absl::StatusOr<VersionPage>> inbox;
  store->ListVersions(std::move(query),
                      [&inbox](absl::StatusOr<VersionPage> page) { inbox.Put(std::move(page)); });
  return inbox.Take();
}

absl::StatusOr<ClaimPage> ListClaims(ManifestStore* store, HistoryQuery query) {
  Inbox<absl::StatusOr<ClaimPage>> inbox;
  store->ListClaims(std::move(query),
                    [&inbox](absl::StatusOr<ClaimPage> page) { inbox.Put(std::move(page)); });
  return inbox.Take();
}

ShardKey KeyOf(absl::string_view table, uint32_t number) {
  ShardKey key{.table = std::string(table), .shard_id = {}};
  for (unsigned i = 0; i < 4; ++i) {
    key.shard_id[i] = static_cast<uint8_t>(number >> (24U - 8U * i) & 0xffU);
  }
  key.shard_id[15] = 1;
  return key;
}

SwapRequest Create(const ShardKey& key, absl::string_view request_id) {
  return Seal(Next(key, nullptr, request_id), storage::v1::MUTATION_KIND_INITIALIZE);
}

SwapRequest Import(const ShardKey& key, uint64_t version, absl::string_view request_id) {
  Draft draft = Next(key, nullptr, request_id);
  draft.manifest().set_version(version);
  draft.next->set_first_version(version);
  return Seal(std::move(draft), storage::v1::MUTATION_KIND_IMPORT);
}

SwapRequest Commit(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id) {
  return Seal(Next(key, head, request_id), storage::v1::MUTATION_KIND_COMMIT);
}

SwapRequest Claim(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id) {
  Draft draft = Next(key, head, request_id);
  EndClaim(v1::CLAIM_END_REASON_SUPERSEDED, &draft);
  draft.manifest().set_writer_epoch(draft.manifest().writer_epoch() + 1);
  draft.manifest().mutable_claim()->set_writer_epoch(draft.manifest().writer_epoch());
  draft.manifest().mutable_claim()->set_request_id(std::string(request_id));
  return Seal(std::move(draft), storage::v1::MUTATION_KIND_CLAIM);
}

SwapRequest Release(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id) {
  Draft draft = Next(key, head, request_id);
  EndClaim(v1::CLAIM_END_REASON_RELEASED, &draft);
  return Seal(std::move(draft), storage::v1::MUTATION_KIND_RELEASE);
}

SwapRequest Drop(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id) {
  Draft draft = Next(key, head, request_id);
  EndClaim(v1::CLAIM_END_REASON_DROPPED, &draft);
  draft.manifest().set_status(v1::SHARD_STATUS_DROPPED);
  draft.next->set_first_version(draft.manifest().version());
  return Seal(std::move(draft), storage::v1::MUTATION_KIND_DROP);
}

SwapRequest Recreate(const ShardKey& key, const ShardRecordPtr& tombstone,
                     absl::string_view request_id) {
  Draft draft = Next(key, tombstone, request_id);
  draft.manifest().set_status(v1::SHARD_STATUS_ACTIVE);
  draft.next->set_first_version(tombstone->manifest().version());
  return Seal(std::move(draft), storage::v1::MUTATION_KIND_INITIALIZE);
}

SwapRequest Remember(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id,
                     int ids_max) {
  Draft draft = Next(key, head, request_id);
  *draft.next = *head;
  if (draft.next->request_ids_size() >= ids_max) {
    draft.next->mutable_request_ids()->DeleteSubrange(1, 1);
  }
  draft.next->add_request_ids(std::string(request_id));
  return Seal(std::move(draft), storage::v1::MUTATION_KIND_SEAL);
}

ShardRecordPtr MustSwap(ManifestStore* store, SwapRequest request) {
  ShardRecordPtr next = request.next;
  const std::string request_id = request.request_id;
  const SwapOutcome outcome = Swap(store, std::move(request));
  EXPECT_EQ(KindOf(outcome), "committed") << "request " << request_id;
  return next;
}

std::string KindOf(const SwapOutcome& outcome) {
  if (std::holds_alternative<SwapCommitted>(outcome)) return "committed";
  if (std::holds_alternative<SwapConflict>(outcome)) return "conflict";
  if (std::holds_alternative<SwapNotApplied>(outcome)) return "not applied";
  return "unknown";
}

std::vector<uint64_t> KeptVersions(ManifestStore* store, const ShardKey& key) {
  std::vector<uint64_t> versions;
  HistoryQuery query{.key = key, .results_max = 3};
  do {
    const absl::StatusOr<VersionPage> page = ListVersions(store, query);
    if (!page.ok()) {
      ADD_FAILURE() << page.status();
      return versions;
    }
    EXPECT_LE(page->records.size(), query.results_max);
    for (const ShardRecordPtr& record : page->records) {
      const uint64_t version = record->manifest().version();
      versions.push_back(version);
      const absl::StatusOr<ShardRecordPtr> alone = LoadVersion(store, key, version);
      EXPECT_TRUE(alone.ok()) << "version " << version << ": " << alone.status();
      if (!alone.ok()) continue;
      EXPECT_EQ((*alone)->SerializeAsString(), record->SerializeAsString());
    }
    query.before = page->next_before;
  } while (query.before != 0);
  return versions;
}

std::vector<uint64_t> KeptClaims(ManifestStore* store, const ShardKey& key) {
  std::vector<uint64_t> sequences;
  HistoryQuery query{.key = key, .results_max = 3};
  do {
    const absl::StatusOr<ClaimPage> page = ListClaims(store, query);
    if (!page.ok()) {
      ADD_FAILURE() << page.status();
      return sequences;
    }
    EXPECT_LE(page->claims.size(), query.results_max);
    for (const ClaimEntry& claim : page->claims) sequences.push_back(claim.sequence);
    query.before = page->next_before;
  } while (query.before != 0);
  return sequences;
}

std::vector<std::string> Remembered(ManifestStore* store, const ShardKey& key,
                                    const std::vector<std::string>& request_ids) {
  std::vector<std::string> remembered;
  for (const std::string& request_id : request_ids) {
    const absl::StatusOr<ShardState> state = Load(store, key, request_id);
    EXPECT_TRUE(state.ok()) << state.status();
    if (state.ok() && state->applied.has_value()) remembered.push_back(request_id);
  }
  return remembered;
}

ManifestStore* StoreConformanceTest::Open(const RetentionOptions& retention) {
  Close();
  absl::StatusOr<std::unique_ptr<ManifestStore>> store =
      GetParam().open(directory_.At("store"), retention);
  EXPECT_TRUE(store.ok()) << store.status();
  if (!store.ok()) std::abort();  // No test can go on without a store.
  store_ = *std::move(store);
  return store_.get();
}

}  // namespace claimd::store
