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

// Text from the wire made safe to show: control characters, escapes and what is not UTF-8 become \xNN. Longer than
// `longest` bytes: cut, with "..." behind. 0: never cut.
std::string escaped(std::string_view wire_text, std::size_t longest = 0);

// Rows of cells in aligned columns, two spaces between them.
class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string head;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns, std::string indent = "  ");
  void row(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // With its heads, and a line end behind each row.
  [[nodiscard]] std::string text() const;

 private:
  std::vector<Column> columns_;
  std::string indent_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ztape::report
