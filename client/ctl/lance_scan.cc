#include "client/ctl/lance_scan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

#include "claimd/v1/manifest.pb.h"

#include "claimd/errors.h"
#include "client/ctl/files.h"
#include "proto/lance/manifest_codec.h"

namespace claimd::ctl {
namespace {

constexpr absl::string_view kTableSuffix = ".lance";
constexpr char kMemWal[] = "_mem_wal";
constexpr char kManifestFolder[] = "manifest";
constexpr absl::string_view kHintName = "version_hint.json";
constexpr size_t kManifestBytesMax = size_t{16} << 20U;
constexpr size_t kHintBytesMax = 4096;
// How many missing ranges of versions a refusal names.
constexpr size_t kRangesNamed = 5;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

// The problems alone, where the sentence around them has been said already.
std::string ProblemsOf(const absl::Status& status) {
  const ErrorDetails details = ErrorDetails::From(status);
  if (details.field_violations.empty()) return MessageOf(status);
  return absl::StrJoin(details.field_violations, "; ",
                       [](std::string* out, const FieldViolation& violation) {
                         absl::StrAppend(out, violation.field, " ", violation.description);
                       });
}

// Whether a name is that of a file in the making: Lance's own, or an object store's.
bool IsTemporary(absl::string_view name) {
  if (absl::StrContains(name, ".tmp.") || absl::EndsWith(name, ".tmp")) return true;
  const size_t hash = name.rfind('#');
  uint64_t number = 0;
  return hash != absl::string_view::npos &&
         lance::VersionOfFileName(name.substr(0, hash)).has_value() &&
         absl::SimpleAtoi(name.substr(hash + 1), &number);
}

// What decoding one version's file gave.
struct DecodedVersion {
  absl::StatusOr<v1::ShardManifest> manifest;
  bool unknown_status = false;
};

class Scanner {
 public:
  explicit Scanner(const ShardFolder& folder)
      : folder_(folder), manifests_(JoinPath(folder.path, kManifestFolder)) {}

  ShardScan Run() {
    if (!ListVersions()) return std::move(scan_);
    scan_.newest_version = versions_.back();
    CheckGaps();
    CheckOlderVersions();
    CheckHint();
    TakeNewest();
    return std::move(scan_);
  }

 private:
  std::string PathOf(uint64_t version) const {
    return JoinPath(manifests_, lance::ManifestFileName(version));
  }

  void Refuse(std::string path, std::string problem) {
    scan_.refusals.push_back({std::move(path), std::move(problem)});
  }

  // Fills versions_, sorted. False, with the refusal, if there is none.
  bool ListVersions() {
    const auto entries = ListDirectory(manifests_);
    if (!entries.ok()) {
      Refuse(manifests_, MessageOf(entries.status()));
      return false;
    }
    for (const DirectoryEntry& entry : *entries) {
      if (const auto version = lance::VersionOfFileName(entry.name)) {
        versions_.push_back(*version);
      } else if (entry.name == kHintName) {
        has_hint_ = true;
      } else if (!IsTemporary(entry.name)) {
        scan_.notes.push_back({JoinPath(manifests_, entry.name), "is no manifest; left alone"});
      }
    }
    std::sort(versions_.begin(), versions_.end());
    if (versions_.empty()) Refuse(manifests_, "holds no manifest");
    return !versions_.empty();
  }

  void CheckGaps() {
    std::vector<std::string> missing;
    size_t ranges = 0;
    for (size_t i = 1; i < versions_.size(); ++i) {
      const uint64_t first = versions_[i - 1] + 1;
      const uint64_t last = versions_[i] - 1;
      if (first > last) continue;
      if (++ranges > kRangesNamed) continue;
      missing.push_back(first == last ? absl::StrCat(first) : absl::StrCat(first, " to ", last));
    }
    if (ranges == 0) return;
    const std::string more =
        ranges > kRangesNamed ? absl::StrCat(" and ", ranges - kRangesNamed, " more gaps") : "";
    Refuse(manifests_, absl::StrCat("is missing version ", absl::StrJoin(missing, ", "), more,
                                    " below the newest, ", versions_.back(),
                                    "; versions have no gaps, so files were lost"));
  }

  DecodedVersion Decode(uint64_t version) const {
    const auto bytes = ReadFile(PathOf(version), kManifestBytesMax);
    if (!bytes.ok()) return {bytes.status()};
    DecodedVersion decoded{
        lance::DecodeManifest(*bytes, {folder_.table, folder_.shard_id, version})};
    const ErrorDetails details = ErrorDetails::From(decoded.manifest.status());
    for (const FieldViolation& violation : details.field_violations) {
      decoded.unknown_status = decoded.unknown_status || violation.field == "status";
    }
    return decoded;
  }

