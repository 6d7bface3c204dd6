#ifndef CLAIMD_SERVER_STORE_MANIFEST_STORE_H_
#define CLAIMD_SERVER_STORE_MANIFEST_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "claimd/storage/v1/storage.pb.h"

#include "server/base/uuid.h"
#include "server/store/shard_key.h"

namespace claimd::store {

// An immutable record, shared between the store, the rules and the answer without copying.
using ShardRecordPtr = std::shared_ptr<const claimd::storage::v1::ShardRecord>;

// What is stored of one shard at one moment.
struct ShardState {
  // The head, or null if the shard was never made. A tombstone is a head with status DROPPED.
  ShardRecordPtr record;
  // What the request id that was asked about did, if it is remembered.
  std::optional<claimd::storage::v1::AppliedRequest> applied;
};

// Another shard that must still be at this version (0: absent) when a swap lands.
struct Guard {
  ShardKey key;
  uint64_t expected_version = 0;
};

// One atomic change of one shard.
struct SwapRequest {
  ShardKey key;
  // Version of the head that this change replaces; 0 if there must be no head.
  uint64_t expected_version = 0;
  // The new head. Its version is expected_version + 1, or expected_version when the swap only
  // remembers one more request id, or anything when expected_version is 0 (an import).
  ShardRecordPtr next;
  // Remembered under request_id together with the change. REQUIRES: not empty.
  std::string request_id;
  claimd::storage::v1::AppliedRequest applied;
  // Goes into the claim history at sequence next->ended_claims().
  std::optional<claimd::v1::ClaimRecord> ended_claim;
  std::vector<Guard> guards;
};

// The change is durable.
struct SwapCommitted {
  // Store revision of the change; strictly increasing in the order of changes.
  uint64_t revision = 0;
};
// Nothing was written: head or guard is at another version. 'current' is durable.
struct SwapConflict {
  ShardState current;
};
// Nothing was written and nothing will be, for a reason other than a conflict.
// Unavailable, or DataLoss when the stored head cannot be trusted.
struct SwapNotApplied {
  absl::Status status;
};
// It cannot be said whether the change was or will be written.
struct SwapUnknown {
  absl::Status status;
};
using SwapOutcome = std::variant<SwapCommitted, SwapConflict, SwapNotApplied, SwapUnknown>;

// A scan over the shards of one table in the order of their ids.
struct ListQuery {
  std::string table;
  // Start behind this shard.
  std::optional<base::Uuid> after = std::nullopt;
  // Bounds of one page: the shard that reaches one of them ends it, so that at least one is looked
  // at.
  size_t results_max = 100;
  size_t bytes_max = size_t{2} << 20U;
  size_t scanned_max = 10'000;
  // Which heads to answer, tombstones included. May run on any thread. Null: all.
  absl::AnyInvocable<bool(const claimd::storage::v1::ShardRecord&) const> filter = nullptr;
};
struct ListPage {
  std::vector<ShardRecordPtr> records;
  // Set if there may be more: the last shard that was looked at.
  std::optional<base::Uuid> next_after;
};

// A scan over one shard's versions or claims, newest first.
struct HistoryQuery {
  ShardKey key;
  // Only entries with a smaller version or sequence number. 0: from the newest.
  uint64_t before = 0;
  // Bounds of one page: the entry that reaches one of them ends it.
  size_t results_max = 100;
  size_t bytes_max = size_t{2} << 20U;
};
struct VersionPage {
  // The head comes first when 'before' is 0.
  std::vector<ShardRecordPtr> records;
  // Set if there is more: pass it as 'before'.
  uint64_t next_before = 0;
};
struct ClaimEntry {
  uint64_t sequence = 0;
  claimd::v1::ClaimRecord record;
};
struct ClaimPage {
  // Ended claims only; the one that is held lives in the head.
  std::vector<ClaimEntry> claims;
  uint64_t next_before = 0;
};

struct StoreInfo {
  // "rocksdb", "etcd", "memory".
  std::string kind;
  // Made with the store, kept for its life.
  base::Uuid store_id{};
  uint32_t format_version = 0;
  // Revision of the newest durable change.
  uint64_t revision = 0;
};

// How much history a store keeps.
struct RetentionOptions {
  // Versions of each shard, head included; at least 1.
  uint64_t history_versions = 64;
  // Ended claims of each shard; at least 1.
  uint64_t claim_history = 1'000;
};

// Keeps shard heads behind compare-and-swap, with a bounded history (DESIGN §6, §7).
//
// Thread-safe. Every callback runs exactly once, on any thread, perhaps before the call returns,
// and never under a lock of the store. A callback must not block. Destroying a store waits for all
// callbacks; no call may be made after destruction began.
//
// Reads are linearizable and show durable data only. Each swap keeps the history at its size in
// constant time: the version and the claim that fall out are removed together with the request ids
// that they made. (A claim's request id outlives its version and goes with its claim-history
// entry.) A swap to status DROPPED removes the shard's version history, keeps its claim history and
// forgets all request ids but those of claims and its own.
//
// Errors: Unavailable when the store cannot be read or written, DataLoss when what it holds cannot
// be decoded or contradicts its key. Neither is ever answered as "absent".
class ManifestStore {
 public:
  template <typename T>
  using Callback = absl::AnyInvocable<void(absl::StatusOr<T>)>;

  virtual ~ManifestStore() = default;

  // Reads a head, and what 'request_id' did to this shard if it is remembered ("": do not ask).
  virtual void Load(const ShardKey& key, absl::string_view request_id,
                    Callback<ShardState> done) = 0;

  // Reads one kept version, the head's included. NotFound: not kept, or never written.
  virtual void LoadVersion(const ShardKey& key, uint64_t version,
                           Callback<ShardRecordPtr> done) = 0;

  // Applies one change if the head is at the expected version and all guards hold.
  virtual void CompareAndSwap(SwapRequest request, absl::AnyInvocable<void(SwapOutcome)> done) = 0;

  virtual void List(ListQuery query, Callback<ListPage> done) = 0;
  virtual void ListVersions(HistoryQuery query, Callback<VersionPage> done) = 0;
  virtual void ListClaims(HistoryQuery query, Callback<ClaimPage> done) = 0;

  // Never blocks.
  virtual StoreInfo Info() const = 0;

  // Secret of this store, kept for its life: authenticates page tokens, so that they survive a
  // restart and do not cross stores.
  virtual std::string TokenKey() const = 0;

  // OK while the store takes writes.
  virtual absl::Status Health() const = 0;
};

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_MANIFEST_STORE_H_
