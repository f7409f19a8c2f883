#include "net/connection.h"

#include <utility>

namespace ztape::net {

void Connection::write(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  const auto* first = reinterpret_cast<const uint8_t*>(owner->data());
  const std::size_t size = owner->size();
  const Slice slice(std::shared_ptr<const uint8_t[]>(std::move(owner), first), first, size);
  write({&slice, 1});
}

}  // namespace ztape::net
