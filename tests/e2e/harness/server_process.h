#ifndef CLAIMD_TESTS_E2E_HARNESS_SERVER_PROCESS_H_
#define CLAIMD_TESTS_E2E_HARNESS_SERVER_PROCESS_H_

#include <memory>
#include <string>
#include <sys/types.h>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

#include "tests/e2e/harness/child_process.h"
#include "tests/e2e/harness/temp_dir.h"

namespace claimd::e2e {

// Path of the server binary under test.
std::string ServerBinary();

// Runs the server binary once to its end, as a shell would: for --help and for starts that must
// fail. 'Run' waits for the exit.
struct RunResult {
  ChildProcess::Exit exit;
  std::string out;
  std::string err;
};
// Errors: DeadlineExceeded if the program does not end (it is killed then).
absl::StatusOr<RunResult> RunServerBinary(const std::vector<std::string>& flags,
                                          const std::vector<std::string>& environment = {});

// A claimd with a RocksDB store in a directory of its own, on a free loopback port.
// Thread-compatible; the addresses are constant between starts.
class ServerProcess {
 public:
  struct Options {
    // More flags, behind --listen, --store and --ready-file; the last of two equal ones wins.
    std::vector<std::string> flags;
    std::vector<std::string> environment;
    // What runs the server, such as a tracer; the server's command line follows.
    std::vector<std::string> wrapper;
  };

  // Starts and waits until the server serves. Errors: Internal, with the server's output, if it
  // ends instead or is not ready in time.
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start(Options options);
  static absl::StatusOr<std::unique_ptr<ServerProcess>> Start();

  ~ServerProcess() = default;
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  // The address that it serves on, as a gRPC target.
  const std::string& address() const { return addresses_.front(); }
  const std::vector<std::string>& addresses() const { return addresses_; }
  // Where everything of this server lives, and its store.
  const TempDir& dir() const { return dir_; }
  std::string store_dir() const { return dir_.Join("store"); }
  // The options for the next start.
  Options& options() { return options_; }

  // Starts again on the same data. REQUIRES: not running. Errors: as for Start.
  absl::Status Restart();

  // SIGTERM, then waits for the end. Errors: DeadlineExceeded if it runs on.
  absl::StatusOr<ChildProcess::Exit> Stop();
  // SIGKILL, then waits for the end. The page cache survives, so what was written without fsync
  // does too; see the tracer test for that.
  void Kill9();
  void Signal(int signal_number) const;
  absl::StatusOr<ChildProcess::Exit> WaitForExit(absl::Duration timeout);

  // OK while it runs. Errors: Internal, with its exit code and output.
  absl::Status CheckRunning();
  // What it wrote to its standard error since it was started last.
  std::string Stderr() const;

 private:
  explicit ServerProcess(Options options);
  absl::Status Launch();
  std::string Output() const;

  TempDir dir_;
  Options options_;
  int starts_ = 0;
  std::unique_ptr<ChildProcess> process_;
  std::vector<std::string> addresses_;
};

}  // namespace claimd::e2e

#endif  // CLAIMD_TESTS_E2E_HARNESS_SERVER_PROCESS_H_
