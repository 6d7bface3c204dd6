#include "server/store/rocksdb_open.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include <glog/logging.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/iterator.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include "server/base/random.h"
#include "server/base/uuid.h"
#include "server/store/failure_latch.h"
#include "server/store/manifest_store.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_directory.h"
#include "server/store/rocksdb_keys.h"
#include "server/store/rocksdb_options.h"
#include "server/store/wal_check.h"

namespace claimd::store {
namespace {

using rocksdb_keys::AppendFixed64;
using rocksdb_keys::ReadFixed64;

constexpr int kBloomBitsPerKey = 10;
constexpr size_t kTokenKeySize = 32;
constexpr size_t kNumberSize = 8;
constexpr size_t kInfoLogBytesMax = size_t{1} << 20U;
constexpr size_t kInfoLogFilesMax = 3;
// Table files whose readers stay in memory.
constexpr int kOpenFilesMax = 512;

// Whatever goes wrong in the background ends the write path for good, as a failed write does.
class BackgroundErrorListener final : public rocksdb::EventListener {
 public:
  explicit BackgroundErrorListener(std::shared_ptr<FailureLatch> latch)
      : latch_(std::move(latch)) {}

  void OnBackgroundError(rocksdb::BackgroundErrorReason /*reason*/,
                         rocksdb::Status* error) override {
    latch_->Fail(ToStatus("the store stopped taking writes", *error));
  }
  void OnErrorRecoveryBegin(rocksdb::BackgroundErrorReason /*reason*/, rocksdb::Status /*error*/,
                            bool* auto_recovery) override {
    *auto_recovery = false;
  }

 private:
  const std::shared_ptr<FailureLatch> latch_;
};

rocksdb::DBOptions DatabaseOptions(const RocksDbOptions& options, DirectoryState state,
                                   std::shared_ptr<FailureLatch> latch) {
  rocksdb::DBOptions db;
  db.env = options.env != nullptr ? options.env : rocksdb::Env::Default();
  db.create_if_missing = state == DirectoryState::kUnfinished;
  db.create_missing_column_families = state == DirectoryState::kUnfinished;
  db.paranoid_checks = true;
  db.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  db.recycle_log_file_num = 0;  // CheckWriteAheadLogs relies on it.
  db.max_bgerror_resume_count = 0;
  db.listeners.push_back(std::make_shared<BackgroundErrorListener>(std::move(latch)));
  db.allow_concurrent_memtable_write = false;  // There is one writer.
  db.max_background_jobs = options.background_jobs_max;
  db.max_open_files = kOpenFilesMax;
  db.db_write_buffer_size = options.write_buffer_bytes;
  db.max_total_wal_size = 2 * options.write_buffer_bytes;
  db.skip_stats_update_on_db_open = true;
  db.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  db.max_log_file_size = kInfoLogBytesMax;
  db.keep_log_file_num = kInfoLogFilesMax;
  db.stats_dump_period_sec = 0;
  db.stats_persist_period_sec = 0;
  return db;
}

rocksdb::ColumnFamilyOptions FamilyOptions(const RocksDbOptions& options,
                                           const std::shared_ptr<rocksdb::Cache>& cache) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBitsPerKey));
  table.whole_key_filtering = true;
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions family;
  family.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  family.compression = rocksdb::kNoCompression;
  family.write_buffer_size = options.write_buffer_bytes / 4;
  return family;
}

