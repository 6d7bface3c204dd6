#ifndef CLAIMD_CLIENT_CTL_CONTEXT_H_
#define CLAIMD_CLIENT_CTL_CONTEXT_H_

#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "claimd/client.h"
#include "claimd/options.h"
#include "client/ctl/command_line.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/table.h"
#include "client/ctl/text.h"

namespace claimd::ctl {

// How results are written.
enum class OutputFormat {
  // For people.
  kTable,
  // One JSON document.
  kJson,
  // One JSON document a line.
  kJsonLines,
};

// The program's surroundings. The streams are not owned and must outlive whoever has this.
struct Terminal {
  std::istream* in = nullptr;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  // Width of 'out'.
  LineWidth width;
  // Whether a person watches 'err', so that a line may be drawn over itself.
  bool err_is_watched = false;
  std::map<std::string, std::string> environment;
};

// What a command works with. Thread-compatible.
class Context {
 public:
  // Errors: a usage error.
  static absl::StatusOr<Context> Make(Invocation invocation, Terminal terminal);

  const Invocation& invocation() const { return invocation_; }
  const Terminal& terminal() const { return terminal_; }
  std::ostream& out() const { return *terminal_.out; }
  std::ostream& err() const { return *terminal_.err; }
  OutputFormat format() const { return format_; }
  const TimeStyle& time_style() const { return time_style_; }

  // A client of the server that the flags name. Errors: as Client::Connect.
  absl::StatusOr<Client> Connect() const;
  // Options of one call: --request-id of a mutation.
  CallOptions call_options() const;

 private:
  Context(Invocation invocation, Terminal terminal);

  Invocation invocation_;
  Terminal terminal_;
  OutputFormat format_ = OutputFormat::kTable;
  TimeStyle time_style_;
  std::optional<absl::Duration> timeout_;
};

// Writes a failed call: reason, ids, malformed fields, what to do next.
void WriteError(const absl::Status& status, OutputFormat format, std::ostream* err);

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_CONTEXT_H_
