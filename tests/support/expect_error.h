// Asserting on errors: the exit code and the words a user needs to see.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "core/error.h"

namespace crais::testing {

/// `action` must throw an Error with `code`, of one line, holding every one of `words`.
inline void expect_error(ExitCode code, std::initializer_list<std::string> words,
                         const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    for (const auto& word : words)
      EXPECT_NE(message.find(word), std::string::npos) << "no '" << word << "' in: " << message;
    return;
  }
  ADD_FAILURE() << "no error was thrown";
}

}  // namespace crais::testing
