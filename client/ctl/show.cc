#include "client/ctl/show.h"

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include "claimd/types.h"
#include "client/ctl/context.h"
#include "client/ctl/table.h"
#include "client/ctl/text.h"
#include "client/src/convert.h"

namespace claimd::ctl {
namespace {

std::string Number(const std::optional<uint64_t>& number) {
  return number.has_value() ? absl::StrCat(*number) : "-";
}

void ShowSsTables(const ShardManifest& manifest, const Context& context) {
  if (manifest.sstables.empty()) return;
  context.out() << "\n";
  Table table({{"GENERATION", true},
               {"PATH", false, true},
               {"ROWS", true},
               {"MEMORY BYTES", true, false, 1},
               {"KEY BYTES", true, false, 2}},
              context.terminal().width, &context.out());
  for (const SsTable& sstable : manifest.sstables) {
    table.Add({absl::StrCat(sstable.generation), sstable.path, Number(sstable.physical_rows),
               Number(sstable.in_memory_bytes), Number(sstable.primary_key_bytes)});
  }
  table.Flush();
}

}  // namespace

std::string MessageJson(const google::protobuf::Message& message, OutputFormat format) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.add_whitespace = format == OutputFormat::kJson;
  std::string json;
  // Cannot fail for the messages of claimd: none has an Any with an unknown type.
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return "{}";
  return std::string(absl::StripSuffix(json, "\n"));
}

std::string HolderText(const std::optional<ClaimInfo>& claim) {
  if (!claim.has_value()) return "nobody";
  return claim->claimant.empty() ? "somebody without a name" : claim->claimant;
}

void AddManifest(const ShardManifest& manifest, const Context& context, Details* details) {
  const TimeStyle& style = context.time_style();
  details->Add("table", manifest.table);
  details->Add("shard", manifest.shard_id);
  details->Add("status", ToString(manifest.status));
  details->Add("epoch", absl::StrCat(manifest.writer_epoch));
  details->Add("version", absl::StrCat(manifest.version));
  details->Add("spec", absl::StrCat(manifest.shard_spec_id));
  if (!manifest.shard_spec_fingerprint.empty()) {
    details->Add("fingerprint", absl::BytesToHexString(manifest.shard_spec_fingerprint));
  }
  if (!manifest.shard_field_values.empty()) {
    details->Add("fields", PrintableMap(manifest.shard_field_values));
  }
  details->Add("held by", HolderText(manifest.claim));
  if (manifest.claim.has_value()) {
    details->Add("claimed", TimeText(manifest.claim->claim_time, style));
    if (!manifest.claim->labels.empty()) {
      details->Add("labels", PrintableMap(manifest.claim->labels));
    }
  }
  details->Add("generation", absl::StrCat(manifest.current_generation));
  details->Add("replay after", absl::StrCat(manifest.replay_after_wal_entry_position));
  details->Add("last seen", absl::StrCat(manifest.wal_entry_position_last_seen));
  if (!manifest.annotations.empty()) {
    details->Add("annotations", PrintableMap(manifest.annotations));
  }
  details->Add("created", TimeText(manifest.create_time, style));
  details->Add("updated", TimeText(manifest.update_time, style));
  details->Add("sstables", absl::StrCat(manifest.sstables.size()));
}

void ShowManifest(const ShardManifest& manifest, const Context& context) {
  if (context.format() != OutputFormat::kTable) {
    context.out() << MessageJson(internal::ToProto(manifest), context.format()) << std::endl;
    return;
  }
  Details details;
  AddManifest(manifest, context, &details);
  details.Write(&context.out());
  ShowSsTables(manifest, context);
}

Listing::Listing(std::string name, std::vector<Column> columns, const Context& context)
    : name_(std::move(name)),
      format_(context.format()),
      out_(&context.out()),
      table_(std::move(columns), context.terminal().width, out_) {
  if (format_ == OutputFormat::kJson) *out_ << "{\"" << name_ << "\":[";
}

void Listing::Add(const google::protobuf::Message& message,
                  const std::function<std::vector<std::string>()>& cells) {
  switch (format_) {
    case OutputFormat::kTable:
      table_.Add(cells());
      break;
    case OutputFormat::kJson:
      *out_ << (empty_ ? "\n" : ",\n") << MessageJson(message, OutputFormat::kJsonLines);
      break;
    case OutputFormat::kJsonLines:
      *out_ << MessageJson(message, OutputFormat::kJsonLines) << "\n";
      break;
  }
  empty_ = false;
}

void Listing::Finish() {
  if (format_ == OutputFormat::kJson) *out_ << "\n]}\n";
  BreakOff();
}

void Listing::BreakOff() {
  if (format_ == OutputFormat::kTable) table_.Flush();
  out_->flush();
}

}  // namespace claimd::ctl
