// The programs' flags, which are the keyword arguments.
#include "module.h"
#include "programs/estimate_logz/logz_run.h"
#include "programs/eval_loglik/settings.h"
#include "programs/train_vae/train_vae.h"

namespace crais {
namespace {

Synopsis synopsis_of(const std::string& program) {
  if (program == "eval-loglik") return eval_loglik_synopsis();
  if (program == "estimate-logz") return estimate_logz_synopsis();
  return train_vae_synopsis();
}

/// Each flag; its values are of the Python type `type`.
Json options(const std::string& program) {
  const Synopsis synopsis = synopsis_of(program);
  const CommandLine cli(synopsis, std::vector<std::string>(synopsis.min_operands, "-"), {});
  Json rows = Json::array();
  for (const OptionGroup& group : cli.synopsis().groups)
    for (const Option& o : group.options) {
      const char* type = std::vector{"bool", "int", "float", "str"}[static_cast<size_t>(o.kind)];
      rows.push_back({{"group", group.title},
                      {"name", o.name},
                      {"value", o.value_name},
                      {"default", o.fallback},
                      {"help", o.help},
                      {"type", type},
                      {"many", o.many},
                      {"choices", choices_of(o.value_name)},
                      {"word", word_of(o.value_name)}});
    }
  return rows;
}

}  // namespace

Functions functions_of_options() {
  return {{"options", [](const Json& a, const Run&) { return options(a[0]); }},
          {"with_flags", [](const Json& a, const Run&) { return Json(with_flags(a[0], a[1])); }}};
}

}  // namespace crais
