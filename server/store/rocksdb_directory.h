#ifndef CLAIMD_SERVER_STORE_ROCKSDB_DIRECTORY_H_
#define CLAIMD_SERVER_STORE_ROCKSDB_DIRECTORY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace claimd::store {

// The store format that this program writes, and the newest that it reads.
inline constexpr uint32_t kRocksDbFormatVersion = 1;

// Name of the file that marks a directory as a store of ours. It says whether the store was ever
// used: only one that never was may be made again from nothing.
inline constexpr char kRocksDbMarkerFile[] = "CLAIMD_STORE";

enum class DirectoryState {
  // Marked, but the store in it was never finished and holds nothing.
  kUnfinished,
  // Holds a store.
  kReady,
};

// Makes sure that there is a directory that is a store's, making it (mode 0700) and its marker when
// there is none. All that is made is durable when this returns.
//
// Errors, each a sentence with the path: NotFound (the parent), PermissionDenied,
// FailedPrecondition (no directory; not empty and not a store; a newer format), DataLoss (a marker
// that is no marker), Unavailable (the system said no for another reason).
absl::StatusOr<DirectoryState> PrepareDirectory(const std::string& directory);

// Marks the store as ready. Durable when this returns.
absl::Status MarkReady(const std::string& directory);

}  // namespace claimd::store

#endif  // CLAIMD_SERVER_STORE_ROCKSDB_DIRECTORY_H_
