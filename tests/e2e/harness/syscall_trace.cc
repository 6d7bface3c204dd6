#include "tests/e2e/harness/syscall_trace.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace claimd::e2e {

SyscallTrace::SyscallTrace(absl::string_view text) : lines_(absl::StrSplit(text, '\n')) {}

std::optional<size_t> SyscallTrace::Find(size_t from, const std::vector<std::string>& parts) const {
  for (size_t i = from; i < lines_.size(); ++i) {
    if (std::all_of(parts.begin(), parts.end(),
                    [&](const std::string& part) { return absl::StrContains(lines_[i], part); })) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<size_t> SyscallTrace::EndOf(size_t start) const {
  if (!absl::StrContains(lines_[start], "<unfinished")) return start;
  const std::string thread = lines_[start].substr(0, lines_[start].find(' ') + 1);
  for (size_t i = start + 1; i < lines_.size(); ++i) {
    if (absl::StartsWith(lines_[i], thread) && absl::StrContains(lines_[i], "resumed>")) return i;
  }
  return std::nullopt;
}

absl::Status SyscallTrace::CheckSyncedBeforeAnswer(const std::string& marker) const {
  const std::optional<size_t> write = Find(0, {"write", ".log>", marker});
  if (!write.has_value()) return absl::NotFoundError(absl::StrCat("no log write has ", marker));
  const std::string& line = lines_[*write];
  const size_t name = line.find('<');
  const std::string log = line.substr(name, line.find('>') - name + 1);
  const std::optional<size_t> written = EndOf(*write);
  if (!written.has_value()) return absl::NotFoundError(absl::StrCat("never written: ", line));

  const std::optional<size_t> sync = Find(*written, {"sync(", log});
  if (!sync.has_value()) return absl::NotFoundError(absl::StrCat("no sync follows: ", line));
  const std::optional<size_t> synced = EndOf(*sync);
  if (!synced.has_value() || !absl::EndsWith(lines_[*synced], "= 0")) {
    return absl::NotFoundError(absl::StrCat("no sync succeeds: ", lines_[*sync]));
  }

  const std::optional<size_t> sent = Find(0, {"send", marker});
  if (!sent.has_value()) return absl::NotFoundError(absl::StrCat("no answer has ", marker));
  if (*sent < *synced) {
    return absl::FailedPreconditionError(
        absl::StrCat("answered before the log was synced: ", lines_[*sent]));
  }
  return absl::OkStatus();
}

}  // namespace claimd::e2e
