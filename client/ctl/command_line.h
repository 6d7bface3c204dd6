#ifndef CLAIMD_CLIENT_CTL_COMMAND_LINE_H_
#define CLAIMD_CLIENT_CTL_COMMAND_LINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

// What can be typed, as data: the parser, --help and the completion all read it.
namespace claimd::ctl {

struct FlagSpec {
  // Without the dashes.
  std::string name;
  // What stands for the value in a synopsis; empty for a flag without one.
  std::string value;
  std::string help;
  // The values there are, if they can be listed.
  std::vector<std::string> choices = {};
  // Whether the value is the path of a file.
  bool is_path = false;
};

struct ArgumentSpec {
  // What stands for it in a synopsis.
  std::string name;
  bool optional = false;
  // The last one may be given more than once.
  bool repeated = false;
  bool is_directory = false;
  std::vector<std::string> choices = {};
  // Whether there can be others than 'choices', which are offered for completion only.
  bool others_allowed = false;
};

struct CommandSpec {
  std::string name;
  std::vector<ArgumentSpec> arguments;
  // One line.
  std::string summary;
  // Paragraphs.
  std::string description;
  std::vector<FlagSpec> flags;
  // Command lines.
  std::vector<std::string> examples;
};

struct Grammar {
  std::vector<FlagSpec> global_flags;
  std::vector<CommandSpec> commands;
};

// A command line that fits the grammar. Value type.
class Invocation {
 public:
  // Reads the words behind the program's name. Flags and arguments may come in any order; behind
  // "--" there are arguments only. "--help" anywhere in front of it asks for help, which needs
  // nothing else to be right.
  // Errors: a usage error that says what is wrong.
  static absl::StatusOr<Invocation> Parse(const Grammar& grammar,
                                          const std::vector<std::string>& words);

  // Name of the command; empty if none was given, which is only right with --help or --version.
  const std::string& command() const { return command_; }
  bool help() const { return help_; }

  const std::vector<std::string>& arguments() const { return arguments_; }
  // REQUIRES: the grammar makes the command have this argument.
  const std::string& argument(size_t index) const { return arguments_.at(index); }
  absl::StatusOr<uint64_t> NumberArgument(size_t index, const std::string& name) const;

  bool Has(const std::string& flag) const { return flags_.contains(flag); }
  // Each value given for the flag, in order.
  std::vector<std::string> Values(const std::string& flag) const;
  // The last value given, or ''.
  std::string Text(const std::string& flag) const;
  // Errors of all these: a usage error.
  absl::StatusOr<std::optional<uint64_t>> Number(const std::string& flag) const;
  absl::StatusOr<std::optional<uint32_t>> SmallNumber(const std::string& flag) const;
  absl::StatusOr<std::optional<absl::Duration>> Duration(const std::string& flag) const;
  // The values given as NAME=VALUE.
  absl::StatusOr<std::map<std::string, std::string>> Map(const std::string& flag) const;

 private:
  absl::Status ParseWords(const Grammar& grammar, const std::vector<std::string>& words);
  absl::Status ParseFlag(const Grammar& grammar, const std::vector<std::string>& words,
                         size_t* index);
  absl::Status CheckArguments(const Grammar& grammar) const;

  std::string command_;
  bool help_ = false;
  std::vector<std::string> arguments_;
  std::map<std::string, std::vector<std::string>> flags_;
};

// The command of that name, or null.
const CommandSpec* FindCommand(const Grammar& grammar, const std::string& name);

// "claim TABLE SHARD_ID [flags]".
std::string Synopsis(const CommandSpec& command);

// The page that --help shows for all commands (without 'exit_codes', which is added at its end),
// and the one for a command.
std::string HelpPage(const Grammar& grammar, const std::string& exit_codes);
std::string HelpPage(const Grammar& grammar, const CommandSpec& command);

// What bash has to run to complete claimctl's command lines.
std::string BashCompletion(const Grammar& grammar);

// An error in how the program was called.
absl::Status UsageError(const std::string& message);
bool IsUsageError(const absl::Status& status);

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_COMMAND_LINE_H_
