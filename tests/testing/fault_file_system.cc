#include "tests/testing/fault_file_system.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include <rocksdb/file_system.h>
#include <rocksdb/io_status.h>
#include <rocksdb/slice.h>

#include "server/base/clock.h"
#include "server/base/mutex.h"

namespace claimd::testing {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// One file that is written, watched by its file system.
class FaultFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  FaultFile(std::string path, std::unique_ptr<rocksdb::FSWritableFile> file, FaultFileSystem* owner)
      : FSWritableFileOwnerWrapper(std::move(file)), path_(std::move(path)), owner_(owner) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = owner_->BeforeAppend(path_);
    if (status.ok()) status = FSWritableFileOwnerWrapper::Append(data, options, debug);
    if (status.ok()) owner_->Appended(path_, data.size());
    return status;
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& /*info*/, IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = owner_->BeforeSync(path_);
    if (status.ok()) status = FSWritableFileOwnerWrapper::Sync(options, debug);
    if (status.ok()) owner_->Synced(path_);
    return status;
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Sync(options, debug);
  }

 private:
  const std::string path_;
  FaultFileSystem* const owner_;
};

// One directory, watched by its file system.
class FaultDirectory final : public rocksdb::FSDirectoryWrapper {
 public:
  FaultDirectory(std::string path, std::unique_ptr<rocksdb::FSDirectory> directory,
                 FaultFileSystem* owner)
      : FSDirectoryWrapper(std::move(directory)), path_(std::move(path)), owner_(owner) {}

  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = owner_->BeforeAppend(path_);
    if (status.ok()) status = FSDirectoryWrapper::Fsync(options, debug);
    if (status.ok()) owner_->DirectorySynced(path_);
    return status;
  }
  IOStatus FsyncWithDirOptions(const IOOptions& options, IODebugContext* debug,
                               const rocksdb::DirFsyncOptions& /*directory*/) override {
    return Fsync(options, debug);
  }

 private:
  const std::string path_;
  FaultFileSystem* const owner_;
};

// One table file that is read, watched by its file system.
class WatchedTable final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  WatchedTable(std::unique_ptr<rocksdb::FSRandomAccessFile> file, FaultFileSystem* owner)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), owner_(owner) {}

  IOStatus Read(uint64_t offset, size_t size, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* debug) const override {
    owner_->TableRead();
    return FSRandomAccessFileOwnerWrapper::Read(offset, size, options, result, scratch, debug);
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    owner_->TableRead();
    return FSRandomAccessFileOwnerWrapper::MultiRead(requests, count, options, debug);
  }

 private:
  FaultFileSystem* const owner_;
};

void FaultFileSystem::HoldLogSyncs() {
  const base::MutexLock lock(&mutex_);
  holding_ = true;
}

absl::Status FaultFileSystem::AwaitHeldSync() {
  const absl::Duration patience = absl::Seconds(30);
  const absl::Duration start = base::SystemClock()->MonotonicNow();
  const base::MutexLock lock(&mutex_);
  while (held_ == 0) {
    const absl::Duration waited = base::SystemClock()->MonotonicNow() - start;
    if (waited >= patience) return absl::DeadlineExceededError("nobody syncs the log");
    changed_.WaitFor(&mutex_, patience - waited);
  }
  return absl::OkStatus();
}

void FaultFileSystem::PassOneLogSync() {
  const base::MutexLock lock(&mutex_);
  ++passes_;
  changed_.NotifyAll();
  while (passes_ > 0) changed_.Wait(&mutex_);
}

void FaultFileSystem::ReleaseLogSyncs() {
  const base::MutexLock lock(&mutex_);
  holding_ = false;
  changed_.NotifyAll();
}

int FaultFileSystem::log_sync_count() const {
  const base::MutexLock lock(&mutex_);
  return log_sync_count_;
}

void FaultFileSystem::FailLogSyncsAfter(int count) {
  const base::MutexLock lock(&mutex_);
  good_log_syncs_ = count;
}

int FaultFileSystem::failed_append_count() const {
  const base::MutexLock lock(&mutex_);
  return failed_append_count_;
}

void FaultFileSystem::FailAppendsTo(absl::string_view suffix) {
  const base::MutexLock lock(&mutex_);
  failing_suffixes_.insert(std::string(suffix));
}

void FaultFileSystem::Stop() {
  const base::MutexLock lock(&mutex_);
  stopped_ = true;
}

void FaultFileSystem::Heal() {
  const base::MutexLock lock(&mutex_);
  good_log_syncs_ = -1;
  failing_suffixes_.clear();
  stopped_ = false;
}

std::set<std::thread::id> FaultFileSystem::TakeTableReaders() {
  const base::MutexLock lock(&mutex_);
  return std::exchange(table_readers_, {});
}

