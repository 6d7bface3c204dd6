#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include <glog/logging.h>
#include <grpc/support/log.h>

#include "server/process/flags.h"
#include "server/process/server.h"
#include "server/process/version.h"

namespace claimd::process {
namespace {

enum ExitCode : int {
  kExitRuntime = 1,
  kExitUsage = 2,
  kExitStore = 3,
  kExitListen = 4,
};
// As shells report it.
constexpr int kSignalExitBase = 128;

// gRPC's own log is for its developers; it can be seen with GLOG_v=1.
void LogGrpc(gpr_log_func_args* args) {
  VLOG(1) << "msg=grpc file=" << args->file << ":" << args->line << " text=\""
          << absl::Utf8SafeCHexEscape(args->message) << "\"";
}

int Complain(ExitCode code, const absl::Status& status) {
  std::fprintf(stderr, "claimd: %s\n", std::string(status.message()).c_str());
  return code;
}

sigset_t StopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

void ExitAtOnce(int signal_number) { _exit(kSignalExitBase + signal_number); }

// Returns when the first stop signal arrives; from then on, another one ends the process.
void AwaitStopSignal() {
  const sigset_t signals = StopSignals();
  int signal_number = 0;
  sigwait(&signals, &signal_number);
  LOG(INFO) << "msg=\"stop signal\" signal=" << signal_number;
  struct sigaction action {};
  action.sa_handler = ExitAtOnce;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

int Run(const std::vector<std::string>& arguments) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments);
  if (!line.ok()) return Complain(kExitUsage, line.status());
  if (line->action == CommandLine::Action::kHelp) {
    std::fputs(HelpText().c_str(), stdout);
    return EXIT_SUCCESS;
  }
  if (line->action == CommandLine::Action::kVersion) {
    std::printf("claimd %s\n", kVersion);
    return EXIT_SUCCESS;
  }
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Open(line->config);
  if (!server.ok()) {
    const bool usage =
        absl::IsInvalidArgument(server.status()) || absl::IsUnimplemented(server.status());
    return Complain(usage ? kExitUsage : kExitStore, server.status());
  }
  if (absl::Status listening = (*server)->Listen(); !listening.ok()) {
    return Complain(kExitListen, listening);
  }
  if (absl::Status announced = (*server)->Announce(); !announced.ok()) {
    return Complain(kExitRuntime, announced);
  }
  AwaitStopSignal();
  (*server)->Drain();
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace claimd::process

int main(int argc, char** argv) {
  // Blocked before any thread starts, so that they reach sigwait and nobody else.
  sigset_t signals = claimd::process::StopSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  gpr_set_log_function(claimd::process::LogGrpc);
  return claimd::process::Run(std::vector<std::string>(argv + 1, argv + argc));
}
