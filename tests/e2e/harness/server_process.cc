#include "tests/e2e/harness/server_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/inotify.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "tests/e2e/harness/child_process.h"
#include "tests/e2e/harness/temp_dir.h"

namespace claimd::e2e {
namespace {

// Generous, for sanitizers on a busy machine; nothing waits that long when all is well.
constexpr absl::Duration kStartTimeout = absl::Seconds(60);
constexpr absl::Duration kStopTimeout = absl::Seconds(60);

// Sees a file appear in a directory.
class DirectoryWatch {
 public:
  explicit DirectoryWatch(const std::string& dir) : fd_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    inotify_add_watch(fd_, dir.c_str(), IN_MOVED_TO | IN_CLOSE_WRITE);
  }
  ~DirectoryWatch() { close(fd_); }
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  // Waits until something appeared or 'process' ended. Errors: DeadlineExceeded.
  absl::Status Wait(const ChildProcess& process, absl::Time deadline) const {
    std::array<pollfd, 2> waited{pollfd{fd_, POLLIN, 0}, pollfd{process.exit_fd(), POLLIN, 0}};
    const auto left = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left <= 0) return absl::DeadlineExceededError("the server is not ready");
    poll(waited.data(), waited.size(), static_cast<int>(left));
    std::array<char, 4096> events{};
    while (read(fd_, events.data(), events.size()) > 0) {
    }
    return absl::OkStatus();
  }

 private:
  const int fd_;
};

}  // namespace

std::string ServerBinary() { return CLAIMD_E2E_SERVER_BINARY; }

absl::StatusOr<RunResult> RunServerBinary(const std::vector<std::string>& flags,
                                          const std::vector<std::string>& environment) {
  const TempDir dir;
  ChildProcess::Options options;
  options.command = {ServerBinary()};
  options.command.insert(options.command.end(), flags.begin(), flags.end());
  options.environment = environment;
  options.stdout_path = dir.Join("stdout");
  options.stderr_path = dir.Join("stderr");
  absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(std::move(options));
  if (!process.ok()) return process.status();
  const absl::StatusOr<ChildProcess::Exit> exit = (*process)->WaitForExit(kStartTimeout);
  if (!exit.ok()) return exit.status();
  return RunResult{*exit, (*process)->Stdout(), (*process)->Stderr()};
}

ServerProcess::ServerProcess(Options options) : options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start() { return Start(Options()); }

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(Options options) {
  auto server = absl::WrapUnique(new ServerProcess(std::move(options)));
  if (absl::Status launched = server->Launch(); !launched.ok()) return launched;
  return server;
}

absl::Status ServerProcess::Restart() {
  process_.reset();
  return Launch();
}

absl::Status ServerProcess::Launch() {
  ++starts_;
  const std::string ready_dir = dir_.Join(absl::StrCat("start-", starts_));
  std::filesystem::create_directory(ready_dir);
  const std::string ready_file = absl::StrCat(ready_dir, "/ready");

  ChildProcess::Options child;
  child.command = options_.wrapper;
  child.command.push_back(ServerBinary());
  child.command.emplace_back("--listen=127.0.0.1:0");
  child.command.push_back(absl::StrCat("--store=rocksdb:", store_dir()));
  child.command.push_back(absl::StrCat("--ready-file=", ready_file));
  child.command.insert(child.command.end(), options_.flags.begin(), options_.flags.end());
  child.environment = options_.environment;
  child.stdout_path = absl::StrCat(ready_dir, "/stdout");
  child.stderr_path = absl::StrCat(ready_dir, "/stderr");

  const DirectoryWatch watch(ready_dir);
  absl::StatusOr<std::unique_ptr<ChildProcess>> process = ChildProcess::Start(std::move(child));
  if (!process.ok()) return process.status();
  process_ = *std::move(process);

  const absl::Time deadline = absl::Now() + kStartTimeout;
  while (!std::filesystem::exists(ready_file)) {
    if (absl::Status running = CheckRunning(); !running.ok()) return running;
    if (absl::Status waited = watch.Wait(*process_, deadline); !waited.ok()) {
      return absl::InternalError(
          absl::StrCat(waited.message(), " in time; its output: ", Output()));
    }
  }
  addresses_.clear();
  for (const std::string& line : std::vector<std::string>(
           absl::StrSplit(ReadFile(ready_file), '\n', absl::SkipWhitespace()))) {
    addresses_.push_back(line);
  }
  if (addresses_.empty()) return absl::InternalError("the ready file names no address");
  return absl::OkStatus();
}

absl::StatusOr<ChildProcess::Exit> ServerProcess::Stop() {
  Signal(SIGTERM);
  return WaitForExit(kStopTimeout);
}

void ServerProcess::Kill9() {
  Signal(SIGKILL);
  WaitForExit(kStopTimeout).IgnoreError();  // SIGKILL cannot be refused.
}

void ServerProcess::Signal(int signal_number) const { process_->Signal(signal_number); }

absl::StatusOr<ChildProcess::Exit> ServerProcess::WaitForExit(absl::Duration timeout) {
  return process_->WaitForExit(timeout);
}

absl::Status ServerProcess::CheckRunning() {
  const absl::StatusOr<ChildProcess::Exit> exit = process_->WaitForExit(absl::Milliseconds(1));
  if (absl::IsDeadlineExceeded(exit.status())) return absl::OkStatus();
  if (!exit.ok()) return exit.status();
  return absl::InternalError(absl::StrCat("the server ended with code ", exit->code, ", signal ",
                                          exit->signal, "; its output: ", Output()));
}

std::string ServerProcess::Stderr() const { return process_->Stderr(); }

std::string ServerProcess::Output() const {
  return absl::StrCat(process_->Stdout(), "\n", process_->Stderr());
}

}  // namespace claimd::e2e
