#ifndef CLAIMD_CLIENT_CTL_TRANSFER_REPORT_H_
#define CLAIMD_CLIENT_CTL_TRANSFER_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/ctl/context.h"
#include "client/ctl/lance_scan.h"

namespace claimd::ctl {

// What became of one shard in an import or export.
struct TransferItem {
  enum class Outcome {
    // Imported or exported, or it was there exactly so before.
    kDone,
    // Would have been, but this is a dry run.
    kWouldBe,
    kRefused,
    // A file that belongs to no shard.
    kIgnored,
  };

  Outcome outcome = Outcome::kRefused;
  std::string table;
  std::string shard_id;
  // Of the newest manifest. 0: not known.
  uint64_t version = 0;
  uint64_t writer_epoch = 0;
  std::string path;
  // The reason of a refusal, such as "INVALID_MANIFEST".
  std::string reason;
  std::vector<Finding> problems;
  // What could not be used but decided nothing.
  std::vector<Finding> notes;
};

// Writes the outcome of an import or export: for people, a summary when all is done, for programs
// each item at once. Thread-compatible.
class TransferReport {
 public:
  // 'done' is the word for what was done, such as "imported".
  TransferReport(std::string done, bool dry_run, const Context& context);

  void Add(const TransferItem& item);
  // Ends the report. A job that breaks off leaves a JSON document that does not parse.
  void Finish(bool complete);

  uint64_t done() const { return done_; }
  uint64_t refused() const { return refused_; }

 private:
  struct Counts {
    uint64_t done = 0;
    uint64_t refused = 0;
  };

  std::string ItemJson(const TransferItem& item) const;
  std::string OutcomeName(TransferItem::Outcome outcome) const;
  void Collect(const TransferItem& item);
  void WriteSummary() const;

  const std::string done_word_;
  const bool dry_run_;
  const OutputFormat format_;
  const LineWidth width_;
  std::ostream* const out_;
  uint64_t done_ = 0;
  uint64_t refused_ = 0;
  bool empty_ = true;
  std::map<std::string, Counts> tables_;
  std::vector<std::string> refusal_lines_;
  std::vector<std::string> note_lines_;
};

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_TRANSFER_REPORT_H_
