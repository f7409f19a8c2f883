// Words and columns for a terminal page.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ztape::report {

// "0.014 ms", "0.14 ms", "44.0 ms", "4.02 s".
std::string duration(int64_t ns);
// Milliseconds for a column whose head says "ms": "0.14", "44.0", "1204".
std::string milliseconds(int64_t ns);
// "187 B", "8.6 KiB", "351 KiB", "1.2 GiB".
std::string byte_count(uint64_t bytes);
// "1,204"
std::string count(uint64_t number);
// "1 call", "2 calls"
std::string counted(uint64_t number, std::string_view noun);

// Columns a terminal needs: code points, which is right for what we print.
std::size_t text_width(std::string_view text);

// Text from the wire made safe to show: control characters, escapes and what is not UTF-8 become \xNN. Longer than
// `longest` bytes: cut, with "..." behind. 0: never cut.
std::string escaped(std::string_view wire_text, std::size_t longest = 0);

// "a b ..." of a longer text: at most so many columns of a terminal, at least 8.
std::string shortened(std::string_view text, std::size_t width);

// Rows of cells in aligned columns, two spaces between them.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string head;
    Align align = Align::left;
    // Where the table is too wide, columns with the highest number are left out first; those with 0 stay.
    int dispensable = 0;
  };

  explicit Table(std::vector<Column> columns, std::string indent = "  ");
  void row(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // With its heads, and a line end behind each row.
  // `width`: columns are left out until it fits, and if it still does not, the last one is cut; 0: as wide as it gets.
  [[nodiscard]] std::string text(std::size_t width = 0) const;

 private:
  std::vector<Column> columns_;
  std::string indent_;
  std::vector<std::vector<std::string>> rows_;
};

// A table whose rows are printed as they come: a column is as wide as the widest cell up to now.
class RunningTable {
 public:
  // `widths`: what each column has at least.
  RunningTable(std::vector<Table::Column> columns, std::vector<std::size_t> widths, std::size_t width);
  [[nodiscard]] std::string head();
  [[nodiscard]] std::string row(const std::vector<std::string>& cells);

 private:
  std::vector<Table::Column> columns_;
  std::vector<std::size_t> widths_;
  std::vector<bool> shown_;
};

}  // namespace ztape::report
