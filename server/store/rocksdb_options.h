#ifndef CLAIMD_SERVER_STORE_ROCKSDB_OPTIONS_H_
#define CLAIMD_SERVER_STORE_ROCKSDB_OPTIONS_H_

#include <cstddef>
#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include <rocksdb/env.h>

#include "server/base/random.h"
#include "server/store/manifest_store.h"

namespace claimd::store {

// What a RocksDbStore is opened with.
struct RocksDbOptions {
  RetentionOptions retention;
  // Newest changes (revision and shard) that are kept, for readers that resume; at least 1.
  uint64_t change_log = 1'000'000;
  // Memory for what is read from disk, in bytes.
  size_t block_cache_bytes = size_t{64} << 20U;
  // Memory for what is not in a table file yet, in bytes, all families together.
  size_t write_buffer_bytes = size_t{64} << 20U;
  // Threads for reads that go to the disk; at least 1.
  int reader_threads = 2;
  // Threads with which RocksDB writes its table files.
  int background_jobs_max = 2;
  // Used while opening only.
  base::RandomSource* random = base::SystemRandom();
  // The door to the disk, for fault tests. Not owned, must outlive the store. Null: the system's.
  rocksdb::Env* env = nullptr;
  // Runs once, when the store stops taking writes, on a thread of the store. Must not block, and
  // must call nothing of the store but Health, Info and TokenKey. May be null.
  absl::AnyInvocable<void(const absl::Status&)> on_write_failure;
};

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_ROCKSDB_OPTIONS_H_
