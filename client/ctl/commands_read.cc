#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

#include "claimd/v1/manifest.pb.h"
#include "grpc/health/v1/health.pb.h"

#include "claimd/client.h"
#include "claimd/options.h"
#include "claimd/range.h"
#include "claimd/types.h"
#include "client/ctl/commands.h"
#include "client/ctl/context.h"
#include "client/ctl/show.h"
#include "client/ctl/table.h"
#include "client/ctl/text.h"
#include "client/src/convert.h"

// The commands that only read.
namespace claimd::ctl {
namespace {

using HealthResponse = grpc::health::v1::HealthCheckResponse;

// Writes the items of a range, up to --limit of them.
template <typename T, typename Cells>
absl::StatusOr<ExitCode> ShowRange(const Range<T>& range, const Context& context, Listing* listing,
                                   const Cells& cells) {
  const auto limit = context.invocation().Number("limit");
  if (!limit.ok()) return limit.status();
  uint64_t left = limit->value_or(std::numeric_limits<uint64_t>::max());
  for (auto it = left > 0 ? range.begin() : range.end(); it != range.end();) {
    if (!it->ok()) {
      listing->BreakOff();
      return it->status();
    }
    const T& item = **it;
    listing->Add(internal::ToProto(item), [&cells, &item] { return cells(item); });
    // Whoever read this may have had enough.
    if (!context.out().good()) return ExitCode::kOther;
    // Going on may ask for another page, which nobody wants behind the limit.
    if (--left == 0) break;
    ++it;
  }
  listing->Finish();
  return ExitCode::kOk;
}

std::optional<ShardStatus> StatusFlag(const std::string& text) {
  for (const ShardStatus status :
       {ShardStatus::kActive, ShardStatus::kSealed, ShardStatus::kDropped}) {
    if (absl::AsciiStrToLower(ToString(status)) == text) return status;
  }
  return std::nullopt;
}

absl::StatusOr<ListOptions> ReadListOptions(const Invocation& invocation) {
  ListOptions options;
  options.status = StatusFlag(invocation.Text("status"));
  options.claimant = invocation.Text("held-by");
  auto spec = invocation.SmallNumber("spec");
  if (!spec.ok()) return spec.status();
  options.shard_spec_id = *spec;
  if (invocation.Has("full")) options.view = ShardView::kFull;
  auto limit = invocation.Number("limit");
  if (!limit.ok()) return limit.status();
  if (limit->has_value() && **limit > 0) {
    options.page_size =
        static_cast<int>(std::min<uint64_t>(**limit, static_cast<uint64_t>(options.page_size)));
  }
  return options;
}

std::optional<absl::Time> ClaimTime(const ShardManifest& manifest) {
  return manifest.claim.has_value() ? manifest.claim->claim_time : std::nullopt;
}

HealthResponse::ServingStatus ToProto(Health health) {
  switch (health) {
    case Health::kServing:
      return HealthResponse::SERVING;
    case Health::kNotServing:
      return HealthResponse::NOT_SERVING;
    case Health::kServiceUnknown:
      return HealthResponse::SERVICE_UNKNOWN;
    case Health::kUnknown:
      break;
  }
  return HealthResponse::UNKNOWN;
}

}  // namespace

absl::StatusOr<ExitCode> RunGet(const Context& context) {
  const Invocation& invocation = context.invocation();
  const auto version = invocation.Number("version");
  if (!version.ok()) return version.status();
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  const auto manifest = client->Get(invocation.argument(0), invocation.argument(1), *version);
  if (!manifest.ok()) return manifest.status();
  ShowManifest(*manifest, context);
  return ExitCode::kOk;
}

absl::StatusOr<ExitCode> RunList(const Context& context) {
  const auto options = ReadListOptions(context.invocation());
  if (!options.ok()) return options.status();
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  const bool full = options->view == ShardView::kFull;
  std::vector<Column> columns = {{"SHARD"},
                                 {"STATUS"},
                                 {"SPEC", true, false, 3},
                                 {"EPOCH", true},
                                 {"VERSION", true, false, 1},
                                 {"GENERATION", true, false, 4},
                                 {"HELD BY", false, true},
                                 {"CLAIMED", false, false, 2},
                                 {"UPDATED", false, false, 5}};
  if (full) columns.push_back({"SSTABLES", true, false, 6});
  Listing listing("shards", columns, context);
  return ShowRange(client->List(context.invocation().argument(0), *options), context, &listing,
                   [&](const ShardManifest& shard) {
                     const TimeStyle& style = context.time_style();
                     std::vector<std::string> cells = {shard.shard_id,
                                                       ToString(shard.status),
                                                       absl::StrCat(shard.shard_spec_id),
                                                       absl::StrCat(shard.writer_epoch),
                                                       absl::StrCat(shard.version),
                                                       absl::StrCat(shard.current_generation),
                                                       HolderText(shard.claim),
                                                       TimeText(ClaimTime(shard), style),
                                                       TimeText(shard.update_time, style)};
                     if (full) cells.push_back(absl::StrCat(shard.sstables.size()));
                     return cells;
                   });
}

absl::StatusOr<ExitCode> RunHistory(const Context& context) {
  const Invocation& invocation = context.invocation();
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  const bool full = invocation.Has("full");
  std::vector<Column> columns = {{"VERSION", true},
                                 {"EPOCH", true},
                                 {"STATUS"},
                                 {"GENERATION", true},
                                 {"REPLAY AFTER", true, false, 1},
                                 {"HELD BY", false, true},
                                 {"UPDATED"}};
  if (full) columns.push_back({"SSTABLES", true, false, 2});
  Listing listing("manifests", columns, context);
  return ShowRange(client->Versions(invocation.argument(0), invocation.argument(1),
                                    full ? ShardView::kFull : ShardView::kBasic),
                   context, &listing, [&](const ShardManifest& version) {
                     std::vector<std::string> cells = {
                         absl::StrCat(version.version),
                         absl::StrCat(version.writer_epoch),
                         ToString(version.status),
                         absl::StrCat(version.current_generation),
                         absl::StrCat(version.replay_after_wal_entry_position),
                         HolderText(version.claim),
                         TimeText(version.update_time, context.time_style())};
                     if (full) cells.push_back(absl::StrCat(version.sstables.size()));
                     return cells;
                   });
}

absl::StatusOr<ExitCode> RunClaims(const Context& context) {
  const Invocation& invocation = context.invocation();
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  Listing listing("claims",
                  {{"EPOCH", true},
                   {"CLAIMANT", false, true},
                   {"CLAIMED"},
                   {"ENDED"},
                   {"WHY"},
                   {"NEXT EPOCH", true, false, 1},
                   {"LABELS", false, true, 3},
                   {"NOTE", false, true, 2}},
                  context);
  return ShowRange(client->Claims(invocation.argument(0), invocation.argument(1)), context,
                   &listing, [&](const ClaimRecord& record) {
                     const TimeStyle& style = context.time_style();
                     const bool held = !record.end_time.has_value();
                     return std::vector<std::string>{absl::StrCat(record.claim.writer_epoch),
                                                     record.claim.claimant,
                                                     TimeText(record.claim.claim_time, style),
                                                     TimeText(record.end_time, style),
                                                     held ? "held" : ToString(record.end_reason),
                                                     record.next_writer_epoch == 0
                                                         ? "-"
                                                         : absl::StrCat(record.next_writer_epoch),
                                                     PrintableMap(record.claim.labels),
                                                     record.note};
                   });
}

absl::StatusOr<ExitCode> RunHealth(const Context& context) {
  const auto& arguments = context.invocation().arguments();
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  const auto health = client->CheckHealth(arguments.empty() ? "" : arguments[0]);
  if (!health.ok()) return health.status();
  if (context.format() == OutputFormat::kTable) {
    context.out() << ToString(*health) << std::endl;
  } else {
    HealthResponse response;
    response.set_status(ToProto(*health));
    context.out() << MessageJson(response, context.format()) << std::endl;
  }
  if (*health == Health::kServiceUnknown) return ExitCode::kNotFound;
  return *health == Health::kServing ? ExitCode::kOk : ExitCode::kUnavailable;
}

absl::StatusOr<ExitCode> RunInfo(const Context& context) {
  const auto client = context.Connect();
  if (!client.ok()) return client.status();
  const auto info = client->GetServerInfo();
  if (!info.ok()) return info.status();
  if (context.format() != OutputFormat::kTable) {
    context.out() << MessageJson(internal::ToProto(*info), context.format()) << std::endl;
    return ExitCode::kOk;
  }
  Details details;
  details.Add("version", info->server_version);
  details.Add("store", info->store_kind);
  details.Add("store id", info->store_id);
  details.Add("format version", absl::StrCat(info->store_format_version));
  details.Add("revision", absl::StrCat(info->revision));
  details.Add("started", TimeText(info->start_time, context.time_style()));
  details.Add("largest manifest", Count(info->max_manifest_bytes, "byte"));
  details.Add("largest epoch jump", absl::StrCat(info->max_epoch_jump));
  details.Add("history", Count(info->history_versions, "version"));
  details.Add("claim history", Count(info->claim_history, "claim"));
  details.Write(&context.out());
  return ExitCode::kOk;
}

}  // namespace claimd::ctl
