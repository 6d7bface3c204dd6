#include <csignal>
#include <cstdlib>
#include <iostream>
#include <pwd.h>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

#include "absl/strings/numbers.h"

#include "client/ctl/commands.h"
#include "client/ctl/context.h"
#include "client/ctl/table.h"

namespace {

// $COLUMNS, else the terminal's width, else none: what goes into a file or pipe is not cut.
claimd::ctl::LineWidth OutputWidth() {
  size_t columns = 0;
  const char* const asked = std::getenv("COLUMNS");
  if (asked != nullptr && absl::SimpleAtoi(asked, &columns)) return {columns};
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) return {size.ws_col};
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that goes away is an error of writing, as on any other full or closed file.
  std::signal(SIGPIPE, SIG_IGN);
  claimd::ctl::Terminal terminal;
  terminal.in = &std::cin;
  terminal.out = &std::cout;
  terminal.err = &std::cerr;
  terminal.width = OutputWidth();
  terminal.err_is_watched = isatty(STDERR_FILENO) != 0;
  for (const char* name : {"CLAIMD_SERVER", "USER"}) {
    if (const char* const value = std::getenv(name)) terminal.environment[name] = value;
  }
  if (const passwd* const user = getpwuid(geteuid()); user != nullptr) {
    terminal.environment.emplace("USER", user->pw_name);
  }
  const std::vector<std::string> words(argv + 1, argv + argc);
  return static_cast<int>(claimd::ctl::RunClaimctl(words, terminal));
}
