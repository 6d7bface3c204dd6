#ifndef CLAIMD_CLIENT_CTL_TABLE_H_
#define CLAIMD_CLIENT_CTL_TABLE_H_

#include <cstddef>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace claimd::ctl {

// How wide a line may be; 0: as wide as it gets.
struct LineWidth {
  size_t columns = 0;
};

// One column of a table.
struct Column {
  std::string header;
  // Aligned to the right.
  bool numeric = false;
  // May be cut where the line is too long.
  bool shrinkable = false;
  // Before cells are cut to a stump, columns are left out: larger numbers first, 0 never.
  int leave_out = 0;
};

// Rows under headers, aligned. The first rows decide the widths, so that a listing of any length
// needs bounded memory. Thread-compatible. 'out' is not owned and must outlive this.
class Table {
 public:
  Table(std::vector<Column> columns, LineWidth width, std::ostream* out)
      : columns_(std::move(columns)), line_width_(width), out_(out) {}

  // One cell for each column. Cells are made printable; an empty one is shown as "-".
  void Add(std::vector<std::string> cells);

  // Writes what has not been written yet. Call it behind the last row.
  void Flush();

 private:
  void Layout();
  size_t LineLength() const;
  // Cuts cells, but none below 'cell_width_min', until the line fits. Answers whether it does.
  bool Shrink(size_t cell_width_min);
  void Write(const std::vector<std::string>& cells);

  const std::vector<Column> columns_;
  const LineWidth line_width_;
  std::ostream* const out_;
  std::vector<std::vector<std::string>> rows_;
  // Width of each column, 0 if it is left out. Empty until the layout is decided.
  std::vector<size_t> widths_;
};

// Names and values below each other, aligned; a value that is too long for the line stays whole.
class Details {
 public:
  void Add(std::string name, const std::string& value);
  void Write(std::ostream* out) const;

 private:
  std::vector<std::pair<std::string, std::string>> entries_;
};

}  // namespace claimd::ctl

#endif  // CLAIMD_CLIENT_CTL_TABLE_H_
