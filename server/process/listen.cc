#include "server/process/listen.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace claimd::process {

absl::Status CheckUnixSocketFree(absl::string_view address) {
  absl::string_view path = address;
  if (!absl::ConsumePrefix(&path, "unix:")) return absl::OkStatus();
  sockaddr_un name{};
  if (path.size() >= sizeof(name.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of ", address, " is too long"));
  }
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  struct stat info {};
  if (lstat(name.sun_path, &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(absl::StrCat(path, " exists and is no socket"));
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::InternalError(absl::StrCat("no socket: ", std::strerror(errno)));
  const bool answered =
      connect(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0 || errno == EAGAIN;
  close(fd);
  if (answered) return absl::AlreadyExistsError(absl::StrCat("another process serves ", address));
  return absl::OkStatus();
}

std::string WithPort(absl::string_view address, int port) {
  if (absl::StartsWith(address, "unix:")) return std::string(address);
  return absl::StrCat(address.substr(0, address.rfind(':')), ":", port);
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view content) {
  const std::string temporary = absl::StrCat(path, ".tmp");
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool written = fd >= 0;
  written =
      written && write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
  if (fd >= 0) written = close(fd) == 0 && written;
  written = written && std::rename(temporary.c_str(), path.c_str()) == 0;
  if (written) return absl::OkStatus();
  const int cause = errno;
  unlink(temporary.c_str());
  return absl::InternalError(absl::StrCat("cannot write ", path, ": ", std::strerror(cause)));
}

}  // namespace claimd::process
