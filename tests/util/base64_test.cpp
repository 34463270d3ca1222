#include "util/base64.h"

#include <gtest/gtest.h>

namespace crais {
namespace {

TEST(Base64, AsTheStandardHasIt) {  // RFC 4648, section 10
  const std::pair<std::string, std::string> known[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : known) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(from_base64(to_base64(all)), all);
}

TEST(Base64, WhatNobodyWroteIsRefused) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg=a", "Z===", "====", "=", "Zm9v Zg==", "Zh==", "Zm9*", "Zg==Zg=="})
    EXPECT_FALSE(from_base64(text)) << text;
}

}  // namespace
}  // namespace crais
