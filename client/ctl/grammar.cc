#include <string>
#include <utility>
#include <vector>

#include "client/ctl/command_line.h"
#include "client/ctl/commands.h"

// Everything that can be typed.
namespace claimd::ctl {
namespace {

constexpr char kExampleShard[] = "8e131bde-8368-54ff-89d9-c2e1cc781b29";

std::string Example(const std::string& before, const std::string& after = "") {
  return "claimctl " + before + " users " + kExampleShard + (after.empty() ? "" : " " + after);
}

const std::vector<ArgumentSpec>& ShardArguments() {
  static const auto* const arguments = new std::vector<ArgumentSpec>{{"TABLE"}, {"SHARD_ID"}};
  return *arguments;
}

std::vector<ArgumentSpec> ShardAndEpoch() { return {{"TABLE"}, {"SHARD_ID"}, {"EPOCH"}}; }

FlagSpec RequestIdFlag() {
  return {"request-id", "ID", "repeat the call with this id, to settle one whose answer was lost"};
}

FlagSpec SpecFlag() {
  return {"spec", "N", "the sharding spec; 0, the default, is an id like any other"};
}

std::vector<FlagSpec> IdentityFlags() {
  return {{"field", "NAME=VALUE",
           "a partition value of the shard, as text or as hex:…; may be repeated"},
          {"fingerprint", "HEX", "hash of the full sharding spec"}};
}

FlagSpec LimitFlag() { return {"limit", "N", "stop behind that many"}; }

std::vector<FlagSpec> GlobalFlags() {
  return {
      {"server", "HOST:PORT[,…]",
       "where claimd is (or unix:PATH); default $CLAIMD_SERVER, then 127.0.0.1:7420"},
      {"output",
       "FORMAT",
       "table (default), json or jsonl; -o is short for it",
       {"table", "json", "jsonl"}},
      {"absolute", "", "exact times (UTC) instead of relative ones"},
      {"timeout", "TIME", "how long a call may take, tries included; default 10s"},
      {"tls", "", "encrypt; implied by the other TLS flags"},
      {"tls-ca", "FILE", "certificates to trust (PEM); default those of the system", {}, true},
      {"tls-cert", "FILE", "certificate to show (PEM)", {}, true},
      {"tls-key", "FILE", "its key (PEM)", {}, true},
      {"tls-server-name", "NAME", "name to expect in the server's certificate"},
      {"version", "", "show the version of this program"},
  };
}

CommandSpec ClaimCommand() {
  CommandSpec command{
      "claim",
      ShardArguments(),
      "claims a shard, making it if need be, and fences every older epoch",
      "The claim holds until it is released or somebody claims after it; it does not end with\n"
      "this program. It is refused, and nothing changes, if the shard was made under another spec.",
      {SpecFlag(),
       {"claimant", "NAME", "who claims; default \"USER (claimctl)\""},
       {"label", "NAME=VALUE", "more about the claimant; may be repeated"},
       {"mode",
        "MODE",
        "preempt (default) takes the shard from whoever holds it;\n"
        "if-free is refused while somebody does",
        {"preempt", "if-free"}},
       {"expected-epoch", "N", "claim only if this is the stored epoch; 0: never claimed"},
       {"epoch-floor", "N",
        "largest epoch seen in the shard's own data; the one granted is larger"}},
      {Example("claim", "--spec 1"),
       Example("claim", "--spec 1 --mode=if-free --claimant=ingest-7"),
       Example("claim", "--spec 1 --field bucket=hex:02000000 -o json")}};
  for (FlagSpec& flag : IdentityFlags()) command.flags.push_back(std::move(flag));
  command.flags.push_back(RequestIdFlag());
  return command;
}

std::vector<CommandSpec> WriteCommands() {
  CommandSpec init{"init",
                   ShardArguments(),
                   "makes a shard without claiming it",
                   "The shard has epoch 0 until somebody claims it. A shard that is there with the "
                   "same\nidentity is left as it is.",
                   {SpecFlag()},
                   {Example("init", "--spec 1")}};
  for (FlagSpec& flag : IdentityFlags()) init.flags.push_back(std::move(flag));
  return {
      {"check",
       ShardAndEpoch(),
       "asks whether an epoch still owns the shard",
       "Exit code 0: it is the newest. 4: the writer is fenced. 5: no such epoch was granted yet.",
       {},
       {Example("check", "3")}},
      {"release",
       ShardAndEpoch(),
       "gives a claim back",
       "The epoch stays the newest until the next claim. Needs the epoch, so that nobody's claim\n"
       "is released by mistake.",
       {RequestIdFlag()},
       {Example("release", "3")}},
      {"seal",
       ShardArguments(),
       "lets no new claim in, so that the shard can be dropped",
       "The holder may go on committing, to drain. Can be taken back with unseal.",
       {RequestIdFlag()},
       {Example("seal")}},
      {"unseal",
       ShardArguments(),
       "takes the seal away",
       "Claims are let in again.",
       {RequestIdFlag()},
       {Example("unseal")}},
      {"drop",
       ShardArguments(),
       "drops a sealed shard",
       "Shows the shard and asks for its id again. What stays is a tombstone with version and\n"
       "epoch, so that a shard made again under this id goes on from them and every old writer\n"
       "stays fenced.",
       {{"yes", "", "do not ask"},
        {"expected-epoch", "N",
         "drop only if this is the stored epoch; default with a question:\n"
         "the epoch that was shown"},
        RequestIdFlag()},
       {Example("drop"), Example("drop", "--yes --expected-epoch=4")}},
      std::move(init),
  };
}

std::vector<CommandSpec> ReadCommands() {
  return {
      {"get",
       ShardArguments(),
       "shows a shard's manifest",
       "The newest one, or a version that the history still keeps.",
       {{"version", "N", "show this version"}},
       {Example("get"), Example("get", "--version=7 -o json")}},
      {"list",
       {{"TABLE"}},
       "lists the shards of a table",
       "In the order of their ids, without dropped ones unless they are asked for. Columns that\n"
       "do not fit the terminal are left out; -o json has everything.",
       {{"status", "STATUS", "only shards of this status", {"active", "sealed", "dropped"}},
        {"held-by", "NAME", "only shards that this claimant holds"},
        {"spec", "N", "only shards of this spec"},
        {"full", "", "with sstables"},
        LimitFlag()},
       {"claimctl list users", "claimctl list users --held-by=ingest-7 -o jsonl"}},
      {"history",
       ShardArguments(),
       "lists the kept versions of a shard, newest first",
       "The server keeps a limited number of them (see info).",
       {{"full", "", "with sstables"}, LimitFlag()},
       {Example("history"), Example("history", "--limit=5 --absolute")}},
      {"claims",
       ShardArguments(),
       "lists who claimed a shard, newest first, and why each claim ended",
       "Answered for dropped shards too.",
       {LimitFlag()},
       {Example("claims")}},
      {"health",
       {{"SERVICE", true, false, false, {"claimd.v1.ShardArbiter", "claimd.v1.Admin"}, true}},
       "asks whether the server serves",
       "Exit code 0: it does. 7: it does not, or gives no answer. 3: it knows no such service.",
       {},
       {"claimctl health", "claimctl health claimd.v1.ShardArbiter"}},
      {"info",
       {},
       "shows what is running, on which store, with which limits",
       "The revision grows by one with each durable change of any shard.",
       {},
       {"claimctl info", "claimctl info -o json"}},
  };
}

std::vector<CommandSpec> LanceCommands() {
  return {
      {"import-lance",
       {{"DIR", false, false, true}},
       "takes over the shards of Lance tables",
       "Walks DIR/*.lance/_mem_wal/*/manifest (or the one table that DIR is) and takes over the\n"
       "newest manifest of each shard, with version, epoch, seal and sstables as they are; the\n"
       "table is named like its folder. Stop the writers first. A shard that claimd has already "
       "is\n"
       "never overwritten, so that an import can be repeated.\n\n"
       "A shard is refused when its newest manifest is not certain: unreadable, empty, of unknown\n"
       "status, of another version or shard than its path says; a version missing in between; an\n"
       "unknown status in an older version, which Lance's writers drop without a trace; an older\n"
       "version with a larger epoch. The other shards are taken over all the same, and the exit\n"
       "code is 9. To import a refused shard that you know to be right, import a copy of its\n"
       "folder that holds only the newest manifest.",
       {{"dry-run", "", "check everything and change nothing; needs no server"}},
       {"claimctl import-lance /data/lance --dry-run", "claimctl import-lance /data/lance",
        "claimctl import-lance /data/lance/users.lance -o json"}},
      {"export-lance",
       {{"DIR", false, false, true}, {"TABLE", false, true}},
       "writes the newest manifests of tables in Lance's layout",
       "Makes DIR/TABLE.lance/_mem_wal/SHARD_ID/manifest with the newest manifest and a hint to\n"
       "it, for each shard that is not dropped. A shard that was only imported comes out byte for\n"
       "byte. No file is ever overwritten: a manifest that is there already must be the same.\n"
       "Claims, times, annotations and fingerprints have no place in Lance's format.",
       {},
       {"claimctl export-lance /tmp/lance users", "claimctl export-lance /tmp/lance users events"}},
  };
}

std::vector<CommandSpec> OwnCommands(const std::vector<CommandSpec>& others) {
  std::vector<std::string> names = {"completion", "help"};
  for (const CommandSpec& command : others) names.push_back(command.name);
  return {
      {"completion",
       {{"SHELL", false, false, false, {"bash"}}},
       "writes what a shell has to run to complete claimctl's command lines",
       "Knows commands, flags and their values.",
       {},
       {"source <(claimctl completion bash)"}},
      {"help",
       {{"COMMAND", true, false, false, names}},
       "tells about claimctl or one of its commands",
       "As --help.",
       {},
       {"claimctl help import-lance"}},
  };
}

Grammar MakeGrammar() {
  Grammar grammar;
  grammar.global_flags = GlobalFlags();
  grammar.commands.push_back(ClaimCommand());
  for (auto* const make : {WriteCommands, ReadCommands, LanceCommands}) {
    for (CommandSpec& command : make()) grammar.commands.push_back(std::move(command));
  }
  for (CommandSpec& command : OwnCommands(grammar.commands)) {
    grammar.commands.push_back(std::move(command));
  }
  return grammar;
}

}  // namespace

const Grammar& ClaimctlGrammar() {
  static const auto* const grammar = new Grammar(MakeGrammar());
  return *grammar;
}

}  // namespace claimd::ctl
