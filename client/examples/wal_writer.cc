// A small write-ahead-log writer on claimd. The log is a directory with one file for each entry:
//
//   DIR/wal/00000000000000000017.entry   "epoch=2 writer=b kind=entry payload=b-17"
//   DIR/sst/epoch-2-upto-16.txt          entries that were flushed
//
// What makes it safe, in the order in which it happens:
//   1. It claims the shard, above every epoch that the log already has in it.
//   2. It replays the log from where the manifest says, and puts a sentinel of its epoch at the
//   tip.
//      An entry file is only ever made, never replaced, and everybody writes the next position. So
//      whoever was fenced runs into the sentinel at the latest.
//   3. It makes an entry durable, then checks its fence, and only then acknowledges the entry.
//   4. It commits flushed entries under its epoch. A fenced writer cannot commit.
//   5. Once fenced, it stops. It does not claim again.
//
//   wal_writer --server=127.0.0.1:7420 --dir=/tmp/log --table=orders --shard=UUID --name=a
//
// Ends with 0 when all entries are written (--entries), 3 when fenced, 2 for wrong arguments, 1 for
// anything else. Prints "accepted epoch=… position=… payload=…" for each acknowledged entry.

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "claimd/client.h"

namespace {

constexpr int kExitFenced = 3;
constexpr int kExitUsage = 2;

struct Arguments {
  std::string server;
  std::string dir;
  std::string table;
  std::string shard;
  std::string name;
  uint32_t spec = 0;
  // Entries to write; 0 stands for "until fenced".
  uint64_t entries = 0;
  uint64_t flush_every = 16;
};

struct Entry {
  uint64_t epoch = 0;
  std::string writer;
  // "entry" or "sentinel".
  std::string kind;
  // Without spaces.
  std::string payload;
};

std::string ToLine(const Entry& entry) {
  std::ostringstream line;
  line << "epoch=" << entry.epoch << " writer=" << entry.writer << " kind=" << entry.kind
       << " payload=" << entry.payload << "\n";
  return line.str();
}

absl::StatusOr<Entry> FromLine(const std::string& line) {
  std::map<std::string, std::string> fields;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals != std::string::npos) fields[word.substr(0, equals)] = word.substr(equals + 1);
  }
  Entry entry{0, fields["writer"], fields["kind"], fields["payload"]};
  entry.epoch = std::strtoull(fields["epoch"].c_str(), nullptr, 10);
  if (entry.epoch == 0) return absl::DataLossError("not a log entry: " + line);
  return entry;
}

// Makes a file that is durable under its name, or not there at all.
// Errors: AlreadyExists if there is one of this name; it is left as it is.
absl::Status CreateDurably(const std::string& dir, const std::string& name,
                           const std::string& content) {
  const auto fail = [](const std::string& what) { return absl::ErrnoToStatus(errno, what); };
  const std::string path = dir + "/" + name;
  const std::string temporary = dir + "/." + std::to_string(getpid()) + ".tmp";
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return fail("open " + temporary);
  const bool written =
      write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
      fsync(file) == 0;
  absl::Status wrote = written ? absl::OkStatus() : fail("write " + temporary);
  close(file);
  if (!wrote.ok()) return wrote;
  // A link, unlike a rename, never takes the place of a file that is there.
  absl::Status linked =
      link(temporary.c_str(), path.c_str()) == 0 ? absl::OkStatus() : fail("link " + path);
  unlink(temporary.c_str());
  if (!linked.ok()) return linked;
  const int directory = open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return fail("open " + dir);
  absl::Status synced = fsync(directory) == 0 ? absl::OkStatus() : fail("fsync " + dir);
  close(directory);
  return synced;
}

// The log: one entry at each position from 1, without gap.
class Log {
 public:
  explicit Log(std::string dir) : dir_(std::move(dir)) {}

  // Errors: AlreadyExists if the position is taken.
  absl::Status Append(uint64_t position, const Entry& entry) const {
    return CreateDurably(dir_, Name(position), ToLine(entry));
  }

