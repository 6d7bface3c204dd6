#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "client/ctl/command_line.h"
#include "client/ctl/text.h"

// The texts that are made of the grammar: help pages and completion.
namespace claimd::ctl {
namespace {

std::string FlagText(const FlagSpec& flag) {
  return absl::StrCat("--", flag.name, flag.value.empty() ? "" : "=", flag.value);
}

// Entries and their explanations side by side.
std::string TwoColumns(const std::vector<std::pair<std::string, std::string>>& entries) {
  size_t width = 0;
  for (const auto& [left, right] : entries) width = std::max(width, DisplayWidth(left));
  std::string text;
  for (const auto& [left, right] : entries) {
    absl::StrAppend(&text, "  ", left, std::string(width - DisplayWidth(left) + 2, ' '));
    const std::string next_line = absl::StrCat("\n", std::string(width + 4, ' '));
    for (const char c : right) {
      if (c == '\n') {
        text += next_line;
      } else {
        text += c;
      }
    }
    text += '\n';
  }
  return text;
}

std::string FlagsText(const std::vector<FlagSpec>& flags) {
  std::vector<std::pair<std::string, std::string>> entries;
  entries.reserve(flags.size());
  for (const FlagSpec& flag : flags) entries.emplace_back(FlagText(flag), flag.help);
  return TwoColumns(entries);
}

std::vector<std::string> FlagWords(const std::vector<FlagSpec>& flags) {
  std::vector<std::string> words;
  words.reserve(flags.size());
  for (const FlagSpec& flag : flags) {
    words.push_back(absl::StrCat("--", flag.name, flag.value.empty() ? "" : "="));
  }
  return words;
}

// Lines of a bash "case" that complete the values of flags.
std::string ValueCases(const std::vector<FlagSpec>& flags) {
  std::string cases;
  for (const FlagSpec& flag : flags) {
    if (flag.is_path) {
      absl::StrAppend(&cases, "    --", flag.name, ") COMPREPLY=($(compgen -f -- \"$cur\"));",
                      " return ;;\n");
    } else if (!flag.choices.empty()) {
      absl::StrAppend(&cases, "    --", flag.name, ") COMPREPLY=($(compgen -W \"",
                      absl::StrJoin(flag.choices, " "), "\" -- \"$cur\")); return ;;\n");
    } else if (!flag.value.empty()) {
      absl::StrAppend(&cases, "    --", flag.name, ") return ;;\n");
    }
  }
  return cases;
}

// Lines of a bash "case" that set what a command takes.
std::string CommandCases(const std::vector<CommandSpec>& commands) {
  std::string cases;
  for (const CommandSpec& command : commands) {
    std::vector<std::string> words;
    bool directory = false;
    for (const ArgumentSpec& argument : command.arguments) {
      words.insert(words.end(), argument.choices.begin(), argument.choices.end());
      directory = directory || argument.is_directory;
    }
    absl::StrAppend(&cases, "    ", command.name, ") flags+=\" ",
                    absl::StrJoin(FlagWords(command.flags), " "), "\"; words=\"",
                    absl::StrJoin(words, " "), "\"", directory ? "; directories=yes" : "", " ;;\n");
  }
  return cases;
}

constexpr char kCompletionBody[] = R"(
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    # A flag that takes a value waits for it right behind the equals sign.
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
  elif [[ -n $directories ]]; then
    compopt -o filenames
    COMPREPLY=($(compgen -d -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
} 2>/dev/null
complete -F _claimctl claimctl
)";

}  // namespace

std::string Synopsis(const CommandSpec& command) {
  std::string synopsis = command.name;
  for (const ArgumentSpec& argument : command.arguments) {
    const std::string name = absl::StrCat(argument.name, argument.repeated ? "…" : "");
    absl::StrAppend(&synopsis, " ", argument.optional ? absl::StrCat("[", name, "]") : name);
  }
  if (!command.flags.empty()) synopsis += " [flags]";
  return synopsis;
}

std::string HelpPage(const Grammar& grammar, const std::string& exit_codes) {
  std::vector<std::pair<std::string, std::string>> commands;
  for (const CommandSpec& command : grammar.commands) {
    commands.emplace_back(command.name, command.summary);
  }
  return absl::StrCat(
      "claimctl: asks and tells claimd, which arbitrates who may write a shard.\n\n",
      "usage: claimctl [flags] COMMAND …\n\nCommands:\n", TwoColumns(commands), "\nFlags:\n",
      FlagsText(grammar.global_flags), "\nExit codes:\n", exit_codes,
      "\nExamples:\n"
      "  claimctl claim users 8e131bde-8368-54ff-89d9-c2e1cc781b29 --spec 1\n"
      "  claimctl --server=10.0.0.5:7420 list users --output jsonl\n"
      "  claimctl import-lance /data/lance --dry-run\n"
      "\n\"claimctl help COMMAND\" tells more about each.\n");
}

std::string HelpPage(const Grammar& grammar, const CommandSpec& command) {
  std::string page =
      absl::StrCat("claimctl ", command.name, ": ", command.summary, "\n\nusage: claimctl ",
                   Synopsis(command), "\n\n", command.description, "\n");
  if (!command.flags.empty()) absl::StrAppend(&page, "\nFlags:\n", FlagsText(command.flags));
  absl::StrAppend(&page, "\nFlags of every command:\n", FlagsText(grammar.global_flags),
                  "\nExamples:\n");
  for (const std::string& example : command.examples) absl::StrAppend(&page, "  ", example, "\n");
  return page;
}

std::string BashCompletion(const Grammar& grammar) {
  std::vector<std::string> names;
  std::vector<FlagSpec> all_flags = grammar.global_flags;
  for (const CommandSpec& command : grammar.commands) {
    names.push_back(command.name);
    all_flags.insert(all_flags.end(), command.flags.begin(), command.flags.end());
  }
  std::stable_sort(all_flags.begin(), all_flags.end(),
                   [](const FlagSpec& a, const FlagSpec& b) { return a.name < b.name; });
  all_flags.erase(
      std::unique(all_flags.begin(), all_flags.end(),
                  [](const FlagSpec& a, const FlagSpec& b) { return a.name == b.name; }),
      all_flags.end());
  return absl::StrCat(
      "# Completion of claimctl for bash. To use it: source <(claimctl completion bash)\n"
      "_claimctl() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  # Bash makes the equals sign a word of its own.\n"
      "  if [[ $cur == \"=\" ]]; then cur=; elif [[ $previous == \"=\" ]]; then\n"
      "    previous=${COMP_WORDS[COMP_CWORD-2]}\n"
      "  fi\n"
      "  COMPREPLY=()\n"
      "  case $previous in\n",
      ValueCases(all_flags),
      "    -o) COMPREPLY=($(compgen -W \"table json jsonl\" -- \"$cur\")); return ;;\n"
      "  esac\n"
      "  local word command= directories= words=\"",
      absl::StrJoin(names, " "),
      "\"\n"
      "  local flags=\"--help ",
      absl::StrJoin(FlagWords(grammar.global_flags), " "),
      "\"\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \" $words \" in *\" $word \"*) command=$word; break ;; esac\n"
      "  done\n"
      "  case $command in\n",
      CommandCases(grammar.commands), "  esac", kCompletionBody);
}

}  // namespace claimd::ctl
