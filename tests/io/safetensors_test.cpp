#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "util/error.h"

namespace crais {
namespace {

std::string with_length(uint64_t length, const std::string& rest) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>(static_cast<unsigned char>(length >> 8 * i));
  return bytes + rest;
}

std::string file_of(const std::string& header, size_t data_bytes) {
  return with_length(header.size(), header + std::string(data_bytes, '\0'));
}

/// A header of one tensor "a" with the given fields.
std::string tensor_file(const std::string& dtype, const std::string& shape,
                        const std::string& offsets, size_t data_bytes) {
  return file_of(
      "{\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}",
      data_bytes);
}

void expect_rejected(const std::string& bytes, const std::vector<std::string>& words) {
  expect_error(ErrorKind::kData, {"FILE"}, [&] { parse_safetensors(bytes, "FILE"); });
  expect_error(ErrorKind::kData, words, [&] { parse_safetensors(bytes, "FILE"); });
}

TEST(SafeTensors, RoundTripKeepsNamesTypesShapesValuesAndMetadata) {
  const testing::TemporaryFolder scratch;
  const SafeTensors written{{{"bytes", at::arange(3, at::kByte)},
                             {"float", at::tensor({1.5F, -2.0F, 3.25F, 4.0F}).view({2, 2})},
                             {"double", at::tensor({0.1, -1e300}, at::kDouble)},
                             {"whole", at::tensor({INT64_MIN, INT64_MAX}, at::kLong)},
                             {"scalar", at::tensor(7.0F).squeeze()},
                             {"empty", at::empty({0, 5})}},
                            {{"key", "value"}, {"quote", "\"\n\xc3\xa9"}}};
  write_safetensors(scratch.path() / "x.safetensors", written);
  const SafeTensors read = read_safetensors(scratch.path() / "x.safetensors");
  EXPECT_EQ(read.metadata, written.metadata);
  ASSERT_EQ(read.tensors.size(), written.tensors.size());
  for (const auto& [name, tensor] : written.tensors) {
    const at::Tensor* found = read.find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_EQ(found->scalar_type(), tensor.scalar_type()) << name;
    EXPECT_EQ(found->sizes(), tensor.sizes()) << name;
    EXPECT_TRUE(at::equal(*found, tensor)) << name;
  }
  EXPECT_EQ(read.find("absent"), nullptr);
}

TEST(SafeTensors, WritesTheDocumentedLayout) {
  const std::string bytes = serialise_safetensors(
      {{{"b", at::tensor({1, 2}, at::kByte)}, {"t", at::tensor({1.0F, 2.0F}).view({2, 1}).t()}},
       {}});
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i)
    length |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << 8 * i;
  EXPECT_EQ(length % 8, 0U);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  // The floats come first, so that they are aligned.
  EXPECT_EQ(header, nlohmann::json::parse(
                        R"({"t": {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]},
                            "b": {"dtype": "U8", "shape": [2], "data_offsets": [8, 10]}})"));
  EXPECT_EQ(bytes.substr(8 + length), std::string("\0\0\x80\x3f\0\0\0\x40\x01\x02", 10));
}

TEST(SafeTensors, AcceptsNamesWithBracketsAndAnyOrder) {
  const std::string one = R"({"dtype":"U8","shape":[2],"data_offsets":)";
  const std::string name(100, '[');  // nests nothing
  const std::string header = "{\"" + name + "\":" + one + "[2,4]},\"b\":" + one + "[0,2]}}";
  EXPECT_EQ(parse_safetensors(file_of(header, 4), "FILE").tensors.size(), 2U);
}

