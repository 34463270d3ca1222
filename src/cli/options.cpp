#include "cli/options.h"

#include <limits>
#include <utility>

namespace crais::option {
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

}  // namespace

Option flag(std::string name, std::string help) {
  return make(Option::Kind::kFlag, std::move(name), "", {}, std::move(help));
}

Option integer(std::string name, std::string value_name, std::vector<std::string> fallback,
               std::string help) {
  return make(Option::Kind::kInteger, std::move(name), std::move(value_name), std::move(fallback),
              std::move(help));
}

Option number(std::string name, std::string value_name, std::vector<std::string> fallback,
              std::string help) {
  return make(Option::Kind::kNumber, std::move(name), std::move(value_name), std::move(fallback),
              std::move(help));
}

Option text(std::string name, std::string value_name, std::vector<std::string> fallback,
            std::string help) {
  return make(Option::Kind::kText, std::move(name), std::move(value_name), std::move(fallback),
              std::move(help));
}

Option device() {
  return text("device", "D", {"auto"},
              "auto, cpu, cuda or cuda:N; auto uses a GPU if there is one");
}
Option threads(int64_t fallback) {
  return integer("threads", "N", {std::to_string(fallback)},
                 "CPU threads; 0 means one for each core")
      .between(0, 4096);
}
Option seed(int64_t fallback) {
  return integer("seed", "N", {std::to_string(fallback)}, "seed of all random numbers")
      .between(0, static_cast<double>(std::numeric_limits<int64_t>::max()));
}
Option quiet() { return flag("quiet", "no progress line on stderr"); }

}  // namespace crais::option
