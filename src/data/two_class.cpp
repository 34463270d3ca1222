#include "data/two_class.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <vector>

#include "core/spec.h"
#include "data/images.h"
#include "io/csv.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

namespace fs = std::filesystem;

std::string find(const std::string& name, const std::string& data_dir) {
  const std::map<std::string, std::string> short_names = {{"pima", "pima-indians-diabetes.csv"},
                                                          {"sonar", "sonar.all-data.csv"}};
  const auto short_name = short_names.find(name);
  const fs::path file = short_name == short_names.end() ? name : short_name->second;
  std::vector<fs::path> candidates = {file};
  for (const fs::path& root : data_roots(data_dir)) {
    candidates.push_back(root / file);
    candidates.push_back(root / "uci" / file);
  }
  std::vector<std::string> tried;
  for (const fs::path& candidate : candidates) {
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored)) return candidate.string();
    if (tried.empty() || tried.back() != candidate.string()) tried.push_back(candidate.string());
  }
  throw no_input_error("no such file: ", name, "; tried ", join(tried));
}

std::string at_line(const std::string& source, const CsvTable& table, size_t row) {
  return source + ": line " + std::to_string(table.line_of(row)) + ": ";
}

at::Tensor standardised(const CsvTable& table, size_t column, const std::string& source) {
  const std::vector<double> values = table.numbers(column);
  const std::string name = "column " + std::to_string(column + 1);
  for (size_t r = 0; r < values.size(); ++r)
    if (!std::isfinite(values[r]))
      throw data_error(at_line(source, table, r), name, ": a value is missing (nan or inf)");
  const at::Tensor x = at::tensor(values, at::kDouble);
  if ((x == x[0]).all().item<bool>())
    throw data_error(source, ": ", name,
                     " is the same in every line; a feature that never changes cannot be "
                     "standardised, leave it out");
  return (x - x.mean(0)) / x.std(0, /*unbiased=*/false);
}

at::Tensor signs(const CsvTable& table, const std::string& source) {
  std::vector<std::string> classes = table.texts(table.num_columns() - 1);
  std::transform(classes.begin(), classes.end(), classes.begin(), trimmed);
  std::vector<double> labels;
  std::string other;
  for (size_t r = 0; r < classes.size(); ++r) {
    if (classes[r].empty()) throw data_error(at_line(source, table, r), "the class is missing");
    labels.push_back(classes[r] == classes[0] ? 1.0 : -1.0);
    if (classes[r] == classes[0] || classes[r] == other) continue;
    if (!other.empty())
      throw data_error(at_line(source, table, r), "a third class, '", classes[r], "', beside '",
                       classes[0], "' and '", other,
                       "'; the last column must hold two (and the first line be no header)");
    other = classes[r];
  }
  if (other.empty())
    throw data_error(source, ": lines ", table.line_of(0), " to ", table.line_of(table.rows() - 1),
                     ": only one class, '", classes[0], "'; the last column must hold two");
  return at::tensor(labels, at::kDouble);
}

}  // namespace

TwoClassData read_two_class(const std::string& name, const std::string& data_dir) {
  const std::string source = find(name, data_dir);
  const CsvTable table = read_csv(source, CsvNames::kNone);
  if (table.num_columns() < 2)
    throw data_error(at_line(source, table, 0),
                     "one column; features and a class are needed, separated by commas");
  std::vector<at::Tensor> features;
  for (size_t c = 0; c + 1 < table.num_columns(); ++c)
    features.push_back(standardised(table, c, source));
  return {at::stack(features, 1), signs(table, source), source};
}

}  // namespace crais
