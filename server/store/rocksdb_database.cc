#include "server/store/rocksdb_database.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <glog/logging.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>

#include "server/store/failure_latch.h"

namespace claimd::store {
namespace {

// With less than this in memory, replaying the log is faster than writing table files.
constexpr uint64_t kFlushOnCloseBytes = uint64_t{1} << 20U;

}  // namespace

RocksDatabase::RocksDatabase(std::unique_ptr<rocksdb::DB> db,
                             std::vector<rocksdb::ColumnFamilyHandle*> handles,
                             std::shared_ptr<FailureLatch> latch)
    : db_(std::move(db)), handles_(std::move(handles)), latch_(std::move(latch)) {}

RocksDatabase::~RocksDatabase() {
  // So that the next start has little to replay. The log holds everything if this fails.
  uint64_t in_memory = 0;
  if (latch_->status().ok() &&
      db_->GetAggregatedIntProperty(rocksdb::DB::Properties::kSizeAllMemTables, &in_memory) &&
      in_memory > kFlushOnCloseBytes) {
    const rocksdb::Status flushed = db_->Flush(rocksdb::FlushOptions(), handles_);
    if (!flushed.ok()) LOG(WARNING) << "store flush failed error=\"" << flushed.ToString() << '"';
  }
  for (rocksdb::ColumnFamilyHandle* handle : handles_) {
    const rocksdb::Status destroyed = db_->DestroyColumnFamilyHandle(handle);
    if (!destroyed.ok()) LOG(WARNING) << "store close error=\"" << destroyed.ToString() << '"';
  }
  const rocksdb::Status closed = db_->Close();
  if (!closed.ok()) LOG(WARNING) << "store close error=\"" << closed.ToString() << '"';
}

absl::Status ToStatus(absl::string_view what, const rocksdb::Status& status) {
  const std::string sentence = absl::StrCat(what, ": ", status.ToString());
  return status.IsCorruption() ? absl::DataLossError(sentence) : absl::UnavailableError(sentence);
}

}  // namespace claimd::store
