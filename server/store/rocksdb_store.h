#ifndef CLAIMD_SERVER_STORE_ROCKSDB_STORE_H_
#define CLAIMD_SERVER_STORE_ROCKSDB_STORE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/store/manifest_store.h"
#include "server/store/rocksdb_committer.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_options.h"
#include "server/store/rocksdb_reader.h"
#include "server/store/shard_key.h"
#include "server/store/worker_pool.h"

namespace claimd::store {

// A store in one directory of this machine (DESIGN §7, RocksDB). See ManifestStore.
//
// What is answered as committed is synced to the disk. No call blocks on the disk: what is in
// memory is read on the calling thread, everything else on threads of the store.
//
// A write or sync that fails, or any error of RocksDB in the background, ends it for good: the
// swaps that may have landed are answered as unknown, and from then on every call is refused as
// Unavailable, reads included, since they could show what a restart takes back. The way out is to
// open the store again, which finds what really landed.
class RocksDbStore final : public ManifestStore {
 public:
  // Opens the store in 'directory', or makes one. The directory may be missing or empty; its parent
  // must exist. Blocks while it recovers. Each error is a sentence that an operator can act on:
  // NotFound, PermissionDenied, FailedPrecondition (in use, no directory, not a store, newer
  // format), InvalidArgument (options), DataLoss (corrupt), Unavailable.
  static absl::StatusOr<std::unique_ptr<RocksDbStore>> Open(const std::string& directory,
                                                            RocksDbOptions options);
  ~RocksDbStore() override = default;
  RocksDbStore(const RocksDbStore&) = delete;
  RocksDbStore& operator=(const RocksDbStore&) = delete;

  void Load(const ShardKey& key, absl::string_view request_id, Callback<ShardState> done) override;
  void LoadVersion(const ShardKey& key, uint64_t version, Callback<ShardRecordPtr> done) override;
  void CompareAndSwap(SwapRequest request, absl::AnyInvocable<void(SwapOutcome)> done) override;
  void List(ListQuery query, Callback<ListPage> done) override;
  void ListVersions(HistoryQuery query, Callback<VersionPage> done) override;
  void ListClaims(HistoryQuery query, Callback<ClaimPage> done) override;
  StoreInfo Info() const override;
  std::string TokenKey() const override { return meta_.token_key; }
  absl::Status Health() const override { return Usable(); }

 private:
  RocksDbStore(std::unique_ptr<RocksDatabase> database, StoreMeta meta,
               const RocksDbOptions& options);

  // OK, or the Unavailable that every call gets after a failure.
  absl::Status Usable() const;
  // Runs 'read' on a reader thread and answers with it, unless the store has failed.
  template <typename T, typename Read>
  void ReadFromDisk(Read read, Callback<T> done);

  // Destroyed in reverse order: the committer answers first, then the readers.
  const std::unique_ptr<RocksDatabase> database_;
  const StoreMeta meta_;
  const RocksDbReader reader_;
  WorkerPool readers_;
  RocksDbCommitter committer_;
};

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_ROCKSDB_STORE_H_
