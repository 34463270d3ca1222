// Tables, with and without names of columns.
#include "io/csv.h"

#include "harness.h"

void crais::fuzz::read(std::string_view input) {
  for (const CsvNames names : {CsvNames::kDetect, CsvNames::kNone})
    attempt([&] {
      const CsvTable table = parse_csv(std::string(input), "input", names);
      attempt([&] { table.numbers("beta"); });
      for (size_t c = 0; c < table.num_columns() && c < 4; ++c) {
        table.texts(c);
        attempt([&] { table.numbers(c); });
      }
    });
}