void FaultFileSystem::LoseUnsynced() {
  const base::MutexLock lock(&mutex_);
  for (const auto& [path, state] : files_) {
    if (!state.in_synced_directory) {
      std::filesystem::remove(path);
    } else if (state.synced_size < state.size) {
      std::filesystem::resize_file(path, state.synced_size);
    }
  }
  files_.clear();
}

IOStatus FaultFileSystem::NewWritableFile(const std::string& path,
                                          const rocksdb::FileOptions& options,
                                          std::unique_ptr<rocksdb::FSWritableFile>* result,
                                          IODebugContext* debug) {
  IOStatus status = BeforeAppend(path);
  if (!status.ok()) return status;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  status = FileSystemWrapper::NewWritableFile(path, options, &file, debug);
  if (!status.ok()) return status;
  *result = std::make_unique<FaultFile>(path, std::move(file), this);
  const base::MutexLock lock(&mutex_);
  files_[path] = FileState();
  return status;
}

IOStatus FaultFileSystem::NewRandomAccessFile(const std::string& path,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                              IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSRandomAccessFile> file;
  IOStatus status = FileSystemWrapper::NewRandomAccessFile(path, options, &file, debug);
  if (status.ok()) *result = std::make_unique<WatchedTable>(std::move(file), this);
  return status;
}

IOStatus FaultFileSystem::NewDirectory(const std::string& path, const IOOptions& options,
                                       std::unique_ptr<rocksdb::FSDirectory>* result,
                                       IODebugContext* debug) {
  std::unique_ptr<rocksdb::FSDirectory> directory;
  IOStatus status = FileSystemWrapper::NewDirectory(path, options, &directory, debug);
  if (status.ok()) *result = std::make_unique<FaultDirectory>(path, std::move(directory), this);
  return status;
}

IOStatus FaultFileSystem::DeleteFile(const std::string& path, const IOOptions& options,
                                     IODebugContext* debug) {
  IOStatus status = BeforeAppend(path);
  if (status.ok()) status = FileSystemWrapper::DeleteFile(path, options, debug);
  const base::MutexLock lock(&mutex_);
  if (status.ok()) files_.erase(path);
  return status;
}

IOStatus FaultFileSystem::RenameFile(const std::string& from, const std::string& to,
                                     const IOOptions& options, IODebugContext* debug) {
  IOStatus status = BeforeAppend(from);
  if (status.ok()) status = FileSystemWrapper::RenameFile(from, to, options, debug);
  const base::MutexLock lock(&mutex_);
  const auto found = files_.find(from);
  if (status.ok() && found != files_.end()) {
    // That a rename is taken back is not modelled.
    files_[to] = found->second;
    files_[to].in_synced_directory = true;
    files_.erase(from);
  }
  return status;
}

IOStatus FaultFileSystem::BeforeAppend(const std::string& path) {
  const base::MutexLock lock(&mutex_);
  if (stopped_) return IOStatus::IOError("the machine has stopped");
  for (const std::string& suffix : failing_suffixes_) {
    if (!absl::EndsWith(path, suffix)) continue;
    ++failed_append_count_;
    return IOStatus::IOError("the disk does not take", path);
  }
  return IOStatus::OK();
}

IOStatus FaultFileSystem::BeforeSync(const std::string& path) {
  const base::MutexLock lock(&mutex_);
  if (absl::EndsWith(path, ".log")) {
    ++held_;
    changed_.NotifyAll();
    while (holding_ && passes_ == 0) changed_.Wait(&mutex_);
    --held_;
    if (passes_ > 0) {
      --passes_;
      changed_.NotifyAll();
    }
    if (good_log_syncs_ == 0) return IOStatus::IOError("the disk does not sync", path);
    if (good_log_syncs_ > 0) --good_log_syncs_;
  }
  if (stopped_) return IOStatus::IOError("the machine has stopped");
  return IOStatus::OK();
}

void FaultFileSystem::Appended(const std::string& path, uint64_t bytes) {
  const base::MutexLock lock(&mutex_);
  files_[path].size += bytes;
}

void FaultFileSystem::Synced(const std::string& path) {
  const base::MutexLock lock(&mutex_);
  FileState& state = files_[path];
  state.synced_size = state.size;
  if (absl::EndsWith(path, ".log")) ++log_sync_count_;
}

void FaultFileSystem::TableRead() {
  const base::MutexLock lock(&mutex_);
  table_readers_.insert(std::this_thread::get_id());
}

void FaultFileSystem::DirectorySynced(const std::string& directory) {
  const base::MutexLock lock(&mutex_);
  for (auto& [path, state] : files_) {
    if (absl::StartsWith(path, directory)) state.in_synced_directory = true;
  }
}

}  // namespace claimd::testing
