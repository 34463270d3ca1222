#include "cli/options.h"

#include <limits>
#include <utility>

namespace crais::option {

Option flag(std::string name, std::string help) {
  return {std::move(name), "", {}, std::move(help), Option::Kind::kFlag};
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
