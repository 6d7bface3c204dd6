#ifndef CLAIMD_TESTS_TESTING_FAULT_FILE_SYSTEM_H_
#define CLAIMD_TESTS_TESTING_FAULT_FILE_SYSTEM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include <rocksdb/file_system.h>
#include <rocksdb/io_status.h>
#include <rocksdb/slice.h>

#include "server/base/mutex.h"

namespace claimd::testing {

// RocksDB's file system, in which a test can hold up, count and fail what is written, and take back
// what was not synced, as a machine that loses power does. Thread-safe.
//
// Files are named by how their names end: ".log" for the write-ahead log, ".sst" for tables.
class FaultFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  FaultFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}

  // Syncs of the log wait from now on, until they are released.
  void HoldLogSyncs() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when a sync waits; DeadlineExceeded if none does for long.
  absl::Status AwaitHeldSync() ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets one sync that waits go on, and returns when it does. REQUIRES: a sync waits.
  void PassOneLogSync() ABSL_LOCKS_EXCLUDED(mutex_);
  void ReleaseLogSyncs() ABSL_LOCKS_EXCLUDED(mutex_);
  // Syncs of the log that were done.
  int log_sync_count() const ABSL_LOCKS_EXCLUDED(mutex_);

  // After 'count' more good ones, syncs of the log fail without having synced.
  void FailLogSyncsAfter(int count) ABSL_LOCKS_EXCLUDED(mutex_);
  // Appends to files whose names end with 'suffix' fail from now on, and nothing is appended.
  void FailAppendsTo(absl::string_view suffix) ABSL_LOCKS_EXCLUDED(mutex_);
  // Appends that failed so.
  int failed_append_count() const ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on nothing is written any more, as if the machine had stopped: all writes fail.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // What was failing is well again.
  void Heal() ABSL_LOCKS_EXCLUDED(mutex_);
  // Cuts every file to what was synced of it, and removes those whose directory was not synced
  // since they were made. REQUIRES: no file is open for writing.
  void LoseUnsynced() ABSL_LOCKS_EXCLUDED(mutex_);

  // Threads that read a table from the disk since the last time this was asked.
  std::set<std::thread::id> TakeTableReaders() ABSL_LOCKS_EXCLUDED(mutex_);

  const char* Name() const override { return "FaultFileSystem"; }
  rocksdb::IOStatus NewWritableFile(const std::string& path, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& path,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path, const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* result,
                                 rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& path, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

 private:
  friend class FaultFile;
  friend class FaultDirectory;
  friend class WatchedTable;

  struct FileState {
    uint64_t size = 0;
    uint64_t synced_size = 0;
    bool in_synced_directory = false;
  };

  // Asked before each append and sync; not OK if it is to fail.
  rocksdb::IOStatus BeforeAppend(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  rocksdb::IOStatus BeforeSync(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  void Appended(const std::string& path, uint64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void Synced(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  void TableRead() ABSL_LOCKS_EXCLUDED(mutex_);
  void DirectorySynced(const std::string& directory) ABSL_LOCKS_EXCLUDED(mutex_);

  mutable base::Mutex mutex_;
  base::CondVar changed_;
  bool holding_ ABSL_GUARDED_BY(mutex_) = false;
  int held_ ABSL_GUARDED_BY(mutex_) = 0;
  // Syncs that may pass all the same.
  int passes_ ABSL_GUARDED_BY(mutex_) = 0;
  int log_sync_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Good syncs that are left, or negative for no end.
  int good_log_syncs_ ABSL_GUARDED_BY(mutex_) = -1;
  std::set<std::string> failing_suffixes_ ABSL_GUARDED_BY(mutex_);
  int failed_append_count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<std::thread::id> table_readers_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, FileState> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace claimd::testing

#endif  // CLAIMD_TESTS_TESTING_FAULT_FILE_SYSTEM_H_
