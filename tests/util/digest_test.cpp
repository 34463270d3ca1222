#include "util/digest.h"

#include <gtest/gtest.h>

namespace crais {
namespace {

const std::string kAlphabet = "abcdefghijklmnopqrstuvwxyz";

TEST(Digests, AsTheStandardsHaveThem) {  // FIPS 180-4's examples; RFC 1321, section A.5
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(md5(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(md5(kAlphabet), "c3fcd3d76192e4007dfb496cca67e13b");
}

TEST(Digests, OfMessagesThatFillTheirLastBlock) {
  const std::string million(1'000'000, 'a');
  EXPECT_EQ(sha256(million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(md5(million), "7707d6ae4e027c70eea2a935c2296f21");
}

}  // namespace
}  // namespace crais
