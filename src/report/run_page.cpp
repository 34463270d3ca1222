#include "report/run_page.h"

#include "evaluation/comparison.h"

namespace crais {

extern const char* const kPageTemplate;  // page.html with Chart.js (cmake/report_page.cmake)

namespace {

using nlohmann::json;

json estimates_of(const MethodTable& table) {
  const ImageEstimates means(table);
  json flags = json::array();
  for (size_t i = 0; i < means.value.size(); ++i) {
    int64_t any = 0;
    for (const auto& repeat : table.flags) any |= repeat[i];
    flags.push_back(flag_words(any));
  }
  return {{"method", table.method},
          {"value", means.value},
          {"std_error", means.std_error},
          {"ess", to_column(table.has("ess") ? table.matrix("ess").mean(0) : at::Tensor())},
          {"flags", flags}};
}

/// The plan's first column, up to beta = 1: the rest pads short columns.
json schedule_of(const Plan& plan) {
  const int64_t moves = (plan.betas.select(1, 0) < 1).sum().item<int64_t>();
  const auto first = [](const at::Tensor& values, int64_t count) {
    return values.defined() ? to_column(values.select(1, 0).slice(0, 0, count))
                            : std::vector<double>();
  };
  return {{"beta", first(plan.betas, moves + 1)},
          {"step_size", first(plan.step_sizes, moves)},
          {"accept_prob", first(plan.accept_prob, moves)},
          {"ess", first(plan.ess, moves + 1)},
          {"divergence", first(plan.divergence, moves + 1)}};
}

}  // namespace

std::string html_of(const RunPage& page, const RunResults& results, const json& summary) {
  json run = {{"title", page.title},       {"problem", page.problem},
              {"quantity", page.quantity}, {"command", page.command},
              {"findings", page.findings}, {"pictures", page.pictures},
              {"summary", summary},        {"indices", indices_of(results)},
              {"tables", json::array()},   {"estimates", json::array()}};
  if (!page.particles.is_null()) run["particles"] = page.particles;
  for (const auto& [table, note] : page.tables)
    run["tables"].push_back({{"title", table.title()},
                             {"headers", table.headers()},
                             {"rows", table.rows()},
                             {"note", note}});
  for (const MethodTable& table : tables(results)) run["estimates"].push_back(estimates_of(table));
  const auto& plan = results.state.plan || results.chunks.empty()
                         ? results.state.plan
                         : results.chunks.begin()->second.plan;
  if (plan) {
    run["schedule"] = schedule_of(*plan);
    run["schedule"]["shared"] = results.state.plan.has_value();
  }
  std::string text = run.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
  // A "</script>" in a name would end the script that holds it.
  for (size_t i = text.find('<'); i != std::string::npos; i = text.find('<', i))
    text.replace(i, 1, "\\u003c");
  static const std::string kPlace = "@RUN@";
  std::string html = kPageTemplate;
  return html.replace(html.find(kPlace), kPlace.size(), text);
}

}  // namespace crais
