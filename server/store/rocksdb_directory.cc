#include "server/store/rocksdb_directory.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <dirent.h>
#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace claimd::store {
namespace {

constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;
constexpr absl::string_view kMarkerStart = "claimd store, format ";
constexpr absl::string_view kUnfinishedMark = ", unfinished\n";
constexpr absl::string_view kReadyMark = "\n";

// The sentence '<path> <what>: <reason>' with the code that fits errno.
absl::Status SystemError(absl::string_view path, absl::string_view what) {
  return absl::ErrnoToStatus(errno, absl::StrCat(path, " ", what));
}

std::string ParentOf(absl::string_view directory) {
  while (directory.size() > 1 && directory.back() == '/') directory.remove_suffix(1);
  const size_t slash = directory.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(slash == 0 ? "/" : directory.substr(0, slash));
}

absl::Status SyncDirectory(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return SystemError(directory, "cannot be opened");
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  if (fsync(fd) != 0) return SystemError(directory, "cannot be synced");
  return absl::OkStatus();
}

// Replaces the marker as one step.
absl::Status WriteMarker(const std::string& directory, absl::string_view mark) {
  const std::string path = absl::StrCat(directory, "/", kRocksDbMarkerFile);
  const std::string temporary = path + ".new";
  const std::string text = absl::StrCat(kMarkerStart, kRocksDbFormatVersion, mark);
  {
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kFileMode);
    if (fd < 0) return SystemError(temporary, "cannot be written");
    const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
    if (write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        fsync(fd) != 0) {
      return SystemError(temporary, "cannot be written");
    }
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) return SystemError(path, "cannot be written");
  return SyncDirectory(directory);
}

// State that the marker tells, or nothing if there is no marker.
absl::StatusOr<std::optional<DirectoryState>> ReadMarker(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/", kRocksDbMarkerFile);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return std::optional<DirectoryState>();
    return SystemError(path, "cannot be read");
  }
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  std::array<char, 128> bytes{};
  const ssize_t size = read(fd, bytes.data(), bytes.size());
  if (size < 0) return SystemError(path, "cannot be read");
  absl::string_view text(bytes.data(), static_cast<size_t>(size));
  if (!absl::ConsumePrefix(&text, kMarkerStart)) {
    return absl::DataLossError(absl::StrCat(path, " is not the marker of a claimd store"));
  }
  uint32_t format = 0;
  const size_t digits = text.find_first_not_of("0123456789");
  if (digits == absl::string_view::npos || !absl::SimpleAtoi(text.substr(0, digits), &format)) {
    return absl::DataLossError(absl::StrCat(path, " is not the marker of a claimd store"));
  }
  if (format > kRocksDbFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the store in ", directory, " has format ", format, "; this claimd knows formats up to ",
        kRocksDbFormatVersion, ": start a newer claimd on it"));
  }
  return std::optional(text.substr(digits) == kUnfinishedMark ? DirectoryState::kUnfinished
                                                              : DirectoryState::kReady);
}

// True if there is nothing in the directory but what file systems put there.
absl::StatusOr<bool> IsEmpty(const std::string& directory) {
  DIR* const stream = opendir(directory.c_str());
  if (stream == nullptr) return SystemError(directory, "cannot be read");
  const auto close_stream = absl::MakeCleanup([stream] { closedir(stream); });
  errno = 0;
  while (const dirent* entry = readdir(stream)) {  // NOLINT(concurrency-mt-unsafe): own stream
    const absl::string_view name = entry->d_name;
    const bool of_file_system = name == "." || name == ".." || name == "lost+found";
    // A marker that was not finished.
    if (!of_file_system && name != absl::StrCat(kRocksDbMarkerFile, ".new")) return false;
  }
  if (errno != 0) return SystemError(directory, "cannot be read");
  return true;
}

absl::Status MakeDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), kDirectoryMode) != 0) {
    if (errno == ENOENT) {
      return absl::NotFoundError(absl::StrCat("the store's directory ", directory,
                                              " cannot be made: ", ParentOf(directory),
                                              " does not exist"));
    }
    return SystemError(directory, "cannot be made");
  }
  return SyncDirectory(ParentOf(directory));
}

}  // namespace

absl::StatusOr<DirectoryState> PrepareDirectory(const std::string& directory) {
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0) {
    if (errno != ENOENT) return SystemError(directory, "cannot be opened");
    if (absl::Status made = MakeDirectory(directory); !made.ok()) return made;
  } else if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(directory, " is not a directory"));
  }
  if (faccessat(AT_FDCWD, directory.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) != 0) {
    return SystemError(directory, "cannot be read and written");
  }
  // Else a lock that belongs to another user would look like one that is held.
  const std::string lock = absl::StrCat(directory, "/LOCK");
  if (faccessat(AT_FDCWD, lock.c_str(), R_OK | W_OK, AT_EACCESS) != 0 && errno != ENOENT) {
    return SystemError(lock, "cannot be read and written");
  }
  const absl::StatusOr<std::optional<DirectoryState>> marked = ReadMarker(directory);
  if (!marked.ok()) return marked.status();
  if (marked->has_value()) return **marked;
  const absl::StatusOr<bool> empty = IsEmpty(directory);
  if (!empty.ok()) return empty.status();
  if (!*empty) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory, " is not empty and is not a claimd store"));
  }
  if (absl::Status written = WriteMarker(directory, kUnfinishedMark); !written.ok()) return written;
  return DirectoryState::kUnfinished;
}

absl::Status MarkReady(const std::string& directory) { return WriteMarker(directory, kReadyMark); }

}  // namespace claimd::store
