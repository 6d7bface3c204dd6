#ifndef CLAIMD_SERVER_STORE_STORE_FACTORY_H_
#define CLAIMD_SERVER_STORE_STORE_FACTORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/store/manifest_store.h"

namespace claimd::store {

// What any store can be opened with; a store ignores what does not concern it.
struct StoreOptions {
  RetentionOptions retention;
  // See RocksDbOptions.
  uint64_t change_log = 1'000'000;
  size_t block_cache_bytes = size_t{64} << 20U;
  size_t write_buffer_bytes = size_t{64} << 20U;
  // Runs once, when the store stops taking writes, on a thread of the store. Must not block, and
  // must call nothing of the store but Health, Info and TokenKey. May be null.
  absl::AnyInvocable<void(const absl::Status&)> on_write_failure;
};

// Opens the store that 'spec' names:
//   rocksdb:DIR   a directory of this machine, made if it is missing
//   memory:       nothing is kept across a restart
// Errors: InvalidArgument for any other spec, Unimplemented for a store that is not in this build,
// and those of the store, each a sentence that an operator can act on.
absl::StatusOr<std::unique_ptr<ManifestStore>> OpenStore(absl::string_view spec,
                                                         StoreOptions options);

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_STORE_FACTORY_H_
