#ifndef CLAIMD_TESTS_E2E_HARNESS_CHILD_PROCESS_H_
#define CLAIMD_TESTS_E2E_HARNESS_CHILD_PROCESS_H_

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace claimd::e2e {

// A program that a test runs. Killed when this is destroyed and when the test program dies.
// Thread-compatible; Start must be called on a thread that outlives the child.
class ChildProcess {
 public:
  struct Options {
    // Program (a path, or a name to look up) and its arguments.
    std::vector<std::string> command;
    // "NAME=value", on top of the test's own environment.
    std::vector<std::string> environment;
    // Where its output goes. The files are made anew.
    std::string stdout_path;
    std::string stderr_path;
  };

  // How a child ended.
  struct Exit {
    // Exit code, or -1 when a signal ended it.
    int code = -1;
    // The signal, or 0.
    int signal = 0;
  };

  // Errors: Internal if the program cannot be started at all. (A program that is not there exits
  // with code 127.)
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(Options options);

  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int signal_number) const;

  // Waits until the child ended. Errors: DeadlineExceeded if it runs on.
  absl::StatusOr<Exit> WaitForExit(absl::Duration timeout);

  // Readable (end of file) once the child and all its children ended. For poll().
  int exit_fd() const { return exit_fd_; }

  std::string Stdout() const;
  std::string Stderr() const;

 private:
  ChildProcess(Options options, pid_t pid, int exit_fd);

  const Options options_;
  const pid_t pid_;
  const int exit_fd_;
  bool reaped_ = false;
  Exit exit_;
};

}  // namespace claimd::e2e

#endif  // CLAIMD_TESTS_E2E_HARNESS_CHILD_PROCESS_H_
