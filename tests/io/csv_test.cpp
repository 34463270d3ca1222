#include "io/csv.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/expect_error.h"

namespace crais {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(CsvWriter, WritesExactNumbersAndQuotesTexts) {
  CsvWriter csv({"index", "log_p", "note"});
  csv.add_row({0, -87.31, "plain"});
  csv.add_row({int64_t{1}, 0.1f, "a, b"});
  csv.add_row({2, std::nan(""), "say \"hi\"\nthere"});
  csv.add_row({3u, -kInfinity, std::string()});
  csv.add_row({true, 1.0 / 3, "#1"});
  EXPECT_EQ(csv.text(),
            "index,log_p,note\n"
            "0,-87.31,plain\n"
            "1,0.1,\"a, b\"\n"
            "2,nan,\"say \"\"hi\"\"\nthere\"\n"
            "3,-inf,\n"
            "1,0.3333333333333333,\"#1\"\n");
}

TEST(CsvReader, ReadsBackWhatTheWriterWrote) {
  const std::vector<double> numbers = {1.0 / 3, -1e-300, kInfinity, -kInfinity, std::exp(1.0)};
  const std::vector<std::string> texts = {"a,b", "\"", "two\nlines", " spaced ", "#x"};
  CsvWriter csv({"x", "t"});
  for (size_t i = 0; i < numbers.size(); ++i) csv.add_row({numbers[i], texts[i]});
  const CsvTable table = parse_csv(csv.text(), "t.csv");
  EXPECT_EQ(table.numbers("x"), numbers);
  EXPECT_EQ(table.texts(1), texts);
}

TEST(CsvReader, ReadsOneColumnWithoutAName) {
  const CsvTable table = parse_csv("# betas\r\n0\r\n\r\n 0.25 \r\n1", "b.txt");
  EXPECT_EQ(table.numbers("beta"), (std::vector<double>{0.0, 0.25, 1.0}));
}

void expect_data_error(const std::string& text, const std::vector<std::string>& words) {
  expect_error(ErrorKind::kData, words, [&] { parse_csv(text, "b.csv").numbers("beta"); });
}

TEST(CsvReader, NamesTheLineOfWhatIsWrong) {
  expect_data_error("beta\n0\n\nabc\n", {"b.csv", "line 4", "beta", "'abc' is not a number"});
  expect_data_error("beta\n0.5x\n", {"line 2", "'0.5x' is not a number"});
  expect_data_error("beta,n\n0,1\n0.5\n", {"line 3", "1 values", "2"});
  expect_data_error("beta\n\"0\n1\n", {"line 2", "never closed"});
  expect_data_error("beta\n0\"1\n", {"line 2", "quote"});
  expect_data_error("beta,n\n\"0\"1,2\n", {"line 2", "closing quote"});
  expect_data_error("beta,beta\n0,1\n", {"line 1", "'beta'"});
  expect_data_error("a,n\n\"x\ny\",1\n2\n", {"line 4", "1 values"});
}

TEST(CsvReader, NamesAColumnThatIsNotThere) {
  expect_data_error("step,b\n0,0\n", {"b.csv", "'beta'", "step, b"});
  expect_data_error("0,0\n1,1\n", {"'beta'", "no names"});
}

TEST(CsvReader, TakesTextAsOtherProgramsSaveIt) {
  const std::string mark = "\xEF\xBB\xBF";
  for (const std::string& text :
       {mark + "beta,x\n0.5,1\n1,2\n", std::string("beta,x\r0.5,1\r1,2\r"),
        std::string("beta,x\r\n0.5,1\r\n1,2"), mark + "beta,x\r0.5,1\r1,2"})
    EXPECT_EQ(parse_csv(text, "FILE").numbers("beta"), (std::vector<double>{0.5, 1})) << text;
  EXPECT_EQ(parse_csv(mark + "3\n4\n", "FILE").numbers("any"), (std::vector<double>{3, 4}));
}

TEST(CsvReader, RejectsBytesThatNoTextHas) {
  const std::string utf16("b\0e\0t\0a\0\n\0", 10);
  expect_error(ErrorKind::kData, {"FILE", "NUL", "UTF-8"}, [&] { parse_csv(utf16, "FILE"); });
}

TEST(CsvReader, TakesEveryLineForDataWhereItIsTold) {
  const std::string text = "1,R\n2,M\n";
  EXPECT_EQ(parse_csv(text, "s.csv").rows(), 1u);
  const CsvTable table = parse_csv(text, "s.csv", CsvNames::kNone);
  EXPECT_EQ(table.rows(), 2u);
  EXPECT_EQ(table.num_columns(), 2u);
  EXPECT_EQ(table.numbers(0), (std::vector<double>{1, 2}));
  EXPECT_EQ(table.texts(1), (std::vector<std::string>{"R", "M"}));
  EXPECT_EQ(table.line_of(1), 2u);
  expect_error(ErrorKind::kData, {"s.csv", "line 1", "column 2", "'R' is not a number"},
               [&] { table.numbers(1); });
}

}  // namespace
}  // namespace crais
