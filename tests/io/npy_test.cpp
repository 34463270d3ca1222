#include "io/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/expect_error.h"

namespace crais {
namespace {

std::string npy_of(at::IntArrayRef shape, const std::vector<double>& values) {
  return npy_text(at::tensor(values, at::kDouble).view(shape));
}

TEST(Npy, IsTheFormatToTheByte) {
  const std::string text = npy_of({2, 3}, {1, 2, 3, 4, 5, -0.5});
  ASSERT_EQ(text.size(), 128U + 48U);
  EXPECT_EQ(text.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, ), }";
  EXPECT_EQ(text.substr(10, header.size()), header);
  EXPECT_EQ(text.substr(10 + header.size(), 118 - header.size() - 1),
            std::string(118 - header.size() - 1, ' '));
  EXPECT_EQ(text[127], '\n');
  double last = 0;
  std::memcpy(&last, text.data() + 128 + 40, sizeof last);
  EXPECT_EQ(last, -0.5);
}

std::string file_of(const std::string& header, const std::string& values, char version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += version;
  bytes += '\0';
  for (size_t i = 0; i < (version == 1 ? 2U : 4U); ++i)
    bytes += static_cast<char>(header.size() >> 8 * i & 255);
  return bytes + header + values;
}

std::string header_of(const std::string& descr, const std::string& shape,
                      const std::string& fortran_order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran_order + ", 'shape': " + shape +
         ", }\n";
}

at::Tensor parsed(const std::string& bytes) { return parse_npy(bytes, "FILE"); }

void expect_refused(const std::string& bytes, const std::vector<std::string>& words) {
  expect_error(ErrorKind::kData, {"FILE: "}, [&] { parsed(bytes); });
  expect_error(ErrorKind::kData, words, [&] { parsed(bytes); });
}

/// Expects equal type, shape and values.
void expect_array(const at::Tensor& array, const at::Tensor& expected) {
  EXPECT_EQ(array.scalar_type(), expected.scalar_type());
  EXPECT_EQ(array.sizes(), expected.sizes());
  EXPECT_TRUE(at::equal(array, expected)) << array << expected;
}

TEST(NpyReader, ReadsWhatIsWritten) {
  const std::string text = npy_of({2, 3}, {1, 2, 3, 4, 5, -0.5});
  EXPECT_TRUE(is_npy(text));
  expect_array(parsed(text), at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, -0.5}, at::kDouble).view({2, 3}));
  expect_array(parsed(npy_of({0, 3}, {})), at::empty({0, 3}, at::kDouble));
  expect_array(parsed(npy_of({}, {2.5})), at::full({}, 2.5, at::kDouble));
}

TEST(NpyReader, EveryType) {
  const struct {
    std::string code, bytes;
    at::Tensor expected;
  } cases[] = {{"b1", std::string("\x00\x01\xff", 3), at::tensor({0, 1, 1}).to(at::kBool)},
               {"u1", "\x01\xff", at::tensor({1, 255}, at::kByte)},
               {"i1", "\x01\xff", at::tensor({1, -1}, at::kChar)},
               {"i2", "\x01\x02\xff\xff", at::tensor({0x201, -1}, at::kShort)},
               {"u2", "\x01\x02\xff\xff", at::tensor({0x201, 65535}, at::kInt)},
               {"i4", "\x01\x02\x03\x84", at::tensor({static_cast<int>(0x84030201)}, at::kInt)},
               {"u4", "\x01\x02\x03\x84", at::tensor({0x84030201L}, at::kLong)},
               {"i8", "\x01\x02\x03\x04\x05\x06\x07\x88",
                at::tensor({static_cast<int64_t>(0x8807060504030201)}, at::kLong)},
               {"f2", std::string("\x00\x3c\x00\xc1", 4), at::tensor({1.0F, -2.5F}).to(at::kHalf)},
               {"f4", std::string("\x00\x00\x20\xc0", 4), at::tensor({-2.5F})},
               {"f8", std::string("\0\0\0\0\0\0\x04\xc0", 8), at::tensor({-2.5}, at::kDouble)}};
  for (const auto& [code, bytes, expected] : cases) {
    const std::string shape = "(" + std::to_string(expected.numel()) + ",)";
    expect_array(parsed(file_of(header_of("<" + code, shape), bytes)), expected);
    expect_array(parsed(file_of(header_of("|" + code, shape), bytes)), expected);
  }
}

TEST(NpyReader, ColumnsFirst) {
  const std::string values("\0\1\2\3\4\5", 6);
  const at::Tensor array = parsed(file_of(header_of("|u1", "(2, 3)", "True"), values));
  expect_array(array, at::arange(6, at::kByte).view({3, 2}).t());
  EXPECT_TRUE(array.is_contiguous());
  expect_array(parsed(file_of(header_of("|u1", "(1, 2, 3)", "True"), values)),
               at::arange(6, at::kByte).view({3, 2, 1}).permute({2, 1, 0}));
  expect_array(parsed(file_of(header_of("|u1", "(6,)", "True"), values)), at::arange(6, at::kByte));
}

