#ifndef CLAIMD_TESTS_CONFORMANCE_STORE_CONFORMANCE_H_
#define CLAIMD_TESTS_CONFORMANCE_STORE_CONFORMANCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include <gtest/gtest.h>

#include "claimd/storage/v1/storage.pb.h"

#include "server/base/clock.h"
#include "server/base/mutex.h"
#include "server/store/manifest_store.h"
#include "server/store/shard_key.h"

// One suite for every store: each promise of manifest_store.h as a test. A store that cannot keep
// one says so in its StoreUnderTest.
namespace claimd::store {

// How a test gets a store of one kind.
struct StoreUnderTest {
  std::string name;
  // Deviation: whether a store that is opened again on the same directory holds what it held.
  bool durable = true;
  std::function<absl::StatusOr<std::unique_ptr<ManifestStore>>(const std::string& directory,
                                                               const RetentionOptions& retention)>
      open;
};
void PrintTo(const StoreUnderTest& store, std::ostream* out);

// All stores that the suite is run against.
std::vector<StoreUnderTest> AllStores();

// For INSTANTIATE_TEST_SUITE_P.
std::string NameOf(const ::testing::TestParamInfo<StoreUnderTest>& info);

// A directory that is gone at the end of its scope.
class ScopedDirectory {
 public:
  ScopedDirectory();
  ~ScopedDirectory();
  ScopedDirectory(const ScopedDirectory&) = delete;
  ScopedDirectory& operator=(const ScopedDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Path of a file or directory in it.
  std::string At(absl::string_view name) const;

 private:
  std::string path_;
};

// Takes one answer on any thread, and hands it over to the thread that waits for it.
template <typename T>
class Inbox {
 public:
  void Put(T value) ABSL_LOCKS_EXCLUDED(mutex_) {
    const base::MutexLock lock(&mutex_);
    value_ = std::move(value);
    filled_.NotifyAll();
  }
  T Take() ABSL_LOCKS_EXCLUDED(mutex_) {
    const base::MutexLock lock(&mutex_);
    while (!value_.has_value()) filled_.Wait(&mutex_);
    return *std::exchange(value_, std::nullopt);
  }
  // Nothing if there is no answer for so long.
  std::optional<T> TakeWithin(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Duration start = base::SystemClock()->MonotonicNow();
    const base::MutexLock lock(&mutex_);
    while (!value_.has_value()) {
      const absl::Duration waited = base::SystemClock()->MonotonicNow() - start;
      if (waited >= patience) return std::nullopt;
      filled_.WaitFor(&mutex_, patience - waited);
    }
    return std::exchange(value_, std::nullopt);
  }

 private:
  base::Mutex mutex_;
  base::CondVar filled_;
  std::optional<T> value_ ABSL_GUARDED_BY(mutex_);
};

// The calls of a store, waited for.
absl::StatusOr<ShardState> Load(ManifestStore* store, const ShardKey& key,
                                absl::string_view request_id = "");
absl::StatusOr<ShardRecordPtr> LoadVersion(ManifestStore* store, const ShardKey& key,
                                           uint64_t version);
SwapOutcome Swap(ManifestStore* store, SwapRequest request);
absl::StatusOr<ListPage> List(ManifestStore* store, ListQuery query);
absl::StatusOr<VersionPage> ListVersions(ManifestStore* store, HistoryQuery query);
absl::StatusOr<ClaimPage> ListClaims(ManifestStore* store, HistoryQuery query);

// Shards to use.
ShardKey KeyOf(absl::string_view table, uint32_t number);

// Swaps as the rules make them. 'head' is what they replace, null where that is allowed.
SwapRequest Create(const ShardKey& key, absl::string_view request_id);
SwapRequest Import(const ShardKey& key, uint64_t version, absl::string_view request_id);
SwapRequest Commit(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id);
SwapRequest Claim(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id);
SwapRequest Release(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id);
SwapRequest Drop(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id);
SwapRequest Recreate(const ShardKey& key, const ShardRecordPtr& tombstone,
                     absl::string_view request_id);
// Only remembers the request, and forgets the oldest but the first id if there would be more than
// 'ids_max'.
SwapRequest Remember(const ShardKey& key, const ShardRecordPtr& head, absl::string_view request_id,
                     int ids_max = 100);

// Does a swap that must be committed, and gives back the new head.
ShardRecordPtr MustSwap(ManifestStore* store, SwapRequest request);

// What a swap did, in words: "committed", "conflict", "not applied", "unknown".
std::string KindOf(const SwapOutcome& outcome);

// Versions that the store lists, newest first, all pages; checks that each can be loaded alone.
std::vector<uint64_t> KeptVersions(ManifestStore* store, const ShardKey& key);
// Sequence numbers of the ended claims, newest first, all pages.
std::vector<uint64_t> KeptClaims(ManifestStore* store, const ShardKey& key);
// Those of 'request_ids' that the store remembers for the shard.
std::vector<std::string> Remembered(ManifestStore* store, const ShardKey& key,
                                    const std::vector<std::string>& request_ids);

// The fixture of the suite: one store in a directory of its own.
class StoreConformanceTest : public ::testing::TestWithParam<StoreUnderTest> {
 protected:
  // Opens the store, with the history that the test needs. May be called again: the store is closed
  // first.
  ManifestStore* Open(const RetentionOptions& retention = {});
  void Close() { store_.reset(); }

 private:
  ScopedDirectory directory_;
  std::unique_ptr<ManifestStore> store_;
};

}  // namespace claimd::store

#endif  // CLAIMD_TESTS_CONFORMANCE_STORE_CONFORMANCE_H_
