#ifndef CLAIMD_TESTS_E2E_HARNESS_SYSCALL_TRACE_H_
#define CLAIMD_TESTS_E2E_HARNESS_SYSCALL_TRACE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace claimd::e2e {

// What a server did, as strace -f -y wrote it down: one line for each call, in the order in which
// they ended, and a call that others overtook on two lines.
class SyscallTrace {
 public:
  explicit SyscallTrace(absl::string_view text);

  // OK if the answer that carries 'marker' was sent only after a write-ahead log that carries it
  // was written and synced. Errors: FailedPrecondition if it was sent before; NotFound if one of
  // the three is not in the trace.
  absl::Status CheckSyncedBeforeAnswer(const std::string& marker) const;

 private:
  // The first line from 'from' on that has all of these.
  std::optional<size_t> Find(size_t from, const std::vector<std::string>& parts) const;
  // The line where the call that begins at 'start' ended: itself, or the one that resumes it.
  std::optional<size_t> EndOf(size_t start) const;

  std::vector<std::string> lines_;
};

}  // namespace claimd::e2e

#endif  // CLAIMD_TESTS_E2E_HARNESS_SYSCALL_TRACE_H_
