#ifndef CLAIMD_CLIENT_CTL_TEXT_H_
#define CLAIMD_CLIENT_CTL_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// Text for people and for programs, made of values that anybody may have written. Pure functions.
namespace claimd::ctl {

// The text with everything that could move a terminal's cursor (control characters, bytes that are
// no UTF-8) in visible form.
std::string Printable(absl::string_view text);

// Bytes for people: as text where they are printable ASCII, else in hexadecimal behind "0x".
std::string PrintableBytes(absl::string_view bytes);

// "name=value" of each entry, separated by blanks.
std::string PrintableMap(const std::map<std::string, std::string>& entries);

// How many columns of a terminal a printable text takes.
size_t DisplayWidth(absl::string_view text);

// The text, cut and closed with "…" if it takes more than 'width' columns. REQUIRES: width > 0.
std::string FitWidth(absl::string_view text, size_t width);

// A JSON string with its quotation marks. Bytes that are no UTF-8 become U+FFFD.
std::string JsonString(absl::string_view text);

// A JSON array of strings.
std::string JsonStrings(const std::vector<std::string>& texts);

// How times are shown.
struct TimeStyle {
  // RFC 3339 in UTC instead of the distance from 'now'.
  bool absolute = false;
  absl::Time now;
};

// "3m ago", or the exact time; "-" if there is none.
std::string TimeText(const std::optional<absl::Time>& time, const TimeStyle& style);

// "3 shards", "1 shard".
std::string Count(uint64_t count, absl::string_view singular);

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_TEXT_H_
