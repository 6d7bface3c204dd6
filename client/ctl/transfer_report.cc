#include "client/ctl/transfer_report.h"

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "client/ctl/context.h"
#include "client/ctl/lance_scan.h"
#include "client/ctl/table.h"
#include "client/ctl/text.h"

namespace claimd::ctl {
namespace {

std::string FindingsJson(const std::vector<Finding>& findings) {
  return absl::StrCat("[",
                      absl::StrJoin(findings, ",",
                                    [](std::string* out, const Finding& finding) {
                                      absl::StrAppend(out, R"({"path":)", JsonString(finding.path),
                                                      R"(,"problem":)", JsonString(finding.problem),
                                                      "}");
                                    }),
                      "]");
}

std::string FindingLine(const Finding& finding) {
  return finding.path.empty()
             ? Printable(finding.problem)
             : absl::StrCat(Printable(finding.path), ": ", Printable(finding.problem));
}

}  // namespace

TransferReport::TransferReport(std::string done, bool dry_run, const Context& context)
    : done_word_(std::move(done)),
      dry_run_(dry_run),
      format_(context.format()),
      width_(context.terminal().width),
      out_(&context.out()) {
  if (format_ == OutputFormat::kJson) {
    *out_ << R"({"dryRun":)" << (dry_run_ ? "true" : "false") << R"(,"shards":[)";
  }
}

std::string TransferReport::OutcomeName(TransferItem::Outcome outcome) const {
  switch (outcome) {
    case TransferItem::Outcome::kDone:
      return absl::AsciiStrToUpper(done_word_);
    case TransferItem::Outcome::kWouldBe:
      return absl::StrCat("WOULD_BE_", absl::AsciiStrToUpper(done_word_));
    case TransferItem::Outcome::kRefused:
      return "REFUSED";
    case TransferItem::Outcome::kIgnored:
      break;
  }
  return "IGNORED";
}

std::string TransferReport::ItemJson(const TransferItem& item) const {
  // Numbers of 64 bits are strings, as in proto JSON.
  return absl::StrCat(
      R"({"table":)", JsonString(item.table), R"(,"shardId":)", JsonString(item.shard_id),
      R"(,"outcome":)", JsonString(OutcomeName(item.outcome)), R"(,"version":)",
      JsonString(absl::StrCat(item.version)), R"(,"writerEpoch":)",
      JsonString(absl::StrCat(item.writer_epoch)), R"(,"path":)", JsonString(item.path),
      R"(,"reason":)", JsonString(item.reason), R"(,"problems":)", FindingsJson(item.problems),
      R"(,"notes":)", FindingsJson(item.notes), "}");
}

void TransferReport::Add(const TransferItem& item) {
  if (item.outcome == TransferItem::Outcome::kRefused) {
    ++refused_;
  } else if (item.outcome != TransferItem::Outcome::kIgnored) {
    ++done_;
  }
  if (format_ == OutputFormat::kTable) {
    Collect(item);
  } else if (format_ == OutputFormat::kJson) {
    *out_ << (empty_ ? "\n" : ",\n") << ItemJson(item);
  } else {
    *out_ << ItemJson(item) << "\n";
  }
  empty_ = false;
}

void TransferReport::Collect(const TransferItem& item) {
  for (const Finding& note : item.notes) note_lines_.push_back(FindingLine(note));
  if (item.outcome == TransferItem::Outcome::kIgnored) return;
  Counts& counts = tables_[item.table];
  if (item.outcome != TransferItem::Outcome::kRefused) {
    ++counts.done;
    return;
  }
  ++counts.refused;
  refusal_lines_.push_back(
      absl::StrCat(Printable(item.table), " ", Printable(item.shard_id), ": ", item.reason));
  for (const Finding& problem : item.problems) {
    refusal_lines_.push_back(absl::StrCat("  ", FindingLine(problem)));
  }
}

void TransferReport::WriteSummary() const {
  const std::string done = dry_run_ ? absl::StrCat("would be ", done_word_) : done_word_;
  Table table({{"TABLE", false, true}, {absl::AsciiStrToUpper(done), true}, {"REFUSED", true}},
              width_, out_);
  for (const auto& [name, counts] : tables_) {
    table.Add({name, absl::StrCat(counts.done), absl::StrCat(counts.refused)});
  }
  table.Flush();
  if (!refusal_lines_.empty()) {
    *out_ << "\nRefused:\n" << absl::StrJoin(refusal_lines_, "\n") << "\n";
  }
  if (!note_lines_.empty()) {
    *out_ << "\nNotes, which decided nothing:\n" << absl::StrJoin(note_lines_, "\n") << "\n";
  }
  *out_ << "\n"
        << Count(done_ + refused_, "shard") << ": " << done_ << " " << done << ", " << refused_
        << " refused\n";
}

void TransferReport::Finish(bool complete) {
  if (format_ == OutputFormat::kTable) {
    WriteSummary();
  } else if (format_ == OutputFormat::kJson && complete) {
    *out_ << "\n]," << JsonString(done_word_) << ":"
          << JsonString(absl::StrCat(dry_run_ ? 0 : done_)) << R"(,"refused":)"
          << JsonString(absl::StrCat(refused_)) << "}\n";
  }
  out_->flush();
}

}  // namespace claimd::ctl
