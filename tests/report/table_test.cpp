#include "report/table.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace crais {
namespace {

TEST(Table, AlignsNumbersRightAndWordsLeft) {
  Table table({"method", "log p(x)", "ESS", "note"}, "100 images");
  table.add_row({"ais", "-87.31 +- 0.21", "0.62", "lower bound"});
  table.add_row({"iwae-5000", "-9.5 +- 1.3", "-", "3 x"});
  table.add_rule();
  table.add_row({"elbo", "nan", "", ""});
  EXPECT_EQ(table.text(),
            "100 images\n"
            "method           log p(x)   ESS  note\n"
            "--------------------------------------------\n"
            "ais        -87.31 +- 0.21  0.62  lower bound\n"
            "iwae-5000     -9.5 +- 1.3     -  3 x\n"
            "--------------------------------------------\n"
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

}  // namespace
}  // namespace crais
