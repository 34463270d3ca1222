// Expectations on the errors a user sees.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "util/error.h"

namespace crais {

/// Expects an Error of that code whose message is one line and holds every one of the words.
template <typename Action>
void expect_error(ErrorKind code, const std::vector<std::string>& words, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), code) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const auto& word : words) EXPECT_NE(message.find(word), std::string::npos) << message;
    return;
  }
  ADD_FAILURE() << "no Error was thrown";
}

}  // namespace crais
