#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "claimd/client.h"
#include "claimd/errors.h"
#include "claimd/types.h"
#include "client/ctl/commands.h"
#include "client/ctl/context.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/lance_scan.h"
#include "client/ctl/progress.h"
#include "client/ctl/text.h"
#include "client/ctl/transfer_report.h"
#include "client/src/convert.h"

namespace claimd::ctl {
namespace {

// One call takes over that much, so that progress shows and no call takes long.
constexpr size_t kBatchManifestsMax = 200;
constexpr size_t kBatchBytesMax = size_t{4} << 20U;

// Imports shards one after the other and reports each. Thread-compatible.
class Import {
 public:
  // 'client' is null in a dry run.
  Import(const Client* client, TransferReport* report) : client_(client), report_(report) {}

  // Takes over a shard, or reports why not. Errors: the server cannot be asked.
  absl::Status Take(const ShardFolder& folder) {
    ShardScan scan = ScanShard(folder);
    TransferItem item;
    item.table = folder.table;
    item.shard_id = folder.shard_id;
    item.path = folder.path;
    item.version = scan.newest_version.value_or(0);
    item.notes = std::move(scan.notes);
    if (!scan.manifest.has_value()) {
      item.reason = "INVALID_MANIFEST";
      item.problems = std::move(scan.refusals);
      report_->Add(item);
      return absl::OkStatus();
    }
    item.shard_id = scan.manifest->shard_id();
    item.writer_epoch = scan.manifest->writer_epoch();
    bytes_ += scan.manifest->ByteSizeLong();
    items_.push_back(std::move(item));
    manifests_.push_back(internal::FromProto(*scan.manifest));
    if (manifests_.size() < kBatchManifestsMax && bytes_ < kBatchBytesMax) return absl::OkStatus();
    return Send();
  }

  // Sends what has been gathered.
  absl::Status Send() {
    std::vector<absl::Status> verdicts(manifests_.size());
    if (client_ != nullptr && !manifests_.empty()) {
      auto answer = client_->Import(manifests_);
      if (!answer.ok()) return answer.status();
      verdicts = *std::move(answer);
    }
    for (size_t i = 0; i < items_.size(); ++i) Report(verdicts[i], &items_[i]);
    items_.clear();
    manifests_.clear();
    bytes_ = 0;
    return absl::OkStatus();
  }

 private:
  void Report(const absl::Status& verdict, TransferItem* item) {
    if (verdict.ok()) {
      item->outcome =
          client_ == nullptr ? TransferItem::Outcome::kWouldBe : TransferItem::Outcome::kDone;
    } else {
      const std::string reason = ErrorDetails::From(verdict).reason_text;
      item->reason = reason.empty() ? absl::StatusCodeToString(verdict.code()) : reason;
      item->problems.push_back({"", std::string(verdict.message())});
      const std::string next = NextStep(verdict);
      if (!next.empty()) item->problems.push_back({"", next});
    }
    report_->Add(*item);
  }

  const Client* const client_;
  TransferReport* const report_;
  std::vector<ShardManifest> manifests_;
  std::vector<TransferItem> items_;
  size_t bytes_ = 0;
};

// Reports what was found around the shards.
void ReportSurroundings(const ShardFolders& folders, TransferReport* report) {
  for (const Finding& finding : folders.unreadable) {
    TransferItem item;
    item.path = finding.path;
    item.reason = "UNREADABLE";
    item.problems = {finding};
    report->Add(item);
  }
  for (const Finding& finding : folders.notes) {
    TransferItem item;
    item.outcome = TransferItem::Outcome::kIgnored;
    item.path = finding.path;
    item.notes = {finding};
    report->Add(item);
  }
}

}  // namespace

absl::StatusOr<ExitCode> RunImportLance(const Context& context) {
  const Invocation& invocation = context.invocation();
  const std::string& directory = invocation.argument(0);
  const auto folders = FindShardFolders(directory);
  if (!folders.ok()) return folders.status();
  if (folders->shards.empty() && folders->unreadable.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no *.lance/_mem_wal/*/manifest below ", Printable(directory)));
  }
  const bool dry_run = invocation.Has("dry-run");
  std::optional<Client> client;
  if (!dry_run) {
    absl::StatusOr<Client> connected = context.Connect();
    if (!connected.ok()) return connected.status();
    client = *std::move(connected);
  }

  TransferReport report("imported", dry_run, context);
  ReportSurroundings(*folders, &report);
  Import import(client.has_value() ? &*client : nullptr, &report);
  absl::Status status;
  {
    Progress progress(context, dry_run ? "checked" : "imported", folders->shards.size());
    for (const ShardFolder& folder : folders->shards) {
      status = import.Take(folder);
      if (!status.ok()) break;
      progress.Step();
    }
    if (status.ok()) status = import.Send();
  }
  report.Finish(/*complete=*/status.ok());
  if (!status.ok()) return status;
  return report.refused() == 0 ? ExitCode::kOk : ExitCode::kSomeRefused;
}

}  // namespace claimd::ctl
