#include "report/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "support/expect_error.h"

namespace crais {
namespace {

using Rows = std::vector<Table::Row>;

/// The first of the rows holds the headers.
Table table_of(const Rows& rows, const std::string& title = "", size_t names = 0) {
  Table table(title, names);
  for (size_t r = 1; r < rows.size(); ++r) {
    Table::NamedCells cells;
    for (size_t c = 0; c < rows[r].size(); ++c) cells.emplace_back(rows[0][c], rows[r][c]);
    table.add_row(cells);
  }
  return table;
}

TEST(Table, AlignsNumbersRightAndWordsLeft) {
  EXPECT_EQ(table_of({{"method", "log p(x)", "ESS", "note"},
                      {"ais", "-87.31 +- 0.21", "0.62", "lower bound"},
                      {"iwae-5000", "-9.5 +- 1.3", "-", "3 x"},
                      {"elbo", "nan", "", ""}},
                     "100 images")
                .text(),
            "100 images\n"
            "method           log p(x)   ESS  note\n"
            "--------------------------------------------\n"
            "ais        -87.31 +- 0.21  0.62  lower bound\n"
            "iwae-5000     -9.5 +- 1.3     -  3 x\n"
            "elbo                  nan\n");
}

TEST(Table, CountsCharactersNotBytes) {
  const std::string text =
      table_of({{"name", "n"}, {"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", "1"}, {"abc", "2"}})
          .text();
  EXPECT_NE(text.find("\nabc    2\n"), std::string::npos) << text;
}

TEST(Table, RejectsARowOfOtherColumns) {
  Table table;
  table.add_row({{"a", "1"}, {"b", "2"}});
  expect_error(ErrorKind::kInternal, {"other columns"}, [&] { table.add_row({{"a", "x"}}); });
}

size_t widest(const std::string& text) {
  size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST(Table, FitsATerminalInParts) {
  const Table table = table_of({{"method", "base", "log p(x)", "MC SE", "evaluations"},
                                {"ais", "laplace", "-85.108", "0.0041", "784"},
                                {"iwae:5000", "encoder", "-88.2", "0.1", "5,000"}},
                               "Nats");
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
            "iwae:5000  encoder        5,000\n");
  EXPECT_EQ(table.text(0), table.text(1000));
  const Rows by_method = {{"method", "base", "log p(x)"}, {"ais", "laplace", "-85.108"}};
  EXPECT_EQ(table_of(by_method, "", /*names=*/1).text(16),
            "method  base\n"
            "---------------\n"
            "ais     laplace\n"
            "\n"
            "method  log p(x)\n"
            "----------------\n"
            "ais      -85.108\n");
  EXPECT_EQ(table_of(by_method, "", /*names=*/1).text(23),
            "method base    log p(x)\n"
            "-----------------------\n"
            "ais    laplace  -85.108\n");
  for (int width = 40; width < 100; ++width)
    EXPECT_LE(widest(table.text(width)), static_cast<size_t>(width)) << table.text(width);
}

TEST(Table, BreaksAColumnOfWordsThatFitsNowhere) {
  const Table table =
      table_of({{"target", "density"},
                {"normal:D", "a normal distribution with a mean and a variance of its own"}});
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