  // Errors: NotFound behind the tip.
  absl::StatusOr<Entry> Read(uint64_t position) const {
    std::ifstream file(dir_ + "/" + Name(position));
    std::string line;
    if (!file) return absl::NotFoundError("no entry at " + std::to_string(position));
    if (!std::getline(file, line)) return absl::DataLossError("empty entry file");
    return FromLine(line);
  }

 private:
  static std::string Name(uint64_t position) {
    std::ostringstream name;
    name << std::setw(20) << std::setfill('0') << position << ".entry";
    return name.str();
  }

  const std::string dir_;
};

// Owns the shard from Open until it is fenced.
class WalWriter {
 public:
  static absl::StatusOr<WalWriter> Open(const Arguments& arguments) {
    for (const char* folder : {"", "/wal", "/sst"}) {
      const std::string path = arguments.dir + folder;
      if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
        return absl::ErrnoToStatus(errno, "mkdir " + path);
      }
    }
    Log log(arguments.dir + "/wal");

    claimd::ClientOptions options;
    options.targets = {arguments.server};
    options.claimant = arguments.name;
    absl::StatusOr<claimd::Client> client = claimd::Client::Connect(options);
    if (!client.ok()) return client.status();

    claimd::ClaimOptions claim_options;
    for (uint64_t position = 1;; ++position) {
      const absl::StatusOr<Entry> entry = log.Read(position);
      if (absl::IsNotFound(entry.status())) break;
      if (!entry.ok()) return entry.status();
      claim_options.epoch_floor = std::max(claim_options.epoch_floor, entry->epoch);
    }
    absl::StatusOr<claimd::ShardClaim> claim =
        client->Claim(arguments.table, arguments.shard, arguments.spec, claim_options);
    if (!claim.ok()) return claim.status();
    std::cout << "claimed epoch=" << claim->epoch() << std::endl;

    WalWriter writer(arguments, log, *std::move(claim));
    if (absl::Status ready = writer.TakeOver(); !ready.ok()) return ready;
    return writer;
  }

  // Writes one entry. OK means that it is durable and acknowledged.
  // Errors: WRITER_FENCED; others, after which the entry may or may not be in the log.
  absl::Status Write(const std::string& payload) {
    const Entry entry{claim_.epoch(), arguments_.name, "entry", payload};
    const uint64_t position = next_position_;
    absl::Status appended = log_.Append(position, entry);
    if (absl::IsAlreadyExists(appended)) {
      // Only a newer owner writes here. Let the server say so.
      absl::Status fence = claim_.CheckFence();
      return fence.ok() ? absl::DataLossError("somebody writes to the log without a claim") : fence;
    }
    if (!appended.ok()) return appended;
    // Durable, and not acknowledged yet: if a newer owner replayed the log before this entry was
    // in it, that owner has fenced us by now.
    if (absl::Status fence = claim_.CheckFence(); !fence.ok()) return fence;
    ++next_position_;
    memtable_.push_back(entry);
    std::cout << "accepted epoch=" << entry.epoch << " position=" << position
              << " payload=" << payload << std::endl;
    return memtable_.size() >= arguments_.flush_every ? Flush() : absl::OkStatus();
  }

  // Moves what was written since the last flush into a generation, and publishes it.
  absl::Status Flush() {
    if (memtable_.empty()) return absl::OkStatus();
    const uint64_t last = next_position_ - 1;
    const std::string name =
        "epoch-" + std::to_string(claim_.epoch()) + "-upto-" + std::to_string(last) + ".txt";
    std::string content;
    for (const Entry& entry : memtable_) content += ToLine(entry);
    absl::Status created = CreateDurably(arguments_.dir + "/sst", name, content);
    if (!created.ok()) return created;
    const auto committed = claim_.Commit([&](claimd::ShardManifest* manifest) {
      claimd::SsTable table;
      table.generation = manifest->current_generation++;
      table.path = "sst/" + name;
      table.physical_rows = memtable_.size();
      manifest->sstables.push_back(table);
      manifest->replay_after_wal_entry_position = last;
      manifest->wal_entry_position_last_seen = last;
      return absl::OkStatus();
    });
    if (!committed.ok()) return committed.status();
    memtable_.clear();
    std::cout << "committed version=" << committed->version << " upto=" << last << std::endl;
    return absl::OkStatus();
  }

  absl::Status Close() {
    if (absl::Status flushed = Flush(); !flushed.ok()) return flushed;
    return claim_.Release();
  }

 private:
  WalWriter(Arguments arguments, Log log, claimd::ShardClaim claim)
      : arguments_(std::move(arguments)),
        log_(std::move(log)),
        claim_(std::move(claim)),
        next_position_(claim_.manifest().replay_after_wal_entry_position + 1) {}

  // Replays what is not in a generation yet, and closes the log to older owners.
  absl::Status TakeOver() {
    while (true) {
      absl::Status replayed = Replay();
      if (!replayed.ok()) return replayed;
      next_position_ = std::max(next_position_, claim_.wal_probe_position());
      // The first owner has nobody before it.
      if (claim_.epoch() < 2) return absl::OkStatus();
      const Entry sentinel{claim_.epoch(), arguments_.name, "sentinel", "-"};
      absl::Status appended = log_.Append(next_position_, sentinel);
      if (appended.ok()) {
        std::cout << "sentinel position=" << next_position_++ << std::endl;
        return absl::OkStatus();
      }
      // An older owner was faster: its entry is part of the log, so replay goes on with it.
      if (!absl::IsAlreadyExists(appended)) return appended;
    }
  }

  absl::Status Replay() {
    for (;; ++next_position_) {
      absl::StatusOr<Entry> entry = log_.Read(next_position_);
      if (absl::IsNotFound(entry.status())) return absl::OkStatus();
      if (!entry.ok()) return entry.status();
      if (entry->epoch > claim_.epoch()) {
        absl::Status fence = claim_.CheckFence();
        return fence.ok() ? absl::DataLossError("the log has an epoch that nobody granted") : fence;
      }
      if (entry->kind == "entry") memtable_.push_back(*std::move(entry));
    }
  }

  Arguments arguments_;
  Log log_;
  claimd::ShardClaim claim_;
  uint64_t next_position_;
  std::vector<Entry> memtable_;
};

