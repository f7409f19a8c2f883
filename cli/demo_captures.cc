#include "cli/demo_captures.h"

// The assembler puts the files into the program as they are; ZTAPE_DEMO_CAPTURES is their folder.
#define INCLUDE_FILE(symbol, file)                             \
  asm(".section .rodata\n"                                     \
      ".global " #symbol                                       \
      "_first\n"                                               \
      ".global " #symbol "_end\n" #symbol                      \
      "_first:\n"                                              \
      ".incbin \"" ZTAPE_DEMO_CAPTURES "/" file "\"\n" #symbol \
      "_end:\n"                                                \
      ".previous\n");                                          \
  extern "C" const char symbol##_first[];                      \
  extern "C" const char symbol##_end[];

INCLUDE_FILE(ztape_zaino_capture, "zaino-zingo.ztape")
INCLUDE_FILE(ztape_ztreamer_capture, "ztreamer-zingo.ztape")

namespace ztape::cli {
namespace {

std::string_view between(const char* first, const char* end) {
  return {first, static_cast<std::size_t>(end - first)};
}

}  // namespace

std::string_view zaino_capture() {
  return between(ztape_zaino_capture_first, ztape_zaino_capture_end);
}
std::string_view ztreamer_capture() {
  return between(ztape_ztreamer_capture_first, ztape_ztreamer_capture_end);
}

}  // namespace ztape::cli