TEST(NpyReader, EveryVersionAndSpelling) {
  const at::Tensor expected = at::tensor({5, 6}, at::kByte);
  for (const char version : {'\1', '\2', '\3'})
    expect_array(parsed(file_of(header_of("|u1", "(2,)"), "\5\6", version)), expected);
  for (const char* header :
       {"{'shape':(2,),'descr':'|u1','fortran_order':False}",
        "{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": (2L,)}  \n",
        " { 'descr' : '=u1' , 'fortran_order' : False , 'shape' : ( 2 , ) , } "})
    expect_array(parsed(file_of(header, "\5\6")), expected);
  expect_array(parsed(file_of(header_of("|u1", "(1, 2)"), "\5\6")), expected.view({1, 2}));
  expect_array(parsed(file_of(header_of("|u1", "(1, 2, )"), "\5\6")), expected.view({1, 2}));
}

TEST(NpyReader, OtherFilesAreRefused) {
  EXPECT_FALSE(is_npy(""));
  EXPECT_FALSE(is_npy("\x93NUMP"));
  expect_refused("", {"not a .npy file"});
  expect_refused("PK\x03\x04", {"not a .npy file"});
  expect_refused("\x93NUMPY", {"truncated"});
  expect_refused(file_of(header_of("|u1", "(2,)"), "\5\6", 4), {"format 4", "1 to 3"});
  expect_refused(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12), {"4294967295 bytes"});
}

TEST(NpyReader, OtherTypesAreRefused) {
  for (const char* descr :
       {"|O", "<u8", "<c8", "<U3", "|S4", "|V8", "<M8[s]", ">f8", "f8", "<f16", "<f", ""})
    expect_refused(file_of(header_of(descr, "(1,)"), "12345678"), {"type", "f2, f4, f8"});
  expect_refused(
      file_of("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}", "12345678"),
      {"header", "records are not read"});
}

TEST(NpyReader, HeadersAreStrict) {
  const std::string rest = ", 'fortran_order': False, 'shape': (1,)";
  for (const std::string& header : std::vector<std::string>{
           std::string(), std::string("[]"), "{", "{}", "{'descr': '|u1'", "{'descr': '|u1'}",
           "{'descr' '|u1'" + rest + "}", "{'descr': '|u1'" + rest + "} x",
           "{'descr': '|u1'" + rest + ", 'extra': 1}",
           "{'descr': '|u1', 'descr': '|u1'" + rest + "}", "{'descr': '|u1'" + rest + ",,}",
           "{'descr': '|u1" + rest + "}", "{'descr': '|\\x75'" + rest + "}",
           "{descr: '|u1'" + rest + "}", "{'descr': __import__('os').system('id')" + rest + "}"})
    expect_refused(file_of(header, "\5"), {"header"});
  for (const char* shape :
       {"(1)", "1", "[1]", "(-1,)", "(1.0,)", "(1,", "(,)", "(1 1)", "(1,,)", "(0x1,)", "(True,)",
        "(9223372036854775808,)", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"})
    expect_refused(file_of(header_of("|u1", shape), "\5"), {"header"});
  for (const char* order : {"0", "false", "None", "'False'", ""})
    expect_refused(file_of(header_of("|u1", "(1,)", order), "\5"), {"header"});
}

TEST(NpyReader, SizesAreThoseOfTheFile) {
  expect_refused(file_of(header_of("|u1", "(3,)"), "\5\6"), {"need 3 bytes", "2 are there"});
  expect_refused(file_of(header_of("|u1", "(1,)"), "\5\6"), {"need 1 bytes", "2 are there"});
  expect_refused(file_of(header_of("<f8", "(1000000000000,)"), "\5"), {"need 8000000000000 bytes"});
  // 2^61 doubles: their bytes are 2^64, which wraps to 0.
  expect_refused(file_of(header_of("<f8", "(2305843009213693952,)"), ""), {"overflows"});
  expect_refused(file_of(header_of("|u1", "(4294967296, 4294967296)"), ""), {"overflows"});
  expect_refused(file_of(header_of("|u1", "(0, 4294967296, 4294967296)"), ""), {"overflows"});
  expect_refused(file_of(header_of("|u1", "(9223372036854775807, 3)"), ""), {"overflows"});
}

TEST(NpyReader, EveryTruncationIsRefused) {
  const std::string bytes = npy_of({2, 3}, {1, 2, 3, 4, 5, -0.5});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(parsed(bytes.substr(0, size)), Error) << size;
}

}  // namespace
}  // namespace crais
