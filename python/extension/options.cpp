// The programs' flags, which are the keyword arguments.
#include "cli/command_line.h"
#include "module.h"
#include "programs/estimate_logz/settings.h"
#include "programs/eval_loglik/settings.h"
#include "programs/train_vae/settings.h"

namespace crais {
namespace {

Synopsis synopsis_of(const std::string& program) {
  if (program == "eval-loglik") return eval_loglik_synopsis();
  if (program == "estimate-logz") return estimate_logz_synopsis();
  return train_vae_synopsis();
}

using Row =
    std::tuple<std::string, std::string, std::string, std::vector<std::string>, std::string>;

/// Group, name, value, defaults and help of each flag.
std::vector<Row> options(const std::string& program) {
  std::vector<Row> rows;
  for (const OptionGroup& group : synopsis_of(program).groups)
    for (const Option& o : group.options)
      rows.emplace_back(group.title, o.name, o.value_name, o.fallback, o.help);
  return rows;
}

}  // namespace

void bind_options(py::module_& m) {
  m.def("options", &options);
  m.def("with_flags", &with_flags);
}

}  // namespace crais