std::vector<rocksdb::ColumnFamilyDescriptor> Families(const RocksDbOptions& options) {
  const auto cache = rocksdb::NewLRUCache(options.block_cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  families.reserve(kFamilyNames.size());
  for (const char* name : kFamilyNames) {
    families.emplace_back(name, FamilyOptions(options, cache));
  }
  return families;
}

absl::Status CorruptError(absl::string_view directory, absl::string_view why) {
  return absl::DataLossError(absl::StrCat("the store in ", directory, " is corrupt: ", why));
}

// Checks what must be checked while nobody writes. Leaves the directory unlocked: opening locks it
// again, and fails if somebody was faster.
absl::Status CheckBeforeOpening(rocksdb::Env* env, const std::string& directory) {
  const std::string lock_path = directory + "/LOCK";
  rocksdb::FileLock* lock = nullptr;
  const rocksdb::Status locked = env->LockFile(lock_path, &lock);
  if (!locked.ok()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the store in ", directory, " is in use by another process (", locked.ToString(), ")"));
  }
  absl::Status checked = CheckWriteAheadLogs(env, directory);
  const rocksdb::Status unlocked = env->UnlockFile(lock);
  if (checked.ok() && !unlocked.ok()) return ToStatus("the store's lock", unlocked);
  return checked;
}

absl::StatusOr<std::string> ReadMeta(const RocksDatabase& database, absl::string_view key,
                                     size_t size) {
  std::string value;
  const rocksdb::Status read =
      database.db()->Get(rocksdb::ReadOptions(), database.family(Family::kMeta),
                         rocksdb::Slice(key.data(), key.size()), &value);
  if (read.IsNotFound()) return absl::DataLossError(absl::StrCat("there is no ", key));
  if (!read.ok()) return ToStatus(absl::StrCat("reading ", key), read);
  if (value.size() != size) return absl::DataLossError(absl::StrCat(key, " has a wrong size"));
  return value;
}

absl::Status ReadAllMeta(const RocksDatabase& database, StoreMeta* meta) {
  const auto format = ReadMeta(database, kMetaFormat, kNumberSize);
  if (!format.ok()) return format.status();
  meta->format_version = static_cast<uint32_t>(ReadFixed64(*format));
  if (ReadFixed64(*format) > kRocksDbFormatVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("it has format ", ReadFixed64(*format), "; this claimd knows formats up to ",
                     kRocksDbFormatVersion, ": start a newer claimd on it"));
  }
  const auto store_id = ReadMeta(database, kMetaStoreId, meta->store_id.size());
  if (!store_id.ok()) return store_id.status();
  std::copy(store_id->begin(), store_id->end(), meta->store_id.begin());
  auto token_key = ReadMeta(database, kMetaTokenKey, kTokenKeySize);
  if (!token_key.ok()) return token_key.status();
  meta->token_key = *std::move(token_key);
  const auto revision = ReadMeta(database, kMetaRevision, 2 * kNumberSize);
  if (!revision.ok()) return revision.status();
  meta->revision = ReadFixed64(*revision);
  meta->oldest_change = ReadFixed64(absl::string_view(*revision).substr(kNumberSize));
  const auto retention = ReadMeta(database, kMetaRetention, 2 * kNumberSize);
  if (!retention.ok()) return retention.status();
  meta->retention_ever = {
      .history_versions = ReadFixed64(*retention),
      .claim_history = ReadFixed64(absl::string_view(*retention).substr(kNumberSize))};
  return absl::OkStatus();
}

// Pairs the revision in the meta family with the newest change: they are written together.
absl::Status CheckRevision(const RocksDatabase& database, const StoreMeta& meta) {
  const std::unique_ptr<rocksdb::Iterator> last(
      database.db()->NewIterator(rocksdb::ReadOptions(), database.family(Family::kChanges)));
  last->SeekToLast();
  if (!last->status().ok()) return ToStatus("reading the newest change", last->status());
  if (!last->Valid()) {
    return meta.revision == 0 ? absl::OkStatus() : absl::DataLossError("the changes are gone");
  }
  const auto newest =
      rocksdb_keys::DecodeNumber(absl::string_view(last->key().data(), last->key().size()));
  if (!newest.ok()) return newest.status();
  if (*newest != meta.revision) {
    return absl::DataLossError(
        absl::StrCat("its newest change is ", *newest, " and its revision ", meta.revision));
  }
  return absl::OkStatus();
}

// Writes down how much is kept from now on, and shortens the log of changes if it is to be shorter
// than before.
absl::Status Adjust(const RocksDbOptions& options, const RocksDatabase& database, StoreMeta* meta) {
  RetentionOptions ever = meta->retention_ever;
  ever.history_versions = std::max(ever.history_versions, options.retention.history_versions);
  ever.claim_history = std::max(ever.claim_history, options.retention.claim_history);
  const uint64_t kept_from =
      meta->revision > options.change_log ? meta->revision - options.change_log + 1 : 1;
  rocksdb::WriteBatch batch;
  rocksdb::Status put;
  if (ever.history_versions != meta->retention_ever.history_versions ||
      ever.claim_history != meta->retention_ever.claim_history) {
    std::string value;
    AppendFixed64(ever.history_versions, &value);
    AppendFixed64(ever.claim_history, &value);
    put = batch.Put(database.family(Family::kMeta), kMetaRetention, value);
    meta->retention_ever = ever;
  }
  if (put.ok() && meta->oldest_change < kept_from) {
    put = batch.DeleteRange(database.family(Family::kChanges),
                            rocksdb_keys::EncodeRevision(meta->oldest_change),
                            rocksdb_keys::EncodeRevision(kept_from));
    std::string value;
    AppendFixed64(meta->revision, &value);
    AppendFixed64(kept_from, &value);
    if (put.ok()) put = batch.Put(database.family(Family::kMeta), kMetaRevision, value);
    meta->oldest_change = kept_from;
  }
  if (put.ok() && batch.Count() > 0) {
    rocksdb::WriteOptions durable;
    durable.sync = true;
    put = database.db()->Write(durable, &batch);
  }
  return put.ok() ? absl::OkStatus() : ToStatus("writing the store's settings", put);
}