std::optional<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  std::map<std::string, std::string> flags;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const size_t equals = flag.find('=');
    if (flag.rfind("--", 0) != 0 || equals == std::string::npos) return std::nullopt;
    flags[flag.substr(2, equals - 2)] = flag.substr(equals + 1);
  }
  const auto number = [&flags](const char* name, uint64_t otherwise) -> uint64_t {
    const auto flag = flags.find(name);
    return flag == flags.end() ? otherwise : std::strtoull(flag->second.c_str(), nullptr, 10);
  };
  arguments.server = flags["server"];
  arguments.dir = flags["dir"];
  arguments.table = flags["table"];
  arguments.shard = flags["shard"];
  arguments.name = flags["name"];
  arguments.spec = static_cast<uint32_t>(number("spec", 0));
  arguments.entries = number("entries", 0);
  arguments.flush_every = std::max<uint64_t>(1, number("flush_every", 16));
  const bool complete = !arguments.server.empty() && !arguments.dir.empty() &&
                        !arguments.table.empty() && !arguments.shard.empty() &&
                        !arguments.name.empty();
  return complete ? std::optional<Arguments>(arguments) : std::nullopt;
}

absl::Status Run(const Arguments& arguments) {
  absl::StatusOr<WalWriter> writer = WalWriter::Open(arguments);
  if (!writer.ok()) return writer.status();
  for (uint64_t i = 1; arguments.entries == 0 || i <= arguments.entries; ++i) {
    absl::Status wrote = writer->Write(arguments.name + "-" + std::to_string(i));
    if (!wrote.ok()) return wrote;
  }
  return writer->Close();
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = Parse(argc, argv);
  if (!arguments.has_value()) {
    std::cerr << "usage: wal_writer --server=HOST:PORT --dir=DIR --table=NAME --shard=UUID "
                 "--name=NAME [--spec=N] [--entries=N] [--flush_every=N]\n";
    return kExitUsage;
  }
  const absl::Status status = Run(*arguments);
  if (status.ok()) return EXIT_SUCCESS;
  std::cerr << status << "\n";
  const auto reason = claimd::ErrorDetails::From(status).reason;
  return reason == claimd::ErrorReason::kWriterFenced ? kExitFenced : EXIT_FAILURE;
}
