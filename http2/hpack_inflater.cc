#include "http2/hpack_inflater.h"

#include <algorithm>
#include <new>
#include <vector>

#include "http2/connection_reader.h"

namespace ztape::http2 {
namespace {

constexpr std::size_t kFieldOverheadBytes = 32;  // RFC 9113, section 6.5.2

constexpr std::size_t kStaticEntries = 61;  // RFC 7541, appendix A

std::string text_of(const uint8_t* bytes, std::size_t size) {
  return std::string(reinterpret_cast<const char*>(bytes), size);
}

// RFC 7541, section 5.1.
void put_integer(std::vector<uint8_t>& out, uint8_t first, int prefix_bits, std::size_t value) {
  const std::size_t most = (1u << prefix_bits) - 1;
  if (value < most) return out.push_back(static_cast<uint8_t>(first | value));
  out.push_back(static_cast<uint8_t>(first | most));
  for (value -= most; value >= 128; value >>= 7) out.push_back(static_cast<uint8_t>(0x80 | (value & 0x7f)));
  out.push_back(static_cast<uint8_t>(value));
}

void put_text(std::vector<uint8_t>& out, const std::string& text) {
  put_integer(out, 0, 7, text.size());
  out.insert(out.end(), text.begin(), text.end());
}

}  // namespace

HpackInflater::HpackInflater() {
  nghttp2_hd_inflater* inflater = nullptr;
  if (nghttp2_hd_inflate_new(&inflater) != 0) throw std::bad_alloc();
  inflater_.reset(inflater);
}

void HpackInflater::set_table_size(uint32_t bytes) {
  // Fails only in the middle of a block, where no SETTINGS ACK can stand.
  table_limit_ = std::min(bytes, kMaxHpackTableBytes);
  if (table_limit_ < nghttp2_hd_inflate_get_max_dynamic_table_size(inflater_.get())) size_due_ = table_limit_;
  nghttp2_hd_inflate_change_table_size(inflater_.get(), table_limit_);
}

Result<void> HpackInflater::inflate(std::span<const uint8_t> block, HeaderList& fields) {
  std::size_t count = 0;
  std::size_t list_bytes = 0;
  const uint8_t* next = block.data();
  std::size_t left = block.size();
  for (;;) {
    nghttp2_nv field{};
    int flags = 0;
    const auto used = nghttp2_hd_inflate_hd2(inflater_.get(), &field, &flags, next, left, 1);
    if (used < 0) {
      return std::unexpected(
          Error{ErrorCode::protocol, std::string("HPACK: ") + nghttp2_strerror(static_cast<int>(used)), ""});
    }
    next += used;
    left -= static_cast<std::size_t>(used);
    if (flags & NGHTTP2_HD_INFLATE_EMIT) {
      list_bytes += field.namelen + field.valuelen + kFieldOverheadBytes;
      if (list_bytes > kMaxHeaderListBytes) {
        return std::unexpected(Error{ErrorCode::over_limit, "HPACK: the header list is larger than 1 MiB", ""});
      }
      if (count == fields.size()) fields.emplace_back();
      fields[count].name.assign(reinterpret_cast<const char*>(field.name), field.namelen);
      fields[count].value.assign(reinterpret_cast<const char*>(field.value), field.valuelen);
      ++count;
    }
    if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
    if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && left == 0) break;
  }
  nghttp2_hd_inflate_end_headers(inflater_.get());
  size_due_.reset();
  fields.resize(count);
  return {};
}

HpackState HpackInflater::state() const {
  HpackState state;
  for (std::size_t i = nghttp2_hd_inflate_get_num_table_entries(inflater_.get()); i > kStaticEntries; --i) {
    const auto* entry = nghttp2_hd_inflate_get_table_entry(inflater_.get(), i);
    state.table.push_back({text_of(entry->name, entry->namelen), text_of(entry->value, entry->valuelen)});
  }
  std::ranges::reverse(state.table);
  state.table_size = static_cast<uint32_t>(nghttp2_hd_inflate_get_max_dynamic_table_size(inflater_.get()));
  state.table_limit = table_limit_;
  state.size_due = size_due_;
  return state;
}

// An inflater is brought to that state by what an encoder would have sent.
Result<void> HpackInflater::restore(const HpackState& state) {
  std::size_t bytes = 0;
  for (const auto& entry : state.table) bytes += entry.name.size() + entry.value.size() + kFieldOverheadBytes;
  const bool due = state.size_due.has_value();
  if (bytes > state.table_size || state.table_size > kMaxHpackTableBytes || state.table_limit > kMaxHpackTableBytes ||
      (due ? *state.size_due != state.table_size : state.table_size > state.table_limit)) {
    return std::unexpected(Error{ErrorCode::protocol, "HPACK: a dynamic table that cannot be", ""});
  }
  *this = HpackInflater();
  // A limit that falls below the table's size is what makes an update due.
  const uint32_t size = state.table_size + (due ? 1 : 0);
  set_table_size(std::max(state.table_limit, std::min(size, kMaxHpackTableBytes)));
  std::vector<uint8_t> block;
  HeaderList none;
  put_integer(block, 0x20, 5, std::min(size, kMaxHpackTableBytes));
  if (auto done = inflate(block, none); !done) return std::unexpected(done.error());
  for (auto entry = state.table.rbegin(); entry != state.table.rend(); ++entry) {
    block.clear();
    put_integer(block, 0x40, 6, 0);  // a literal to be added to the table, with a new name
    put_text(block, entry->name);
    put_text(block, entry->value);
    if (auto done = inflate(block, none); !done) return std::unexpected(done.error());
  }
  if (due) {
    set_table_size(*state.size_due);
    set_table_size(state.table_limit);
  }
  return {};
}

}  // namespace ztape::http2
