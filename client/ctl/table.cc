#include "client/ctl/table.h"

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "client/ctl/text.h"

namespace claimd::ctl {
namespace {

constexpr size_t kGap = 2;
// Cells are cut to the first width as long as columns can be left out, and to the second if not.
constexpr size_t kCutMin = 16;
constexpr size_t kStumpMin = 6;
constexpr size_t kRowsForLayout = 1'000;

std::string Padded(const std::string& cell, size_t width, bool right) {
  const size_t used = DisplayWidth(cell);
  const std::string blanks(used < width ? width - used : 0, ' ');
  return right ? blanks + cell : cell + blanks;
}

}  // namespace

void Table::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = cell.empty() ? "-" : Printable(cell);
  rows_.push_back(std::move(cells));
  if (rows_.size() >= kRowsForLayout) Flush();
}

void Table::Flush() {
  if (widths_.empty()) {
    Layout();
    std::vector<std::string> headers;
    for (const Column& column : columns_) headers.push_back(column.header);
    Write(headers);
  }
  for (const auto& row : rows_) Write(row);
  rows_.clear();
  out_->flush();
}

void Table::Layout() {
  std::vector<size_t> natural;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = DisplayWidth(columns_[i].header);
    for (const auto& row : rows_) width = std::max(width, DisplayWidth(row[i]));
    natural.push_back(width);
  }
  widths_ = natural;
  if (line_width_.columns == 0) return;
  while (!Shrink(kCutMin)) {
    size_t least = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].leave_out == 0 || natural[i] == 0) continue;
      if (least == columns_.size() || columns_[i].leave_out > columns_[least].leave_out) least = i;
    }
    if (least == columns_.size()) {
      Shrink(kStumpMin);
      return;
    }
    natural[least] = 0;
    widths_ = natural;
  }
}

size_t Table::LineLength() const {
  size_t length = 0;
  for (const size_t width : widths_) {
    if (width > 0) length += (length > 0 ? kGap : 0) + width;
  }
  return length;
}

bool Table::Shrink(size_t cell_width_min) {
  while (LineLength() > line_width_.columns) {
    size_t widest = columns_.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      const size_t width_min = std::max(cell_width_min, DisplayWidth(columns_[i].header));
      if (!columns_[i].shrinkable || widths_[i] <= width_min) continue;
      if (widest == columns_.size() || widths_[i] > widths_[widest]) widest = i;
    }
    if (widest == columns_.size()) return false;
    --widths_[widest];
  }
  return true;
}

void Table::Write(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (widths_[i] == 0) continue;
    if (!line.empty()) line.append(kGap, ' ');
    const bool cut = line_width_.columns > 0 && columns_[i].shrinkable;
    line +=
        Padded(cut ? FitWidth(cells[i], widths_[i]) : cells[i], widths_[i], columns_[i].numeric);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  *out_ << line << "\n";
}

void Details::Add(std::string name, const std::string& value) {
  entries_.emplace_back(std::move(name), value.empty() ? "-" : Printable(value));
}

void Details::Write(std::ostream* out) const {
  size_t width = 0;
  for (const auto& [name, value] : entries_) width = std::max(width, DisplayWidth(name));
  for (const auto& [name, value] : entries_) {
    *out << Padded(name, width + kGap, /*right=*/false) << value << "\n";
  }
  out->flush();
}

}  // namespace claimd::ctl
