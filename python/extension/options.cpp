// The programs' flags, which are the keyword arguments.
#include <cmath>

#include "module.h"
#include "programs/estimate_logz/logz_run.h"
#include "programs/eval_loglik/settings.h"
#include "programs/train_vae/train_vae.h"

namespace crais {
namespace {

nlohmann::json value_of(const py::handle& given) {
  if (py::isinstance<py::bool_>(given)) return given.cast<bool>();
  if (py::isinstance<py::int_>(given) && PyLong_AsLongLong(given.ptr()) != -1)
    return given.cast<int64_t>();
  PyErr_Clear();  // too large
  if (py::isinstance<py::float_>(given) && std::isfinite(given.cast<double>()))
    return given.cast<double>();
  return py::module_::import("builtins").attr("format")(given).cast<std::string>();
}

Synopsis synopsis_of(const std::string& program) {
  if (program == "eval-loglik") return eval_loglik_synopsis();
  if (program == "estimate-logz") return estimate_logz_synopsis();
  return train_vae_synopsis();
}

/// Each flag, as a dictionary; its values are of the Python type `type`.
std::vector<py::dict> options(const std::string& program) {
  using namespace py::literals;
  const Synopsis synopsis = synopsis_of(program);
  const CommandLine cli(synopsis, std::vector<std::string>(synopsis.min_operands, "-"), {});
  std::vector<py::dict> rows;
  for (const OptionGroup& group : cli.synopsis().groups)
    for (const Option& o : group.options) {
      const char* type = std::vector{"bool", "int", "float", "str"}[static_cast<size_t>(o.kind)];
      rows.push_back(py::dict("group"_a = group.title, "name"_a = o.name, "value"_a = o.value_name,
                              "default"_a = o.fallback, "help"_a = o.help, "type"_a = type,
                              "many"_a = o.many, "choices"_a = choices_of(o.value_name),
                              "word"_a = word_of(o.value_name)));
    }
  return rows;
}

}  // namespace

FlagValues values_of(const Options& options) {
  FlagValues values;
  for (const auto& [name, given] : options)
    for (const py::object& one : given) values[name].push_back(value_of(one));
  return values;
}

void bind_options(py::module_& m) {
  m.def("options", &options);
  m.def("with_flags", &with_flags);
}

}  // namespace crais
