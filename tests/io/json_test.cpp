#include "io/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/expect_error.h"

namespace crais {
namespace {

using nlohmann::json;

void expect_json_error(const std::string& text, const std::vector<std::string>& words) {
  expect_error(ErrorKind::kData, words, [&] { parse_json(text, "run.json"); });
}

TEST(Json, NamesThePlaceOfWhatIsWrong) {
  expect_json_error("{\n  \"a\": 1,\n  \"b\": x\n}", {"run.json", "line 3, column 8"});
  expect_json_error("[1,", {"run.json", "line 1, column 4"});
  expect_json_error("", {"run.json", "line 1, column 1", "empty"});
  expect_json_error("{} {}", {"run.json", "line 1, column 4"});
  expect_json_error("[1e999]", {"run.json", "out of range"});
}

TEST(Json, RejectsARepeatedKey) {
  expect_json_error(R"({"a": 1, "b": {"c": 1}, "a": 2})", {"\"a\" is given twice"});
  expect_json_error(R"([{"a": {"c": 1, "c": 1}}])", {"\"c\" is given twice"});
  EXPECT_NO_THROW(parse_json(R"([{"a": 1}, {"a": {"a": 2}}])", "run.json"));
}

TEST(Json, FieldsAreThereAndOfTheirType) {
  const json object = parse_json(R"({"n": 3, "s": "x", "none": null})", "run.json");
  EXPECT_EQ(json_field<int64_t>(object, "n", "run.json"), 3);
  EXPECT_EQ(json_field<std::string>(object, "s", "run.json"), "x");
  expect_error(ErrorKind::kData, {"run.json", "'m' is missing"},
               [&] { json_field<int64_t>(object, "m", "run.json"); });
  expect_error(ErrorKind::kData, {"run.json", "'n'", "wrong type", "number"},
               [&] { json_field<std::string>(object, "n", "run.json"); });
  expect_error(ErrorKind::kData, {"'n' is missing"},
               [&] { json_field<int64_t>(json::array(), "n", "run.json"); });
}

TEST(Json, WholeNumbersAreNotCast) {
  using Numbers = std::vector<int64_t>;
  const json object = parse_json(
      R"({"least": -9223372036854775808, "list": [0, 9223372036854775807], "empty": []})", "F");
  EXPECT_EQ(json_field<int64_t>(object, "least", "F"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(json_field<Numbers>(object, "list", "F"), (Numbers{0, INT64_MAX}));
  EXPECT_EQ(json_field<Numbers>(object, "empty", "F"), Numbers{});
  for (const char* bad : {"1e300", "1.5", "2.0", "9223372036854775808", "true", "\"1\"", "[1]"}) {
    const json wrong =
        parse_json(R"({"n": )" + std::string(bad) + R"(, "list": [0, )" + bad + "]}", "F");
    for (const char* key : {"n", "list"})
      expect_error(ErrorKind::kData, {"F: '" + std::string(key) + "'", "whole numbers of 64 bits"},
                   [&] {
                     if (key[0] == 'n')
                       json_field<int64_t>(wrong, key, "F");
                     else
                       json_field<Numbers>(wrong, key, "F");
                   });
  }
}

TEST(Json, NumbersThatAreNotFiniteAreNull) {
  EXPECT_EQ(json_number(0.5), json(0.5));
  EXPECT_TRUE(json_number(std::nan("")).is_null());
  EXPECT_TRUE(json_number(std::numeric_limits<double>::infinity()).is_null());
  const json object{{"x", 0.5}, {"none", nullptr}, {"s", "x"}};
  EXPECT_EQ(json_number_field(object, "x", "f"), 0.5);
  EXPECT_TRUE(std::isnan(json_number_field(object, "none", "f")));
  expect_error(ErrorKind::kData, {"'s'", "not a number"},
               [&] { json_number_field(object, "s", "f"); });
}

}  // namespace
}  // namespace crais
