#ifndef CLAIMD_CLIENT_CTL_FILES_H_
#define CLAIMD_CLIENT_CTL_FILES_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The file system, as far as import and export need it. Errors name the path and say what the
// system said.
namespace claimd::ctl {

struct DirectoryEntry {
  std::string name;
  // Also for a link to a directory.
  bool is_directory = false;
};

// The entries of a directory, sorted by name.
absl::StatusOr<std::vector<DirectoryEntry>> ListDirectory(const std::string& path);

// Whether there is a directory (or a link to one). Errors: anything but "no" and "not there".
absl::StatusOr<bool> IsDirectory(const std::string& path);

// The whole file. Errors: also ResourceExhausted if it has more than 'bytes_max'.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max);

// Makes a directory with those above it, durably.
absl::Status MakeDirectories(const std::string& path);

// Makes a file that is not there yet, whole and durable, or not at all: an fsync'd temporary file
// that is linked to its name. Errors: AlreadyExists, with the file left as it is.
absl::Status PutIfAbsent(const std::string& directory, const std::string& name,
                         absl::string_view content);

std::string JoinPath(const std::string& directory, const std::string& name);

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_FILES_H_