// Gives a new store its identity.
absl::Status Initialise(const RocksDbOptions& options, const RocksDatabase& database) {
  std::string format;
  AppendFixed64(kRocksDbFormatVersion, &format);
  std::string revision;
  AppendFixed64(0, &revision);
  AppendFixed64(1, &revision);
  std::string retention;
  AppendFixed64(options.retention.history_versions, &retention);
  AppendFixed64(options.retention.claim_history, &retention);
  const std::string token_key =
      base::UuidBytes(options.random->Bytes16()) + base::UuidBytes(options.random->Bytes16());
  rocksdb::ColumnFamilyHandle* const meta = database.family(Family::kMeta);
  rocksdb::WriteBatch batch;
  rocksdb::Status put = batch.Put(meta, kMetaFormat, format);
  if (put.ok()) {
    put = batch.Put(meta, kMetaStoreId, base::UuidBytes(base::NewUuid(options.random)));
  }
  if (put.ok()) put = batch.Put(meta, kMetaTokenKey, token_key);
  if (put.ok()) put = batch.Put(meta, kMetaRevision, revision);
  if (put.ok()) put = batch.Put(meta, kMetaRetention, retention);
  rocksdb::WriteOptions durable;
  durable.sync = true;
  if (put.ok()) put = database.db()->Write(durable, &batch);
  return put.ok() ? absl::OkStatus() : ToStatus("making the store", put);
}

absl::Status OpenError(absl::string_view directory, const rocksdb::Status& status) {
  // A file or a family is missing, or there is one that this program does not know.
  if (status.IsInvalidArgument()) {
    return CorruptError(directory, absl::StrCat("its files are not those of format ",
                                                kRocksDbFormatVersion, ": ", status.ToString()));
  }
  if (status.IsCorruption()) return CorruptError(directory, status.ToString());
  return absl::UnavailableError(
      absl::StrCat("the store in ", directory, " cannot be opened: ", status.ToString()));
}

}  // namespace

absl::StatusOr<OpenedDatabase> OpenRocksDatabase(const std::string& directory,
                                                 const RocksDbOptions& options,
                                                 std::shared_ptr<FailureLatch> latch) {
  const absl::StatusOr<DirectoryState> state = PrepareDirectory(directory);
  if (!state.ok()) return state.status();
  const rocksdb::DBOptions db_options = DatabaseOptions(options, *state, latch);
  if (absl::Status checked = CheckBeforeOpening(db_options.env, directory); !checked.ok()) {
    return checked;
  }
  rocksdb::DB* db = nullptr;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  const rocksdb::Status opened =
      rocksdb::DB::Open(db_options, directory, Families(options), &handles, &db);
  if (!opened.ok()) return OpenError(directory, opened);
  OpenedDatabase result;
  result.database = std::make_unique<RocksDatabase>(std::unique_ptr<rocksdb::DB>(db),
                                                    std::move(handles), std::move(latch));
  const RocksDatabase& database = *result.database;
  if (*state == DirectoryState::kUnfinished) {
    absl::Status made = Initialise(options, database);
    if (made.ok()) made = MarkReady(directory);
    if (!made.ok()) return made;
  }
  absl::Status good = ReadAllMeta(database, &result.meta);
  if (good.ok()) good = CheckRevision(database, result.meta);
  if (good.ok()) good = Adjust(options, database, &result.meta);
  if (absl::IsDataLoss(good)) return CorruptError(directory, good.message());
  if (!good.ok()) {
    return absl::Status(good.code(),
                        absl::StrCat("the store in ", directory, ": ", good.message()));
  }
  LOG(INFO) << "store opened kind=rocksdb dir=" << directory
            << " id=" << base::FormatUuid(result.meta.store_id)
            << " revision=" << result.meta.revision;
  return result;
}

}  // namespace claimd::store
