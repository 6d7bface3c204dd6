#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "claimd/v1/manifest.pb.h"

#include "claimd/client.h"
#include "claimd/errors.h"
#include "claimd/options.h"
#include "claimd/types.h"
#include "client/ctl/commands.h"
#include "client/ctl/context.h"
#include "client/ctl/files.h"
#include "client/ctl/lance_scan.h"
#include "client/ctl/progress.h"
#include "client/ctl/text.h"
#include "client/ctl/transfer_report.h"
#include "client/src/convert.h"
#include "proto/lance/manifest_codec.h"

namespace claimd::ctl {
namespace {

constexpr size_t kManifestBytesMax = size_t{16} << 20U;
constexpr char kHintName[] = "version_hint.json";

// A table's name must be the name of one folder in the place that was named.
absl::Status CheckTableName(const std::string& table) {
  if (table.empty() || table.find('/') != std::string::npos) {
    return UsageError(absl::StrCat("the table \"", Printable(table),
                                   "\" cannot be exported: its name is no name of a folder"));
  }
  return absl::OkStatus();
}

// The largest version that a folder of manifests holds; absent if it holds none.
absl::StatusOr<std::optional<uint64_t>> NewestVersion(const std::string& folder) {
  const auto entries = ListDirectory(folder);
  if (!entries.ok()) return entries.status();
  std::optional<uint64_t> newest;
  for (const DirectoryEntry& entry : *entries) {
    const auto version = lance::VersionOfFileName(entry.name);
    if (version.has_value()) newest = std::max(newest.value_or(0), *version);
  }
  return newest;
}

// Whether a manifest may stand behind what a folder holds: anything else would hide it from Lance's
// readers, or hide what is there from them.
absl::Status CheckOlderVersions(const std::string& folder, uint64_t version) {
  const auto newest = NewestVersion(folder);
  if (!newest.ok()) return newest.status();
  if (!newest->has_value() || **newest == version || **newest + 1 == version) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("holds version ", **newest, ", behind which version ", version,
                   " cannot stand; export into an empty directory"));
}

// Writes one manifest file, unless it is there with the same bytes.
absl::Status WriteManifest(const std::string& folder, uint64_t version, absl::string_view bytes) {
  const std::string name = lance::ManifestFileName(version);
  absl::Status status = PutIfAbsent(folder, name, bytes);
  if (!absl::IsAlreadyExists(status)) return status;
  const auto there = ReadFile(JoinPath(folder, name), kManifestBytesMax);
  if (!there.ok()) return there.status();
  if (*there == bytes) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("holds another version ", version, "; nothing is ever overwritten"));
}

absl::Status ExportShard(const v1::ShardManifest& manifest, const std::string& folder) {
  const auto bytes = lance::EncodeManifest(manifest);
  if (!bytes.ok()) return bytes.status();
  if (absl::Status status = MakeDirectories(folder); !status.ok()) return status;
  absl::Status status = CheckOlderVersions(folder, manifest.version());
  if (status.ok()) status = WriteManifest(folder, manifest.version(), *bytes);
  if (!status.ok()) return status;
  // Without a hint Lance's readers begin at version 1, and do not find a folder that begins later.
  status = PutIfAbsent(folder, kHintName, absl::StrCat("{\"version\":", manifest.version(), "}"));
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

// What a manifest says and Lance's format cannot.
std::vector<Finding> LossesOf(const v1::ShardManifest& manifest, const std::string& folder) {
  std::vector<Finding> losses;
  const auto others =
      std::count_if(manifest.annotations().begin(), manifest.annotations().end(),
                    [](const auto& entry) { return entry.first != lance::kFieldOrderAnnotation; });
  if (others > 0) losses.push_back({folder, "Lance has no place for its annotations"});
  if (!manifest.shard_spec_fingerprint().empty()) {
    losses.push_back({folder, "Lance has no place for its spec fingerprint"});
  }
  return losses;
}

TransferItem ExportOne(const ShardManifest& shard, const std::string& directory) {
  const v1::ShardManifest manifest = internal::ToProto(shard);
  TransferItem item;
  item.table = shard.table;
  item.shard_id = shard.shard_id;
  item.version = shard.version;
  item.writer_epoch = shard.writer_epoch;
  item.path =
      JoinPath(JoinPath(JoinPath(directory, absl::StrCat(shard.table, ".lance")), "_mem_wal"),
               JoinPath(shard.shard_id, "manifest"));
  const absl::Status status = ExportShard(manifest, item.path);
  if (status.ok()) {
    item.outcome = TransferItem::Outcome::kDone;
    item.notes = LossesOf(manifest, item.path);
  } else {
    const std::string reason = ErrorDetails::From(status).reason_text;
    item.reason = reason.empty() ? absl::StatusCodeToString(status.code()) : reason;
    item.problems = {{item.path, std::string(status.message())}};
  }
  return item;
}

// Exports the shards of a table. Errors: the server cannot be asked, or has no such table.
absl::Status ExportTable(const Client& client, const std::string& table,
                         const std::string& directory, Progress* progress, TransferReport* report) {
  ListOptions options;
  options.view = ShardView::kFull;
  bool any = false;
  for (const absl::StatusOr<ShardManifest>& shard : client.List(table, options)) {
    if (!shard.ok()) return shard.status();
    any = true;
    report->Add(ExportOne(*shard, directory));
    progress->Step();
  }
  if (any) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("the table ", Printable(table), " has no shards here"));
}

}  // namespace

absl::StatusOr<ExitCode> RunExportLance(const Context& context) {
  const Invocation& invocation = context.invocation();
  const std::string& directory = invocation.argument(0);
  const std::vector<std::string> tables(invocation.arguments().begin() + 1,
                                        invocation.arguments().end());
  for (const std::string& table : tables) {
    if (absl::Status status = CheckTableName(table); !status.ok()) return status;
  }
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  TransferReport report("exported", /*dry_run=*/false, context);
  absl::Status status;
  {
    Progress progress(context, "exported", /*total=*/0);
    for (const std::string& table : tables) {
      status = ExportTable(*client, table, directory, &progress, &report);
      if (!status.ok()) break;
    }
  }
  report.Finish(/*complete=*/status.ok());
  if (!status.ok()) return status;
  return report.refused() == 0 ? ExitCode::kOk : ExitCode::kSomeRefused;
}

}  // namespace claimd::ctl
