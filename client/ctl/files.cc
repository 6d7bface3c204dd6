#include "client/ctl/files.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "client/ctl/text.h"

namespace claimd::ctl {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kFileMode = 0644;
constexpr size_t kReadChunk = size_t{64} << 10U;

absl::Status SystemError(absl::string_view what, const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat(what, " ", Printable(path)));
}

// An open file, closed at the end. Errors are those of the system call.
class File {
 public:
  static absl::StatusOr<File> Open(const std::string& path, int flags) {
    const int descriptor = open(path.c_str(), flags | O_CLOEXEC, kFileMode);
    if (descriptor < 0) return SystemError("cannot open", path, errno);
    return File(descriptor, path);
  }
  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  File(File&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  File& operator=(File&&) = delete;

  absl::Status Append(absl::string_view content) const {
    while (!content.empty()) {
      const ssize_t written = write(descriptor_, content.data(), content.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return SystemError("cannot write", path_, errno);
      content.remove_prefix(static_cast<size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status Sync() const {
    return fsync(descriptor_) == 0 ? absl::OkStatus() : SystemError("cannot sync", path_, errno);
  }

  absl::StatusOr<std::string> ReadAll(size_t bytes_max) const {
    std::string content;
    while (true) {
      const size_t begin = content.size();
      content.resize(begin + kReadChunk);
      const ssize_t got = read(descriptor_, &content[begin], kReadChunk);
      content.resize(begin + static_cast<size_t>(std::max<ssize_t>(got, 0)));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return SystemError("cannot read", path_, errno);
      if (got == 0) return content;
      if (content.size() > bytes_max) {
        return absl::ResourceExhaustedError(absl::StrCat(
            Printable(path_), " has more than ", bytes_max, " bytes, which no manifest has"));
      }
    }
  }

 private:
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_;
  std::string path_;
};

absl::Status SyncDirectory(const std::string& path) {
  const auto directory = File::Open(path, O_RDONLY | O_DIRECTORY);
  return directory.ok() ? directory->Sync() : directory.status();
}

// Gives a file its name, unless something has it.
absl::Status LinkOrMove(const std::string& from, const std::string& to) {
  if (link(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  // A file system without hard links may know how to rename without replacing.
  const bool no_links = errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK;
  if (no_links && renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
    return absl::OkStatus();
  }
  return SystemError("cannot make", to, errno);
}

absl::Status WriteDurably(const std::string& path, absl::string_view content) {
  const auto file = File::Open(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.ok()) return file.status();
  if (absl::Status status = file->Append(content); !status.ok()) return status;
  return file->Sync();
}

}  // namespace

std::string JoinPath(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

absl::StatusOr<std::vector<DirectoryEntry>> ListDirectory(const std::string& path) {
  std::error_code error;
  std::vector<DirectoryEntry> entries;
  fs::directory_iterator it(path, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    std::error_code unknown;
    entries.push_back({it->path().filename().string(), it->is_directory(unknown)});
  }
  if (error) return SystemError("cannot list", path, error.value());
  std::sort(entries.begin(), entries.end(),
            [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
  return entries;
}

absl::StatusOr<bool> IsDirectory(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) == 0) return S_ISDIR(facts.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return SystemError("cannot look at", path, errno);
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  // Not blocking, in case that the name belongs to a pipe.
  const auto file = File::Open(path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return file.status();
  return file->ReadAll(bytes_max);
}

absl::Status MakeDirectories(const std::string& path) {
  constexpr mode_t kDirectoryMode = 0755;
  fs::path made;
  for (const fs::path& part : fs::path(path)) {
    const std::string parent = made.empty() ? "." : made.string();
    made /= part;
    const auto there = IsDirectory(made.string());
    if (!there.ok()) return there.status();
    if (*there) continue;
    if (mkdir(made.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
      return SystemError("cannot make", made.string(), errno);
    }
    if (absl::Status status = SyncDirectory(parent); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status PutIfAbsent(const std::string& directory, const std::string& name,
                         absl::string_view content) {
  // Lance takes names with ".tmp." for what they are.
  const std::string temporary = JoinPath(directory, absl::StrCat(name, ".tmp.", getpid()));
  unlink(temporary.c_str());
  absl::Status status = WriteDurably(temporary, content);
  if (status.ok()) status = LinkOrMove(temporary, JoinPath(directory, name));
  unlink(temporary.c_str());
  if (!status.ok()) return status;
  return SyncDirectory(directory);
}

}  // namespace claimd::ctl