  void CheckOlderVersions() {
    for (size_t i = 0; i + 1 < versions_.size(); ++i) {
      const DecodedVersion decoded = Decode(versions_[i]);
      if (decoded.manifest.ok()) {
        if (decoded.manifest->writer_epoch() >= largest_epoch_) {
          largest_epoch_ = decoded.manifest->writer_epoch();
          version_of_largest_epoch_ = versions_[i];
        }
        continue;
      }
      const std::string problem =
          absl::StrCat("version ", versions_[i], ": ", ProblemsOf(decoded.manifest.status()));
      if (decoded.unknown_status) {
        Refuse(PathOf(versions_[i]),
               absl::StrCat(problem,
                            ". Writers that do not know a status drop it when they write, "
                            "so the newer versions do not show that it was taken back"));
      } else {
        scan_.notes.push_back({PathOf(versions_[i]), problem});
      }
    }
  }

  // A hint above every file says that newer files were there once.
  void CheckHint() {
    if (!has_hint_) return;
    const std::string path = JoinPath(manifests_, std::string(kHintName));
    const auto content = ReadFile(path, kHintBytesMax);
    if (!content.ok()) return;
    absl::string_view rest = *content;
    const size_t colon = rest.find(':');
    if (!absl::StrContains(rest, "\"version\"") || colon == absl::string_view::npos) return;
    rest.remove_prefix(colon + 1);
    uint64_t hint = 0;
    const std::string number(absl::StripAsciiWhitespace(rest.substr(0, rest.find('}'))));
    if (absl::SimpleAtoi(number, &hint) && hint > versions_.back()) {
      scan_.notes.push_back(
          {path, absl::StrCat("names version ", hint, ", but the newest file is version ",
                              versions_.back(), "; is this copy of the table complete?")});
    }
  }

  void TakeNewest() {
    const uint64_t newest = versions_.back();
    DecodedVersion decoded = Decode(newest);
    if (!decoded.manifest.ok()) {
      Refuse(PathOf(newest), absl::StrCat("version ", newest,
                                          ", the newest: ", ProblemsOf(decoded.manifest.status())));
      return;
    }
    if (largest_epoch_ > decoded.manifest->writer_epoch()) {
      Refuse(PathOf(newest), absl::StrCat("has epoch ", decoded.manifest->writer_epoch(),
                                          ", but version ", version_of_largest_epoch_,
                                          " has epoch ", largest_epoch_, "; epochs never go back"));
    }
    if (scan_.refusals.empty()) scan_.manifest = *std::move(decoded.manifest);
  }

  const ShardFolder& folder_;
  const std::string manifests_;
  std::vector<uint64_t> versions_;
  bool has_hint_ = false;
  uint64_t largest_epoch_ = 0;
  uint64_t version_of_largest_epoch_ = 0;
  ShardScan scan_;
};

// Adds the shards of one table.
void FindInTable(const std::string& table_path, const std::string& table, ShardFolders* found) {
  const std::string mem_wal = JoinPath(table_path, kMemWal);
  const auto there = IsDirectory(mem_wal);
  if (there.ok() && !*there) return;
  const auto entries = there.ok() ? ListDirectory(mem_wal)
                                  : absl::StatusOr<std::vector<DirectoryEntry>>(there.status());
  if (!entries.ok()) {
    found->unreadable.push_back({mem_wal, MessageOf(entries.status())});
    return;
  }
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = JoinPath(mem_wal, entry.name);
    if (entry.is_directory) {
      found->shards.push_back({table, entry.name, path});
    } else {
      found->notes.push_back({path, "is no shard's folder; left alone"});
    }
  }
}

}  // namespace

absl::StatusOr<ShardFolders> FindShardFolders(const std::string& directory) {
  ShardFolders found;
  std::filesystem::path path(directory);
  if (path.filename().empty()) path = path.parent_path();
  const std::string own_name = path.filename().string();
  if (absl::EndsWith(own_name, kTableSuffix)) {
    // Tells whether it can be read at all.
    if (const auto entries = ListDirectory(directory); !entries.ok()) return entries.status();
    FindInTable(path.string(), std::string(absl::StripSuffix(own_name, kTableSuffix)), &found);
    return found;
  }
  const auto entries = ListDirectory(directory);
  if (!entries.ok()) return entries.status();
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.is_directory || !absl::EndsWith(entry.name, kTableSuffix)) continue;
    FindInTable(JoinPath(path.string(), entry.name),
                std::string(absl::StripSuffix(entry.name, kTableSuffix)), &found);
  }
  return found;
}

ShardScan ScanShard(const ShardFolder& folder) { return Scanner(folder).Run(); }

}  // namespace claimd::ctl
