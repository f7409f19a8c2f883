// A small finished capture in memory with all that is known about it: where its blocks are and what is in them.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "capture-format/layout.h"
#include "capture-format/verify.h"
#include "tests/capture-format/sample.h"

namespace ztape::sample {

struct SmallCapture {
  std::string bytes;
  std::vector<std::vector<std::string>> blocks;  // the records, serialized, by block
  std::vector<uint64_t> begins;                  // of each block's header; then of the trailer
  [[nodiscard]] uint64_t trailer() const { return begins.back(); }
  [[nodiscard]] uint64_t seek_table() const { return trailer() + layout::kHeaderBytes; }
  [[nodiscard]] std::string block(std::size_t number) const {
    return bytes.substr(begins[number], begins[number + 1] - begins[number]);
  }
  // The blocks in this order, then the rest.
  [[nodiscard]] std::string rearranged(const std::vector<std::size_t>& order) const {
    std::string out;
    for (const auto number : order) out += block(number);
    return out + bytes.substr(trailer());
  }
};

// One connection, opened in block 1 and closed in the last: so that verify has what to prove.
inline SmallCapture small_capture(uint32_t seed = 1, std::size_t block_count = 10, std::size_t chunk_bytes = 24) {
  std::string path = testing::TempDir() + "ztape-damage-XXXXXX";
  close(mkstemp(path.data()));
  SmallCapture small;
  {
    auto writer = CaptureWriter::create(path, start(1'800'000'000'000'000'000 + seed), {.overwrite = true});
    EXPECT_TRUE(writer.has_value());
    capture::Record first;
    *first.mutable_capture_start() = start(1'800'000'000'000'000'000 + seed);
    first.mutable_capture_start()->set_format_version(1);
    small.blocks.push_back({first.SerializeAsString()});
    small.begins = {0, (*writer)->bytes_written()};
    uint64_t offsets[2] = {0, 0};
    for (std::size_t number = 1; number < block_count; ++number) {
      std::vector<capture::Record> records;
      if (number == 1) records.push_back(open_record(1, 10));
      for (int i = 0; i < 2; ++i) {
        const auto bytes =
            noise(chunk_bytes, seed * 1000 + static_cast<uint32_t>(number * 2) + static_cast<uint32_t>(i));
        records.push_back(chunk_record(1, kDirections[i], offsets[i], static_cast<int64_t>(number * 100) + i, bytes));
        offsets[i] += bytes.size();
      }
      auto& written = small.blocks.emplace_back();
      for (const auto& record : records) {
        EXPECT_TRUE((*writer)->append(record).has_value());
        written.push_back(record.SerializeAsString());
      }
      if (number + 1 == block_count) {
        capture::ConnectionClose close;
        close.set_connection(1);
        close.set_time_ns(999'999);
        EXPECT_TRUE((*writer)->append_close(close).has_value());
      }
      EXPECT_TRUE((*writer)->flush().has_value());
      small.begins.push_back((*writer)->bytes_written());
    }
    EXPECT_TRUE((*writer)->finish().has_value());
  }
  small.bytes = read_file(path);
  std::remove(path.c_str());
  // The hashes in the ConnectionClose are the writer's; here it is taken as read, and verify proves it.
  auto reader = CaptureReader::open_bytes(small.bytes, "small");
  EXPECT_TRUE(reader.has_value());
  const auto back = read_all(**reader);
  EXPECT_TRUE(back.damage.empty());
  small.blocks.back().push_back(back.records.back());
  return small;
}

// Which blocks' records came back. Fails when what came back is not whole blocks, each once, in order.
inline std::vector<std::size_t> blocks_in(const SmallCapture& small, const std::vector<std::string>& records) {
  std::vector<std::size_t> found;
  std::size_t at = 0;
  for (std::size_t number = 0; number < small.blocks.size() && at < records.size(); ++number) {
    const auto& block = small.blocks[number];
    if (records[at] != block.front()) continue;
    if (at + block.size() > records.size() ||
        !std::equal(block.begin(), block.end(), records.begin() + static_cast<std::ptrdiff_t>(at))) {
      break;
    }
    found.push_back(number);
    at += block.size();
  }
  EXPECT_EQ(at, records.size()) << testing::PrintToString(found)
                                << ": a record that is not a whole block's, not in order or not once";
  return found;
}

struct Outcome {
  bool opened = false;
  Error error;
  std::vector<std::size_t> blocks;
  std::vector<Damage> damage;
  VerifyReport verified;
  [[nodiscard]] bool torn() const { return verified.torn(); }
  [[nodiscard]] bool corrupt() const { return verified.corrupt(); }
  // The blocks that the damage says are missing.
  [[nodiscard]] std::set<uint64_t> missing() const {
    std::set<uint64_t> numbers;
    for (const auto& d : damage) {
      for (uint64_t i = 0; i < d.block_count; ++i) numbers.insert(d.first_block + i);
    }
    return numbers;
  }
  [[nodiscard]] std::string text() const {
    std::string lines;
    for (const auto& d : damage) {
      lines += std::to_string(d.offset) + "+" + std::to_string(d.bytes) + " [" + std::to_string(d.first_block) + "," +
               std::to_string(d.block_count) + ") " + d.message + "\n";
    }
    return lines;
  }
};

inline Outcome read_damaged(const SmallCapture& small, const std::string& bytes) {
  Outcome outcome;
  auto reader = CaptureReader::open_bytes(bytes, "damaged");
  outcome.opened = reader.has_value();
  if (!reader) {
    outcome.error = reader.error();
    return outcome;
  }
  const auto back = read_all(**reader);
  outcome.blocks = blocks_in(small, back.records);
  outcome.damage = back.damage;
  auto again = CaptureReader::open_bytes(bytes, "damaged");
  outcome.verified = verify(**again);
  return outcome;
}

inline std::vector<std::size_t> all_but(const SmallCapture& small, const std::set<std::size_t>& lost) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < small.blocks.size(); ++i) {
    if (!lost.contains(i)) numbers.push_back(i);
  }
  return numbers;
}

}  // namespace ztape::sample
