#include "server/store/rocksdb_store.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "server/store/failure_latch.h"
#include "server/store/manifest_store.h"
#include "server/store/retention.h"
#include "server/store/rocksdb_database.h"
#include "server/store/rocksdb_open.h"
#include "server/store/rocksdb_options.h"
#include "server/store/rocksdb_reader.h"
#include "server/store/rocksdb_round.h"
#include "server/store/shard_key.h"

namespace claimd::store {

absl::StatusOr<std::unique_ptr<RocksDbStore>> RocksDbStore::Open(const std::string& directory,
                                                                 RocksDbOptions options) {
  if (directory.empty()) return absl::InvalidArgumentError("the store has no directory");
  if (options.retention.history_versions == 0 || options.retention.claim_history == 0 ||
      options.change_log == 0 || options.reader_threads < 1) {
    return absl::InvalidArgumentError("a store keeps at least one version, claim and change");
  }
  auto latch = std::make_shared<FailureLatch>(std::move(options.on_write_failure));
  absl::StatusOr<OpenedDatabase> opened = OpenRocksDatabase(directory, options, std::move(latch));
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<RocksDbStore>(
      new RocksDbStore(std::move(opened->database), std::move(opened->meta), options));
}

RocksDbStore::RocksDbStore(std::unique_ptr<RocksDatabase> database, StoreMeta meta,
                           const RocksDbOptions& options)
    : database_(std::move(database)),
      meta_(std::move(meta)),
      reader_(database_.get(), meta_.retention_ever),
      readers_(options.reader_threads),
      committer_(database_.get(),
                 {.retention = options.retention,
                  .retention_ever = meta_.retention_ever,
                  .change_log = options.change_log},
                 {.revision = meta_.revision, .oldest_change = meta_.oldest_change}) {}

absl::Status RocksDbStore::Usable() const {
  absl::Status status = database_->latch()->status();
  if (status.ok()) return status;
  return absl::UnavailableError(
      absl::StrCat("the store has failed and must be opened again: ", status.message()));
}

template <typename T, typename Read>
void RocksDbStore::ReadFromDisk(Read read, Callback<T> done) {
  readers_.Post([this, read = std::move(read), done = std::move(done)]() mutable {
    absl::Status usable = Usable();
    done(usable.ok() ? read() : absl::StatusOr<T>(std::move(usable)));
  });
}

void RocksDbStore::Load(const ShardKey& key, absl::string_view request_id,
                        Callback<ShardState> done) {
  if (absl::Status usable = Usable(); !usable.ok()) return done(std::move(usable));
  if (auto state = reader_.Load(key, request_id, ReadReach::kMemory); state.has_value()) {
    return done(*std::move(state));
  }
  ReadFromDisk<ShardState>(
      [this, key, request_id = std::string(request_id)] {
        return *reader_.Load(key, request_id, ReadReach::kDisk);
      },
      std::move(done));
}

void RocksDbStore::LoadVersion(const ShardKey& key, uint64_t version,
                               Callback<ShardRecordPtr> done) {
  if (absl::Status usable = Usable(); !usable.ok()) return done(std::move(usable));
  if (auto record = reader_.LoadVersion(key, version, ReadReach::kMemory); record.has_value()) {
    return done(*std::move(record));
  }
  ReadFromDisk<ShardRecordPtr>(
      [this, key, version] { return *reader_.LoadVersion(key, version, ReadReach::kDisk); },
      std::move(done));
}

void RocksDbStore::CompareAndSwap(SwapRequest request, absl::AnyInvocable<void(SwapOutcome)> done) {
  absl::Status good = CheckSwap(request);
  if (good.ok()) good = Usable();
  if (!good.ok()) return done(SwapNotApplied{.status = std::move(good)});
  // Serialised here: the committer thread has enough to do.
  committer_.Submit(Prepare(std::move(request)), std::move(done));
}

void RocksDbStore::List(ListQuery query, Callback<ListPage> done) {
  ReadFromDisk<ListPage>([this, query = std::move(query)] { return reader_.List(query); },
                         std::move(done));
}

void RocksDbStore::ListVersions(HistoryQuery query, Callback<VersionPage> done) {
  ReadFromDisk<VersionPage>(
      [this, query = std::move(query)] { return reader_.ListVersions(query); }, std::move(done));
}

void RocksDbStore::ListClaims(HistoryQuery query, Callback<ClaimPage> done) {
  ReadFromDisk<ClaimPage>([this, query = std::move(query)] { return reader_.ListClaims(query); },
                          std::move(done));
}

StoreInfo RocksDbStore::Info() const {
  return {.kind = "rocksdb",
          .store_id = meta_.store_id,
          .format_version = meta_.format_version,
          .revision = committer_.revision()};
}

}  // namespace claimd::store