TEST(SafeTensors, RejectsDamagedFiles) {
  std::string objects;
  for (int i = 0; i < 1000; ++i) objects += "{\"a\":";
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"", {"0 bytes", "too few"}},
      {"1234567", {"7 bytes", "too few"}},
      {with_length(100'000'001, "{}"), {"100000001", "at most 100000000"}},
      {with_length(UINT64_MAX, "{}"), {"18446744073709551615"}},
      {with_length(3, "{}"), {"truncated", "3 bytes", "only 2"}},
      {file_of("", 0), {"JSON"}},
      {file_of("{\"a\":", 0), {"JSON"}},
      {file_of("{} x", 0), {"JSON"}},
      {file_of("{\"\xff\":1}", 0), {"JSON"}},
      {file_of("[1]", 0), {"not a JSON object"}},
      {file_of(std::string(10'000'000, '['), 0), {"nested deeper"}},
      {file_of(objects, 0), {"nested deeper"}},
      {file_of(R"({"a":1,"a":1})", 1), {"\"a\"", "twice"}},
      {file_of(R"({"a":{"dtype":"U8","dtype":"U8"}})", 1), {"dtype", "twice"}},
      {file_of(R"({"a":1})", 0), {"\"a\"", "object"}},
      {file_of(R"({"a":{"shape":[],"data_offsets":[0,0]}})", 0), {"no dtype"}},
      {file_of(R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", 0), {"no shape"}},
      {file_of(R"({"a":{"dtype":"U8","shape":[]}})", 0), {"no data_offsets"}},
      {file_of(R"({"a":{"extra":1}})", 0), {"unknown key", "extra"}},
      {file_of(R"({"__metadata__":{"k":1}})", 0), {"__metadata__", "\"k\"", "string"}},
      {file_of(R"({"__metadata__":[]})", 0), {"__metadata__", "object"}},
  };
  for (const auto& [bytes, words] : cases) expect_rejected(bytes, words);
}

TEST(SafeTensors, RejectsTensorsThatLie) {
  struct Case {
    std::string dtype, shape, offsets;
    size_t data_bytes;
    std::vector<std::string> words;
  };
  const std::string u8 = "\"U8\"", f32 = "\"F32\"";
  const std::vector<Case> cases = {
      {"\"F8_E4M3\"", "[1]", "[0,1]", 1, {"\"a\"", "F8_E4M3", "F32"}},
      {"\"BF16\"", "[1]", "[0,2]", 2, {"BF16", "I64"}},
      {"4", "[1]", "[0,4]", 4, {"dtype"}},
      {u8, "[-1]", "[0,1]", 1, {"shape", "non-negative"}},
      {u8, "[1.0]", "[0,1]", 1, {"shape", "whole number"}},
      {u8, "3", "[0,3]", 3, {"shape is not a list"}},
      {u8, "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]", 1, {"shape is not a list"}},
      // 2^62 floats: their bytes are 2^64, which wraps to 0.
      {f32, "[4611686018427387904]", "[0,0]", 0, {"overflows"}},
      {u8, "[4294967296,4294967296]", "[0,0]", 0, {"overflows"}},
      {u8, "[0,4294967296,4294967296]", "[0,0]", 0, {"overflows"}},
      {u8, "[18446744073709551615]", "[0,0]", 0, {"overflows"}},
      {u8, "[18446744073709551616]", "[0,0]", 0, {"whole number"}},
      {u8, "[1]", "[0]", 1, {"data_offsets are not two"}},
      {u8, "[1]", "[-1,0]", 1, {"begin", "non-negative"}},
      {u8, "[1]", "[0,\"1\"]", 1, {"end", "whole number"}},
      {u8, "[1]", "[1,0]", 1, {"outside"}},
      {u8, "[4]", "[0,4]", 3, {"outside the 3 bytes"}},
      {u8, "[1]", "[18446744073709551615,0]", 1, {"outside"}},
      {f32, "[2]", "[0,4]", 4, {"4 bytes", "need 8"}},
      {u8, "[2]", "[1,3]", 3, {"hole of 1"}},
      {u8, "[2]", "[0,2]", 5, {"3 bytes after the last"}},
  };
  for (const Case& c : cases)
    expect_rejected(tensor_file(c.dtype, c.shape, c.offsets, c.data_bytes), c.words);
  const std::string one = R"({"dtype":"U8","shape":[2],"data_offsets":)";
  for (const char* second : {"[1,3]", "[0,2]"})
    expect_rejected(file_of("{\"a\":" + one + "[0,2]},\"b\":" + one + second + "}}", 3),
                    {"overlaps"});
}

TEST(SafeTensors, HostileNamesStayOnOneShortLine) {
  const std::string name = "\\n\\u001b[31m" + std::string(5000, 'x');
  try {
    parse_safetensors(file_of("{\"" + name + "\":1}", 0), "FILE");
    FAIL() << "no error was thrown";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find_first_of("\n\x1b"), std::string::npos);
    EXPECT_LT(message.size(), 300U);
  }
}

TEST(SafeTensors, EveryTruncationIsRejected) {
  const std::string bytes = serialise_safetensors({{{"a", at::ones({3})}}, {{"k", "v"}}});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(parse_safetensors(bytes.substr(0, size), "FILE"), Error) << size;
}

}  // namespace
}  // namespace crais
