#include "client/ctl/command_line.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"

#include "client/ctl/text.h"

namespace claimd::ctl {
namespace {

constexpr absl::string_view kUsagePayload = "claimctl.usage";

const FlagSpec* FindFlag(const std::vector<FlagSpec>& flags, absl::string_view name) {
  const auto found = std::find_if(flags.begin(), flags.end(),
                                  [name](const FlagSpec& flag) { return flag.name == name; });
  return found == flags.end() ? nullptr : &*found;
}

bool Contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string Quoted(const std::string& word) { return absl::StrCat("\"", Printable(word), "\""); }

template <typename Integer>
absl::StatusOr<Integer> ToNumber(const std::string& what, const std::string& text) {
  Integer number = 0;
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  if (!digits || !absl::SimpleAtoi(text, &number)) {
    return UsageError(absl::StrCat(what, " must be a whole number of at most ", 8 * sizeof(Integer),
                                   " bits, not ", Quoted(text)));
  }
  return number;
}

template <typename Integer>
absl::StatusOr<std::optional<Integer>> FlagNumber(const Invocation& invocation,
                                                  const std::string& flag) {
  if (!invocation.Has(flag)) return std::optional<Integer>();
  absl::StatusOr<Integer> number =
      ToNumber<Integer>(absl::StrCat("--", flag), invocation.Text(flag));
  if (!number.ok()) return number.status();
  return std::optional<Integer>(*number);
}

}  // namespace

absl::Status UsageError(const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsagePayload, absl::Cord());
  return status;
}

bool IsUsageError(const absl::Status& status) {
  return status.GetPayload(kUsagePayload).has_value();
}

const CommandSpec* FindCommand(const Grammar& grammar, const std::string& name) {
  for (const CommandSpec& command : grammar.commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

absl::StatusOr<Invocation> Invocation::Parse(const Grammar& grammar,
                                             const std::vector<std::string>& words) {
  Invocation invocation;
  const absl::Status status = invocation.ParseWords(grammar, words);
  const auto end = std::find(words.begin(), words.end(), "--");
  invocation.help_ = std::any_of(
      words.begin(), end, [](const std::string& word) { return word == "--help" || word == "-h"; });
  if (invocation.help_) return invocation;
  if (!status.ok()) return status;
  return invocation;
}

absl::Status Invocation::ParseWords(const Grammar& grammar, const std::vector<std::string>& words) {
  bool flags_may_come = true;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (flags_may_come && word == "--") {
      flags_may_come = false;
    } else if (flags_may_come && word.size() > 1 && word[0] == '-') {
      if (absl::Status status = ParseFlag(grammar, words, &i); !status.ok()) return status;
    } else if (command_.empty()) {
      command_ = word;
      if (FindCommand(grammar, command_) == nullptr) {
        return UsageError(absl::StrCat("there is no command ", Quoted(word)));
      }
    } else {
      arguments_.push_back(word);
    }
  }
  return CheckArguments(grammar);
}

absl::Status Invocation::ParseFlag(const Grammar& grammar, const std::vector<std::string>& words,
                                   size_t* index) {
  absl::string_view name = words[*index];
  if (name == "-h" || name == "--help") return absl::OkStatus();
  if (name == "-o") name = "--output";
  std::optional<std::string> value;
  if (const size_t equals = name.find('='); equals != absl::string_view::npos) {
    value = std::string(name.substr(equals + 1));
    name = name.substr(0, equals);
  }
  const std::string shown = Printable(name);
  if (!absl::ConsumePrefix(&name, "--")) return UsageError("there is no flag " + shown);

  const CommandSpec* command = FindCommand(grammar, command_);
  const FlagSpec* flag = command == nullptr ? nullptr : FindFlag(command->flags, name);
  if (flag == nullptr) flag = FindFlag(grammar.global_flags, name);
  if (flag == nullptr) {
    return UsageError(command == nullptr
                          ? absl::StrCat("there is no flag ", shown,
                                         " in front of the command; a command's own flags come "
                                         "behind it")
                          : absl::StrCat(command_, " has no flag ", shown));
  }
  if (flag->value.empty()) {
    if (value.has_value()) return UsageError(shown + " takes no value");
    value = "";
  } else if (!value.has_value()) {
    if (*index + 1 >= words.size()) return UsageError(shown + " needs a value");
    value = words[++*index];
  }
  if (!flag->choices.empty() && !Contains(flag->choices, *value)) {
    return UsageError(absl::StrCat(shown, " must be ", absl::StrJoin(flag->choices, ", "), ", not ",
                                   Quoted(*value)));
  }
  flags_[flag->name].push_back(*std::move(value));
  return absl::OkStatus();
}

absl::Status Invocation::CheckArguments(const Grammar& grammar) const {
  if (command_.empty()) {
    if (Has("version")) return absl::OkStatus();
    return UsageError("a command is missing");
  }
  const CommandSpec& command = *FindCommand(grammar, command_);
  const auto& specs = command.arguments;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (i >= arguments_.size() && !specs[i].optional) {
      return UsageError(absl::StrCat(command_, " needs ", specs[i].name, ": ", Synopsis(command)));
    }
  }
  if (arguments_.size() > specs.size() && (specs.empty() || !specs.back().repeated)) {
    return UsageError(absl::StrCat(Quoted(arguments_[specs.size()]),
                                   " is one argument too many: ", Synopsis(command)));
  }
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const ArgumentSpec& spec = specs[std::min(i, specs.size() - 1)];
    if (spec.choices.empty() || spec.others_allowed || Contains(spec.choices, arguments_[i])) {
      continue;
    }
    return UsageError(absl::StrCat("there is no ", command_, " ", Quoted(arguments_[i]),
                                   "; there is ", absl::StrJoin(spec.choices, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Invocation::NumberArgument(size_t index, const std::string& name) const {
  return ToNumber<uint64_t>(name, argument(index));
}

std::vector<std::string> Invocation::Values(const std::string& flag) const {
  const auto found = flags_.find(flag);
  return found == flags_.end() ? std::vector<std::string>() : found->second;
}

std::string Invocation::Text(const std::string& flag) const {
  const auto found = flags_.find(flag);
  return found == flags_.end() ? std::string() : found->second.back();
}

absl::StatusOr<std::optional<uint64_t>> Invocation::Number(const std::string& flag) const {
  return FlagNumber<uint64_t>(*this, flag);
}

absl::StatusOr<std::optional<uint32_t>> Invocation::SmallNumber(const std::string& flag) const {
  return FlagNumber<uint32_t>(*this, flag);
}

absl::StatusOr<std::optional<absl::Duration>> Invocation::Duration(const std::string& flag) const {
  if (!Has(flag)) return std::optional<absl::Duration>();
  absl::Duration duration;
  if (!absl::ParseDuration(Text(flag), &duration) || duration <= absl::ZeroDuration()) {
    return UsageError(absl::StrCat("--", flag, " must be a time such as 500ms, 10s or 1m, not ",
                                   Quoted(Text(flag))));
  }
  return std::optional<absl::Duration>(duration);
}

absl::StatusOr<std::map<std::string, std::string>> Invocation::Map(const std::string& flag) const {
  std::map<std::string, std::string> entries;
  for (const std::string& word : Values(flag)) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return UsageError(absl::StrCat("--", flag, " must be NAME=VALUE, not ", Quoted(word)));
    }
    if (!entries.emplace(word.substr(0, equals), word.substr(equals + 1)).second) {
      return UsageError(
          absl::StrCat("--", flag, " names ", Quoted(word.substr(0, equals)), " more than once"));
    }
  }
  return entries;
}

}  // namespace claimd::ctl
