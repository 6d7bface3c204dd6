#include "client/ctl/text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace claimd::ctl {
namespace {

constexpr absl::string_view kEllipsis = "…";

// One character of a text: its bytes, and its code point unless the bytes are no UTF-8.
struct Character {
  absl::string_view bytes;
  std::optional<uint32_t> code_point;
};

bool IsContinuation(char c) { return (static_cast<uint8_t>(c) & 0xC0U) == 0x80U; }

// Bytes of the sequence that a first byte begins; 0 if none can begin with it.
size_t SequenceLength(uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  if (first >= 0xF0 && first < 0xF5) return 4;
  return 0;
}

// The first character of a text. REQUIRES: the text is not empty.
Character FirstCharacter(absl::string_view text) {
  constexpr std::array<uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const auto first = static_cast<uint8_t>(text[0]);
  const size_t length = SequenceLength(first);
  const Character broken{text.substr(0, 1), std::nullopt};
  if (length == 0 || text.size() < length) return broken;
  uint32_t code_point = length == 1 ? first : first & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(text[i])) return broken;
    code_point = (code_point << 6U) | (static_cast<uint8_t>(text[i]) & 0x3FU);
  }
  const bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
  if (code_point < kSmallest[length] || surrogate || code_point > 0x10FFFF) return broken;
  return {text.substr(0, length), code_point};
}

bool IsControl(uint32_t code_point) {
  // C0, delete, C1, and the marks that turn the direction of what follows.
  return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) ||
         (code_point >= 0x202A && code_point <= 0x202E) ||
         (code_point >= 0x2066 && code_point <= 0x2069);
}

template <typename Visit>
void ForEachCharacter(absl::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    visit(character);
    text.remove_prefix(character.bytes.size());
  }
}

void AppendJson(const Character& character, std::string* json) {
  if (!character.code_point.has_value()) {
    json->append("\\ufffd");
  } else if (*character.code_point == '"' || *character.code_point == '\\') {
    absl::StrAppend(json, "\\", character.bytes);
  } else if (*character.code_point < 0x20) {
    absl::StrAppendFormat(json, "\\u%04x", *character.code_point);
  } else {
    absl::StrAppend(json, character.bytes);
  }
}

}  // namespace

std::string Printable(absl::string_view text) {
  std::string printable;
  ForEachCharacter(text, [&printable](const Character& character) {
    if (character.code_point.has_value() && !IsControl(*character.code_point)) {
      absl::StrAppend(&printable, character.bytes);
      return;
    }
    for (const char byte : character.bytes) {
      absl::StrAppendFormat(&printable, "\\x%02x", static_cast<uint8_t>(byte));
    }
  });
  return printable;
}

std::string PrintableBytes(absl::string_view bytes) {
  const bool text = std::all_of(bytes.begin(), bytes.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  return text ? std::string(bytes) : absl::StrCat("0x", absl::BytesToHexString(bytes));
}

std::string PrintableMap(const std::map<std::string, std::string>& entries) {
  return absl::StrJoin(entries, " ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, Printable(entry.first), "=", PrintableBytes(entry.second));
  });
}

size_t DisplayWidth(absl::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

std::string FitWidth(absl::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  std::string fitting;
  size_t used = 1;
  ForEachCharacter(text, [&](const Character& character) {
    if (++used <= width) absl::StrAppend(&fitting, character.bytes);
  });
  return absl::StrCat(fitting, kEllipsis);
}

std::string JsonString(absl::string_view text) {
  std::string json = "\"";
  ForEachCharacter(text, [&json](const Character& character) { AppendJson(character, &json); });
  return absl::StrCat(json, "\"");
}

std::string JsonStrings(const std::vector<std::string>& texts) {
  return absl::StrCat("[",
                      absl::StrJoin(texts, ",",
                                    [](std::string* out, const std::string& text) {
                                      out->append(JsonString(text));
                                    }),
                      "]");
}

std::string TimeText(const std::optional<absl::Time>& time, const TimeStyle& style) {
  if (!time.has_value()) return "-";
  if (style.absolute) {
    return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", *time, absl::UTCTimeZone());
  }
  struct Unit {
    absl::Duration length;
    char name;
  };
  constexpr std::array<Unit, 4> kUnits = {{{absl::Hours(24), 'd'},
                                           {absl::Hours(1), 'h'},
                                           {absl::Minutes(1), 'm'},
                                           {absl::Seconds(1), 's'}}};
  const absl::Duration age = style.now - *time;
  const absl::Duration distance = age < absl::ZeroDuration() ? -age : age;
  if (distance < absl::Seconds(1)) return "now";
  for (const Unit& unit : kUnits) {
    if (distance < unit.length) continue;
    const std::string text = absl::StrFormat("%d%c", distance / unit.length, unit.name);
    // The server's clock may be ahead of this machine's.
    return age < absl::ZeroDuration() ? absl::StrCat("in ", text) : absl::StrCat(text, " ago");
  }
  return "now";
}

std::string Count(uint64_t count, absl::string_view singular) {
  return absl::StrCat(count, " ", singular, count == 1 ? "" : "s");
}

}  // namespace claimd::ctl
