#include "capture-format/reader.h"

#include <utility>

#include "capture-format/block_reader.h"
#include "capture-format/record_block.h"

namespace ztape {

struct CaptureReader::Impl {
  explicit Impl(BlockReader opened) : blocks(std::move(opened)) {}

  BlockReader blocks;
  RecordBlock block;
  std::size_t position = 0;  // in the block
  bool followed = false;
  bool ended = false;
  uint64_t blocks_read = 0;
  uint64_t records_read = 0;
};

CaptureReader::CaptureReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CaptureReader::~CaptureReader() = default;

Result<std::unique_ptr<CaptureReader>> CaptureReader::open(const std::string& path) {
  auto source = ByteSource::open(path);
  if (!source) return std::unexpected(std::move(source.error()));
  return of_source(std::move(*source));
}

Result<std::unique_ptr<CaptureReader>> CaptureReader::follow(const std::string& path) {
  auto source = ByteSource::open(path);
  if (!source) return std::unexpected(std::move(source.error()));
  source->follow();
  auto reader = of_source(std::move(*source));
  if (reader) (*reader)->impl_->followed = true;
  return reader;
}

Result<std::unique_ptr<CaptureReader>> CaptureReader::open_bytes(std::string bytes, const std::string& name) {
  return of_source(ByteSource::of_bytes(std::move(bytes), name));
}

Result<std::unique_ptr<CaptureReader>> CaptureReader::of_source(ByteSource source) {
  auto blocks = BlockReader::open(std::move(source));
  if (!blocks) return std::unexpected(std::move(blocks.error()));
  return std::unique_ptr<CaptureReader>(new CaptureReader(std::make_unique<Impl>(std::move(*blocks))));
}

const capture::Record* CaptureReader::next() {
  auto& r = *impl_;
  while (r.position == r.block.records().size()) {
    const auto step = r.blocks.next(r.block, r.followed);
    if (step == BlockReader::Step::wait && !r.followed) {
      r.blocks.grow(std::chrono::milliseconds(-1));
      continue;
    }
    if (step != BlockReader::Step::block) {
      r.ended = step == BlockReader::Step::end;
      r.position = r.block.records().size();
      return nullptr;
    }
    r.position = 0;
    ++r.blocks_read;
  }
  ++r.records_read;
  return r.block.records()[r.position++];
}

bool CaptureReader::ended() const {
  return impl_->ended;
}

void CaptureReader::wait(std::chrono::milliseconds at_most) {
  impl_->blocks.grow(at_most);
}

const std::vector<Damage>& CaptureReader::damage() const {
  return impl_->blocks.damage();
}

uint64_t CaptureReader::blocks_read() const {
  return impl_->blocks_read;
}

uint64_t CaptureReader::records_read() const {
  return impl_->records_read;
}

const std::string& CaptureReader::name() const {
  return impl_->blocks.name();
}

std::string_view kind(const Damage& damage) {
  switch (damage.code) {
    case ErrorCode::torn: return "torn";
    case ErrorCode::over_limit: return "over_limit";
    case ErrorCode::io: return "io";
    default: return "corrupt";
  }
}

}  // namespace ztape
