#include "util/format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace crais {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Format, ShortestReadsBackAsTheSameNumber) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(0.1f), "0.1");
  EXPECT_EQ(shortest(-87.31), "-87.31");
  for (const double value : {1.0 / 3, 1e-300, -4.9e-324, 1.7976931348623157e308, std::exp(1.0)})
    EXPECT_EQ(std::strtod(shortest(value).c_str(), nullptr), value);
  EXPECT_EQ(shortest(kNan), "nan");
  EXPECT_EQ(shortest(-kNan), "nan");
  EXPECT_EQ(shortest(kInfinity), "inf");
  EXPECT_EQ(shortest(-kInfinity), "-inf");
}

TEST(Format, FixedHasNoNegativeZero) {
  EXPECT_EQ(fixed(-87.314, 2), "-87.31");
  EXPECT_EQ(fixed(-0.001, 2), "0.00");
  EXPECT_EQ(fixed(2.0, 0), "2");
  EXPECT_EQ(fixed(123456789012345.5, 1), "123456789012345.5");
  EXPECT_EQ(fixed(-1.38778e200, 3), "-1.388e+200");
  EXPECT_EQ(fixed(-kInfinity, 2), "-inf");
}

TEST(Format, SignificantAvoidsExponentsWhereItCan) {
  EXPECT_EQ(significant(3.2048), "3.20");
  EXPECT_EQ(significant(0.0041237), "0.00412");
  EXPECT_EQ(significant(12345.6), "12346");
  EXPECT_EQ(significant(0.0), "0");
  EXPECT_EQ(significant(-0.0), "0");
  EXPECT_EQ(significant(1.5e-12), "1.50e-12");
}

TEST(Format, ErrorBarsDecideTheDigits) {
  EXPECT_EQ(with_error(-87.3149, 0.2134), "-87.31 +- 0.21");
  EXPECT_EQ(with_error(-87.3149, 0.00213), "-87.3149 +- 0.0021");
  EXPECT_EQ(with_error(-87.3149, 0.0996), "-87.31 +- 0.10");
  EXPECT_EQ(with_error(-87.3149, 1.26), "-87.3 +- 1.3");
  EXPECT_EQ(with_error(-873.149, 12.6), "-873 +- 13");
  EXPECT_EQ(with_error(-873.149, 126.0), "-873 +- 126");
  EXPECT_EQ(with_error(-87.3149, 0.0), "-87.31 +- 0.00");
  EXPECT_EQ(with_error(-87.3149, kNan), "-87.31");
  EXPECT_EQ(with_error(kNan, 0.1), "nan");
}

TEST(Format, Durations) {
  EXPECT_EQ(duration(0.0), "0.00 s");
  EXPECT_EQ(duration(0.423), "0.42 s");
  EXPECT_EQ(duration(1.234), "1.2 s");
  EXPECT_EQ(duration(9.99), "10.0 s");
  EXPECT_EQ(duration(42.3), "42 s");
  EXPECT_EQ(duration(59.7), "1 min 00 s");
  EXPECT_EQ(duration(83), "1 min 23 s");
  EXPECT_EQ(duration(3599.6), "1 h 00 min");
  EXPECT_EQ(duration(7500), "2 h 05 min");
  EXPECT_EQ(duration(3 * 86400 + 4 * 3600), "3 d 04 h");
  EXPECT_EQ(duration(kNan), "?");
  EXPECT_EQ(duration(-1), "?");
}

TEST(Format, Commas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1024), "1,024");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
}

TEST(Printable, IsOneLineOfShortWords) {
  EXPECT_EQ(printable("a\nb\x1b"), "a\\nb\\x1b");
  const std::string cut(200, 'x'), words = "model's x: 'a b' and ";
  EXPECT_EQ(printable(words + cut + " y"), words + cut + " y");
  EXPECT_EQ(printable(words + cut + "xxx y"), words + cut + "... y");
  EXPECT_EQ(printable("'" + cut + " xx' y").size(), 206);  // the quote is one of the 200
  EXPECT_EQ(printable(std::string(199, 'x') + "\u00e9\u00e9"), std::string(199, 'x') + "\u00e9...");
}

TEST(ShellQuoted, OnlyWhereItMust) {
  EXPECT_EQ(shell_quoted("results/a_1-b.c"), "results/a_1-b.c");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("my results"), "'my results'");
  EXPECT_EQ(shell_quoted("$HOME;`x`\"*\\"), "'$HOME;`x`\"*\\'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted("~"), "'~'");
}

TEST(ShellQuoted, AWordStaysOnOneLine) {
  EXPECT_EQ(shell_quoted("a\nEND_OF_TASK\n"), "$'a\\nEND_OF_TASK\\n'");
  EXPECT_EQ(shell_quoted("it's\\\n"), "$'it\\'s\\\\\\n'");
}

}  // namespace
}  // namespace crais
