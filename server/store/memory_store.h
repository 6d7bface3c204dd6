#ifndef CLAIMD_SERVER_STORE_MEMORY_STORE_H_
#define CLAIMD_SERVER_STORE_MEMORY_STORE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "claimd/storage/v1/storage.pb.h"
#include "claimd/v1/manifest.pb.h"

#include "server/base/mutex.h"
#include "server/base/random.h"
#include "server/base/uuid.h"
#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"

namespace claimd::store {

// A store that keeps everything in memory and nothing across a restart: for tests only.
//
// Thread-safe. Every callback runs before the call returns, on the calling thread.
class MemoryStore final : public ManifestStore {
 public:
  // 'random' is used here only.
  explicit MemoryStore(RetentionOptions retention = {},
                       base::RandomSource* random = base::SystemRandom());

  void Load(const ShardKey& key, absl::string_view request_id, Callback<ShardState> done) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void LoadVersion(const ShardKey& key, uint64_t version, Callback<ShardRecordPtr> done) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void CompareAndSwap(SwapRequest request, absl::AnyInvocable<void(SwapOutcome)> done) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void List(ListQuery query, Callback<ListPage> done) override ABSL_LOCKS_EXCLUDED(mutex_);
  void ListVersions(HistoryQuery query, Callback<VersionPage> done) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void ListClaims(HistoryQuery query, Callback<ClaimPage> done) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  StoreInfo Info() const override ABSL_LOCKS_EXCLUDED(mutex_);
  std::string TokenKey() const override { return token_key_; }
  absl::Status Health() const override { return absl::OkStatus(); }

 private:
  struct Shard {
    ShardRecordPtr head;
    std::map<uint64_t, ShardRecordPtr> history;
    std::map<uint64_t, v1::ClaimRecord> claims;
    absl::flat_hash_map<std::string, storage::v1::AppliedRequest> requests;
  };

  // Version of the head, 0 if there is none.
  uint64_t VersionOf(const ShardKey& key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  ShardState StateOf(const ShardKey& key, absl::string_view request_id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  SwapOutcome Swap(SwapRequest request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Replace(const SwapRequest& request, Shard* shard) const;
  void TrimClaims(uint64_t ended_claims, Shard* shard) const;

  const RetentionOptions retention_;
  const base::Uuid store_id_;
  const std::string token_key_;
  mutable base::Mutex mutex_;
  std::map<ShardKey, Shard> shards_ ABSL_GUARDED_BY(mutex_);
  uint64_t revision_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_MEMORY_STORE_H_
