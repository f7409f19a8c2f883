#include "report/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace ztape::report {
namespace {

std::string three_digits(double value) {
  std::array<char, 32> text{};
  const int decimals = value < .0995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

// The length of the well-formed UTF-8 sequence at the front; 0 when there is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  std::size_t length = 0;
  uint32_t point = 0;
  if (first < 0x80) return 1;
  if ((first & 0xe0) == 0xc0) {
    length = 2;
    point = first & 0x1fU;
  } else if ((first & 0xf0) == 0xe0) {
    length = 3;
    point = first & 0x0fU;
  } else if ((first & 0xf8) == 0xf0) {
    length = 4;
    point = first & 0x07U;
  }
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    point = point << 6 | (byte(i) & 0x3fU);
  }
  constexpr std::array<uint32_t, 5> kSmallest{0, 0, 0x80, 0x800, 0x10000};
  if (point < kSmallest[length] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) return 0;
  // C1 controls and the marks that turn the direction of text could forge what a person reads.
  const bool forging = (point >= 0x80 && point < 0xa0) || (point >= 0x200b && point <= 0x200f) ||
                       (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069) || point == 0xfeff;
  return forging ? 0 : length;
}

using Columns = std::vector<Table::Column>;

std::size_t width_of(const std::vector<std::size_t>& widths, const std::vector<bool>& shown) {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (shown[i]) sum += widths[i] + (sum == 0 ? 0 : 2);
  }
  return sum;
}

std::vector<bool> columns_that_fit(const Columns& columns, const std::vector<std::size_t>& widths, std::size_t room) {
  std::vector<bool> shown(columns.size(), true);
  while (room != 0 && width_of(widths, shown) > room) {
    int most = 0;
    std::size_t which = 0;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!shown[i] || columns[i].dispensable <= most) continue;
      most = columns[i].dispensable;
      which = i;
    }
    if (most == 0) break;
    shown[which] = false;
  }
  return shown;
}

std::string line_of(const Columns& columns, const std::vector<std::size_t>& widths, const std::vector<bool>& shown,
                    const std::string& indent, const std::vector<std::string>& cells) {
  std::string row = indent;
  bool first = true;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!shown[i]) continue;
    const std::string padding(widths[i] - std::min(widths[i], text_width(cells[i])), ' ');
    if (!first) row += "  ";
    first = false;
    row += columns[i].align == Table::Align::right ? padding + cells[i] : cells[i] + padding;
  }
  row.erase(row.find_last_not_of(' ') + 1);
  return row + "\n";
}

}  // namespace

std::size_t text_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

std::string shortened(std::string_view text, std::size_t room) {
  constexpr std::size_t kLeast = 8;
  room = std::max(room, kLeast);
  if (text_width(text) <= room) return std::string(text);
  std::size_t at = 0;
  for (std::size_t columns = 0; at < text.size(); ++at) {
    if ((static_cast<uint8_t>(text[at]) & 0xc0) != 0x80 && columns++ == room - 3) break;
  }
  return std::string(text.substr(0, at)) + "...";
}

std::string milliseconds(int64_t ns) {
  return three_digits(static_cast<double>(ns) / 1e6);
}

std::string duration(int64_t ns) {
  const double seconds = static_cast<double>(ns) / 1e9;
  if (std::abs(seconds) < 0.9995) return milliseconds(ns) + " ms";
  return three_digits(seconds) + " s";
}

std::string byte_count(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  static constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return three_digits(value) + " " + kUnits[unit];
}

std::string count(uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string counted(uint64_t number, std::string_view noun) {
  return count(number) + " " + std::string(noun) + (number == 1 ? "" : "s");
}

std::string escaped(std::string_view wire_text, std::size_t longest) {
  std::string out;
  for (std::size_t at = 0; at < wire_text.size();) {
    if (longest != 0 && out.size() >= longest) return out + "...";
    const auto byte = static_cast<uint8_t>(wire_text[at]);
    const std::size_t length = utf8_length(wire_text.substr(at));
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      std::array<char, 8> text{};
      std::snprintf(text.data(), text.size(), "\\x%02x", byte);
      out += text.data();
      at += 1;
    } else {
      out += wire_text.substr(at, length);
      at += length;
    }
  }
  return out;
}

Table::Table(std::vector<Column> columns, std::string indent)
    : columns_(std::move(columns)), indent_(std::move(indent)) {}

void Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(std::size_t room) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t widest = text_width(columns_[i].head);
    for (const auto& cells : rows_) widest = std::max(widest, text_width(cells[i]));
    widths.push_back(widest);
  }
  const auto shown = columns_that_fit(columns_, widths, room == 0 ? 0 : room - std::min(room, indent_.size()));
  // What is still too wide is cut at its last column, which is the one with words.
  std::size_t last_width = 0;
  if (room != 0) {
    const auto all = indent_.size() + width_of(widths, shown);
    if (all > room) last_width = widths.back() - std::min(widths.back(), all - room);
  }
  std::vector<std::string> heads;
  for (const auto& column : columns_) heads.push_back(column.head);
  std::string out = line_of(columns_, widths, shown, indent_, heads);
  for (const auto& cells : rows_) {
    if (last_width == 0) {
      out += line_of(columns_, widths, shown, indent_, cells);
      continue;
    }
    auto cut = cells;
    cut.back() = shortened(cut.back(), last_width);
    out += line_of(columns_, widths, shown, indent_, cut);
  }
  return out;
}

RunningTable::RunningTable(std::vector<Table::Column> columns, std::vector<std::size_t> widths, std::size_t room)
    : columns_(std::move(columns)), widths_(std::move(widths)) {
  widths_.resize(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) widths_[i] = std::max(widths_[i], text_width(columns_[i].head));
  shown_ = columns_that_fit(columns_, widths_, room);
}

std::string RunningTable::head() {
  std::vector<std::string> heads;
  for (const auto& column : columns_) heads.push_back(column.head);
  return line_of(columns_, widths_, shown_, "", heads);
}

std::string RunningTable::row(const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) widths_[i] = std::max(widths_[i], text_width(cells[i]));
  return line_of(columns_, widths_, shown_, "", cells);
}

}  // namespace ztape::report
