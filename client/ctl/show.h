#ifndef CLAIMD_CLIENT_CTL_SHOW_H_
#define CLAIMD_CLIENT_CTL_SHOW_H_

#include <functional>
#include <string>
#include <vector>

#include <google/protobuf/message.h>

#include "claimd/types.h"
#include "client/ctl/context.h"
#include "client/ctl/table.h"

// How answers are written, in each output format.
namespace claimd::ctl {

// The proto JSON of a message, on one line or (pretty) on many, without the last line break.
std::string MessageJson(const google::protobuf::Message& message, OutputFormat format);

// A manifest in full.
void ShowManifest(const ShardManifest& manifest, const Context& context);
// The same as names and values.
void AddManifest(const ShardManifest& manifest, const Context& context, Details* details);

// "ingest-7" or "nobody".
std::string HolderText(const std::optional<ClaimInfo>& claim);

// Writes a listing item by item: a table, a document {"name":[…]}, or lines. A listing that breaks
// off leaves a document that does not parse. Thread-compatible.
class Listing {
 public:
  // 'name' is the field of the list response that holds the items.
  Listing(std::string name, std::vector<Column> columns, const Context& context);

  // One item: its message for JSON, its cells for the table.
  void Add(const google::protobuf::Message& message,
           const std::function<std::vector<std::string>()>& cells);
  // Ends a listing that is complete.
  void Finish();
  // Writes what has come so far of one that is not.
  void BreakOff();

 private:
  const std::string name_;
  const OutputFormat format_;
  std::ostream* const out_;
  Table table_;
  bool empty_ = true;
};

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_SHOW_H_
