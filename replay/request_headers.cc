#include "replay/request_headers.h"

#include <algorithm>
#include <array>

#include "replay/binary_metadata.h"

namespace ztape::replay {

http2::HeaderList request_headers(const http2::HeaderList& recorded, const std::string& authority) {
  static constexpr std::array<std::string_view, 5> kForbidden{"connection", "keep-alive", "proxy-connection",
                                                              "transfer-encoding", "upgrade"};
  http2::HeaderList fields;
  fields.reserve(recorded.size());
  for (const auto& field : recorded) {
    if (std::ranges::find(kForbidden, field.name) != kForbidden.end()) continue;
    if (field.name == ":authority" || field.name == "host") {
      fields.push_back({field.name, authority});
    } else if (field.name == ":scheme") {
      fields.push_back({field.name, "http"});
    } else {
      fields.push_back(field);
    }
  }
  // Pseudo-headers come first on every wire that could be recorded; an index of another kind may not keep that.
  std::ranges::stable_partition(fields, [](const auto& field) { return field.name.starts_with(':'); });
  to_base64(fields);
  return fields;
}

}  // namespace ztape::replay
