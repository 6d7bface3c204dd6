#include "tests/e2e/harness/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

#include "tests/e2e/harness/temp_dir.h"

namespace claimd::e2e {
namespace {

constexpr int kCannotExecute = 127;
constexpr mode_t kFileMode = 0644;

std::vector<char*> Pointers(std::vector<std::string>* strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings->size() + 1);
  for (std::string& text : *strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct ChildSetup {
  std::vector<char*> argv;
  std::vector<char*> envp;
  int stdout_fd = -1;
  int stderr_fd = -1;
  int exit_fd = -1;
  pid_t parent = 0;
};

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void BecomeChild(const ChildSetup& setup) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != setup.parent) _exit(kCannotExecute);
  dup2(setup.stdout_fd, STDOUT_FILENO);
  dup2(setup.stderr_fd, STDERR_FILENO);
  // The one descriptor that the child inherits; its end of file tells that the child ended.
  fcntl(setup.exit_fd, F_SETFD, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(setup.argv.front(), setup.argv.data(), setup.envp.data());
  _exit(kCannotExecute);
}

std::vector<std::string> Environment(const std::vector<std::string>& extra) {
  std::vector<std::string> environment = extra;
  // The first of two equal names wins in getenv, so the test's own come last.
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(Options options) {
  std::array<int, 2> exit_pipe{};
  if (pipe2(exit_pipe.data(), O_CLOEXEC) != 0) {
    return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  std::vector<std::string> arguments = options.command;
  std::vector<std::string> environment = Environment(options.environment);
  ChildSetup setup;
  setup.argv = Pointers(&arguments);
  setup.envp = Pointers(&environment);
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
  setup.stdout_fd = open(options.stdout_path.c_str(), kWrite, kFileMode);
  setup.stderr_fd = open(options.stderr_path.c_str(), kWrite, kFileMode);
  setup.exit_fd = exit_pipe[1];
  setup.parent = getpid();

  const pid_t pid = fork();
  if (pid == 0) BecomeChild(setup);
  const int fork_error = errno;
  close(setup.stdout_fd);
  close(setup.stderr_fd);
  close(exit_pipe[1]);
  if (pid < 0) {
    close(exit_pipe[0]);
    return absl::InternalError(absl::StrCat("fork: ", std::strerror(fork_error)));
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(std::move(options), pid, exit_pipe[0]));
}

ChildProcess::ChildProcess(Options options, pid_t pid, int exit_fd)
    : options_(std::move(options)), pid_(pid), exit_fd_(exit_fd) {}

ChildProcess::~ChildProcess() {
  if (!reaped_) {
    Signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(exit_fd_);
}

void ChildProcess::Signal(int signal_number) const {
  if (!reaped_) kill(pid_, signal_number);
}

absl::StatusOr<ChildProcess::Exit> ChildProcess::WaitForExit(absl::Duration timeout) {
  if (reaped_) return exit_;
  const absl::Time deadline = absl::Now() + timeout;
  pollfd waited{exit_fd_, POLLIN, 0};
  while (true) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat(options_.command.front(), " still runs after ",
                       absl::FormatDuration(timeout), "; its errors so far: ", Stderr()));
    }
    const int ready = poll(&waited, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR) return absl::InternalError(std::strerror(errno));
  }
  int status = 0;
  if (waitpid(pid_, &status, 0) != pid_) return absl::InternalError(std::strerror(errno));
  reaped_ = true;
  if (WIFEXITED(status)) exit_.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit_.signal = WTERMSIG(status);
  return exit_;
}

std::string ChildProcess::Stdout() const { return ReadFile(options_.stdout_path); }
std::string ChildProcess::Stderr() const { return ReadFile(options_.stderr_path); }

}  // namespace claimd::e2e
