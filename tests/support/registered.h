// Tests of everything that a registry knows.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/activations.h"

namespace crais::testing {

/// A specification that works for each entry that has one.
template <typename Registry>
std::vector<std::string> examples() {
  std::vector<std::string> all;
  for (const auto& [name, entry] : Registry::instance().entries())
    if (!entry.example.empty()) all.push_back(entry.example);
  return all;
}

/// A specification as the name of a test case.
inline std::string named_by_spec(const ::testing::TestParamInfo<std::string>& instance) {
  return name_of_test(instance.param);
}
/// For specifications of which several have the same letters.
inline std::string named_by_index_and_spec(const ::testing::TestParamInfo<std::string>& instance) {
  return name_of_test(std::to_string(instance.index) + "_" + instance.param);
}

}  // namespace crais::testing
