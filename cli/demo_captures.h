// The two recordings that ship inside the program: one wallet syncing one chain from a real Zaino and a real Ztreamer.
#pragma once

#include <string_view>

namespace ztape::cli {

// Whole captures (`cli/demo_captures/*.ztape`), made by `ztape import` from tests/fixtures.
std::string_view zaino_capture();
std::string_view ztreamer_capture();

}  // namespace ztape::cli
