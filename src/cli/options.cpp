#include "cli/options.h"

#include <limits>
#include <utility>

#include "core/spec.h"
#include "util/format.h"

namespace crais {

namespace option {
namespace {

Option make(Option::Kind kind, std::string name, std::string value_name,
            std::vector<std::string> fallback, std::string help) {
  Option option;
  option.kind = kind;
  option.name = std::move(name);
  option.value_name = std::move(value_name);
  option.fallback = std::move(fallback);
  option.help = std::move(help);
  return option;
}

Option repeatable(Option option) {
  option.many = option.split = true;
  return option;
}

template <typename Values, typename Shown>
std::vector<std::string> shown(const Values& values, Shown show) {
  std::vector<std::string> texts;
  texts.reserve(values.size());
  for (const auto& value : values) texts.push_back(show(value));
  return texts;
}

template <typename T>
std::vector<T> listed(const std::optional<T>& value) {
  return value ? std::vector<T>{*value} : std::vector<T>{};
}

const auto kWhole = [](int64_t value) { return std::to_string(value); };

}  // namespace

Option flag(std::string name, std::string help) {
  return make(Option::Kind::kFlag, std::move(name), "", {}, std::move(help));
}

Option integers(std::string name, std::string value_name, const std::vector<int64_t>& fallback,
                std::string help) {
  return repeatable(make(Option::Kind::kInteger, std::move(name), std::move(value_name),
                         shown(fallback, kWhole), std::move(help)));
}

Option numbers(std::string name, std::string value_name, const std::vector<double>& fallback,
               std::string help) {
  return repeatable(make(Option::Kind::kNumber, std::move(name), std::move(value_name),
                         shown(fallback, [](double value) { return shortest(value); }),
                         std::move(help)));
}

Option texts(std::string name, std::string value_name, std::vector<std::string> fallback,
             std::string help) {
  return repeatable(make(Option::Kind::kText, std::move(name), std::move(value_name),
                         std::move(fallback), std::move(help)));
}

Option integer(std::string name, std::string value_name, std::optional<int64_t> fallback,
               std::string help) {
  return make(Option::Kind::kInteger, std::move(name), std::move(value_name),
              shown(listed(fallback), kWhole), std::move(help));
}

Option number(std::string name, std::string value_name, std::optional<double> fallback,
              std::string help) {
  return make(Option::Kind::kNumber, std::move(name), std::move(value_name),
              shown(listed(fallback), [](double value) { return shortest(value); }),
              std::move(help));
}

Option text(std::string name, std::string value_name, const std::optional<std::string>& fallback,
            std::string help) {
  return make(Option::Kind::kText, std::move(name), std::move(value_name), listed(fallback),
              std::move(help));
}

Option device() {
  return text("device", "D", "auto", "auto, cpu, cuda or cuda:N; auto takes a GPU if there is one");
}
Option threads(int64_t fallback) {
  return integer("threads", "N", fallback, "CPU threads; 0 is one per core").between(0, 4096);
}
Option seed(int64_t fallback) {
  return integer("seed", "N", fallback, "decides every random number")
      .between(0, static_cast<double>(std::numeric_limits<int64_t>::max()));
}
Option quiet() { return flag("quiet", "no progress line on stderr"); }

}  // namespace option
}  // namespace crais
