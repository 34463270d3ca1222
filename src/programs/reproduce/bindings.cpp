#include "programs/reproduce/bindings.h"

#include <cmath>

#include "core/spec.h"
#include "io/json.h"
#include "util/error.h"
#include "util/format.h"

namespace crais {

using nlohmann::json;

std::string Bindings::text(const std::string& words) const {
  std::string done;
  size_t begin = 0;
  for (size_t open; (open = words.find('{', begin)) != std::string::npos;) {
    const size_t close = words.find('}', open);
    if (close == std::string::npos) throw data_error(where_ + ": no } in '" + words + "'");
    const std::string name = words.substr(open + 1, close - open - 1);
    done += words.substr(begin, open - begin);
    done += name.rfind('=', 0) == 0 ? significant(number(name.substr(1)), 3) : text_of(name, name);
    begin = close + 1;
  }
  return done + words.substr(begin);
}

std::string Bindings::text_of(const std::string& name, const std::string& otherwise) const {
  if (!has(name)) {
    if (otherwise != name) return otherwise;
    throw data_error(where_ + ": nothing is called '" + name + "'");
  }
  const json& value = at(name);
  if (!value.is_string()) return value.dump();
  const std::string words = value.get<std::string>();
  if (words.find("{" + name + "}") != std::string::npos)
    throw data_error(where_ + ": '" + name + "' refers to itself");
  return text(words);
}

double Bindings::number(const std::string& sum, const Measures& measures) const {
  double result = NAN;
  char by = 0;
  for (const std::string& word : split(sum, ' ')) {
    if (word.size() == 1 && std::string("+-*/").find(word) != std::string::npos) {
      by = word[0];
      continue;
    }
    const double value = term(word, measures);
    result = by == '+'   ? result + value
             : by == '-' ? result - value
             : by == '*' ? result * value
             : by == '/' ? result / value
                         : value;
  }
  return result;
}

double Bindings::term(const std::string& word, const Measures& measures) const {
  if (const auto measure = measures.find(word); measure != measures.end()) return measure->second;
  const size_t slash = word.find('/');
  const std::string name = word.substr(0, slash);
  if (!has(name)) {
    if (word.find_first_not_of("+-.0123456789e") == std::string::npos)
      return parse_number(word, where_);
    throw data_error(where_ + ": '" + word + "' is neither a measure nor a value");
  }
  const json::json_pointer path(slash == std::string::npos ? "" : word.substr(slash));
  if (!at(name).contains(path)) return NAN;
  const json& value = at(name).at(path);
  if (value.is_number()) return value.get<double>();
  return value.is_string() ? number(text(value.get<std::string>()), measures) : NAN;
}

int64_t Bindings::integer(const std::string& name, int64_t otherwise) const {
  return has(name) ? std::llround(number(name)) : otherwise;
}

}  // namespace crais
