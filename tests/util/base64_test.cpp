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
  for (const auto& [bytes, text] : known) EXPECT_EQ(to_base64(bytes), text);
  EXPECT_EQ(to_base64("\xfb\xff\xbf"), "+/+/");  // the last two digits
}

}  // namespace
}  // namespace crais
