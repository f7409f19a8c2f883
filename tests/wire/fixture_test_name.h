// A fixture's name as a test's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ztape::test {

inline std::string fixture_test_name(const testing::TestParamInfo<std::string>& fixture) {
  std::string text = fixture.param;
  std::ranges::replace(text, '-', '_');
  return text;
}

}  // namespace ztape::test
