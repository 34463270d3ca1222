#include "report/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "support/expect_error.h"

namespace crais {
namespace {

TEST(Table, AlignsNumbersRightAndWordsLeft) {
  Table table({"method", "log p(x)", "ESS", "note"}, "100 images");
  table.add_row({"ais", "-87.31 +- 0.21", "0.62", "lower bound"});
  table.add_row({"iwae-5000", "-9.5 +- 1.3", "-", "3 x"});
  table.add_row({"elbo", "nan", "", ""});
  EXPECT_EQ(table.text(),
            "100 images\n"
            "method           log p(x)   ESS  note\n"
            "--------------------------------------------\n"
            "ais        -87.31 +- 0.21  0.62  lower bound\n"
            "iwae-5000     -9.5 +- 1.3     -  3 x\n"
            "elbo                  nan\n");
}

TEST(Table, WithoutRowsIsItsHeader) { EXPECT_EQ(Table({"a", "bcd"}).text(), "a  bcd\n------\n"); }

TEST(Table, CountsCharactersNotBytes) {
  Table table({"name", "n"});
  table.add_row({"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", "1"});
  table.add_row({"abc", "2"});
  EXPECT_NE(table.text().find("\nabc    2\n"), std::string::npos) << table.text();
}

TEST(Table, RejectsARowOfAnotherLength) {
  Table table({"a", "b"});
  expect_error(ErrorKind::kInternal, {"1 cells", "2 columns"}, [&] { table.add_row({"x"}); });
}

size_t widest(const std::string& text) {
  size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST(Table, FitsATerminalInParts) {
  Table table({"method", "base", "log p(x)", "MC SE", "evaluations", "label"}, "Nats");
  table.add_row({"ais", "laplace", "-85.108", "0.0041", "784", "lower bound"});
  table.add_row({"iwae:5000", "encoder", "-88.2", "0.1", "5,000", "lower bound"});
  EXPECT_EQ(table.text(40),
            "Nats\n"
            "method     base     log p(x)   MC SE\n"
            "------------------------------------\n"
            "ais        laplace   -85.108  0.0041\n"
            "iwae:5000  encoder     -88.2     0.1\n"
            "\n"
            "method     base     evaluations\n"
            "-------------------------------\n"
            "ais        laplace          784\n"
            "iwae:5000  encoder        5,000\n"
            "\n"
            "method     base     label\n"
            "-------------------------------\n"
            "ais        laplace  lower bound\n"
            "iwae:5000  encoder  lower bound\n");
  EXPECT_EQ(table.text(0), table.text(1000));
  Table by_method({"method", "base", "log p(x)"}, "", /*names=*/1);
  by_method.add_row({"ais", "laplace", "-85.108"});
  EXPECT_EQ(by_method.text(16),
            "method  base\n"
            "---------------\n"
            "ais     laplace\n"
            "\n"
            "method  log p(x)\n"
            "----------------\n"
            "ais      -85.108\n");
  for (int width = 40; width < 100; ++width)
    EXPECT_LE(widest(table.text(width)), static_cast<size_t>(width)) << table.text(width);
}

TEST(Table, BreaksAColumnOfWordsThatFitsNowhere) {
  Table table({"target", "density"});
  table.add_row({"normal:D", "a normal distribution with a mean and a variance of its own"});
  EXPECT_EQ(table.text(40),
            "target    density\n"
            "----------------------------------------\n"
            "normal:D  a normal distribution with a\n"
            "          mean and a variance of its own\n");
}

TEST(Wrapped, BreaksBetweenWords) {
  EXPECT_EQ(wrapped("one two  three", 7), "one two\nthree\n");
  EXPECT_EQ(wrapped("overlong words stay whole", 4), "overlong\nwords\nstay\nwhole\n");
  EXPECT_EQ(wrapped("", 10), "");
}

}  // namespace
}  // namespace crais
