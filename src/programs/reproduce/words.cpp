#include "programs/reproduce/words.h"

#include <cmath>

#include "core/spec.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

void check_depth(int depth, const std::string& words) {
  if (depth > 16) throw data_error("'" + words + "' refers to itself");
}

/// One word of a sum.
double term(const json& values, const std::string& word, const Measures& measures, int depth) {
  if (const auto measure = measures.find(word); measure != measures.end()) return measure->second;
  const size_t slash = word.find('/');
  const auto value = values.find(word.substr(0, slash));
  if (value == values.end()) {
    if (word.find_first_not_of("+-.0123456789e") == std::string::npos)
      return parse_number(word, "a sum");
    throw data_error("'" + word + "' is neither a measure nor a value");
  }
  const json::json_pointer path(slash == std::string::npos ? "" : word.substr(slash));
  const json entry = value->contains(path) ? value->at(path) : json();
  if (entry.is_string()) return number(values, text(values, entry, depth + 1), measures, depth + 1);
  return entry.is_number() ? entry.get<double>() : NAN;
}

}  // namespace

std::string text(const json& values, const std::string& words, int depth) {
  check_depth(depth, words);
  std::string done;
  size_t begin = 0;
  for (size_t open; (open = words.find('{', begin)) != std::string::npos;) {
    const size_t close = words.find('}', open);
    if (close == std::string::npos) throw data_error("no } in '" + words + "'");
    const std::string name = words.substr(open + 1, close - open - 1);
    done += words.substr(begin, open - begin);
    begin = close + 1;
    if (name.starts_with('=')) {
      done += significant(number(values, name.substr(1), {}, depth + 1), 3);
      continue;
    }
    if (!values.contains(name)) throw data_error("nothing is called '" + name + "'");
    const json& value = values.at(name);
    done += value.is_string() ? text(values, value, depth + 1) : value.dump();
  }
  return done + words.substr(begin);
}

double number(const json& values, const std::string& sum, const Measures& measures, int depth) {
  check_depth(depth, sum);
  double result = NAN;
  char by = 0;
  for (const std::string& word : split(sum, ' ')) {
    if (word.size() == 1 && std::string("+-*/").find(word) != std::string::npos) {
      by = word[0];
      continue;
    }
    const double value = term(values, word, measures, depth);
    result = by == '+'   ? result + value
             : by == '-' ? result - value
             : by == '*' ? result * value
             : by == '/' ? result / value
                         : value;
  }
  return result;
}

int64_t integer(const json& values, const std::string& name, int64_t otherwise) {
  return values.contains(name) ? std::llround(number(values, name)) : otherwise;
}

}  // namespace crais
