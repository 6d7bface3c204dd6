#include "server/store/store_factory.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "server/store/manifest_store.h"
#include "server/store/memory_store.h"
#include "server/store/rocksdb_options.h"
#include "server/store/rocksdb_store.h"

namespace claimd::store {
namespace {

absl::StatusOr<std::unique_ptr<ManifestStore>> OpenRocksDb(absl::string_view directory,
                                                           StoreOptions options) {
  if (directory.empty()) {
    return absl::InvalidArgumentError(
        "rocksdb: needs a directory, such as rocksdb:/var/lib/claimd");
  }
  RocksDbOptions rocksdb;
  rocksdb.retention = options.retention;
  rocksdb.change_log = options.change_log;
  rocksdb.block_cache_bytes = options.block_cache_bytes;
  rocksdb.write_buffer_bytes = options.write_buffer_bytes;
  rocksdb.on_write_failure = std::move(options.on_write_failure);
  absl::StatusOr<std::unique_ptr<RocksDbStore>> store =
      RocksDbStore::Open(std::string(directory), std::move(rocksdb));
  if (!store.ok()) return store.status();
  return *std::move(store);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ManifestStore>> OpenStore(absl::string_view spec,
                                                         StoreOptions options) {
  absl::string_view rest = spec;
  if (absl::ConsumePrefix(&rest, "rocksdb:")) return OpenRocksDb(rest, std::move(options));
  if (spec == "memory:") return std::make_unique<MemoryStore>(options.retention);
  if (absl::StartsWith(spec, "etcd:")) {
    return absl::UnimplementedError("the etcd store is not in this build: use rocksdb:DIR");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", spec, "' is not a store: use rocksdb:DIR, or memory: for tests"));
}

}  // namespace claimd::store
