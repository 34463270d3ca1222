#include "report/run_report.h"

#include <gtest/gtest.h>

#include <cmath>

namespace crais {
namespace {

using nlohmann::json;

/// Two problems under a shared plan of two transitions.
RunResults two_problems() {
  RunResults results;
  results.chunks[0].indices = {7, 9};
  ChunkRun run{.method = "ais",
               .log_normalizer = {-70, NAN},
               .std_error = {0.1, NAN},
               .ess = {0.8, 0.1},
               .flags = {0, kFewEffective | kTail}};
  results.chunks[0].runs = {run};
  results.state.plan = Plan{at::tensor({0.0, 0.5, 1.0}, at::kDouble).unsqueeze(1),
                            at::full({2, 1}, 0.3, at::kDouble), 16};
  return results;
}

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const size_t begin = text.find(before) + before.size();
  return text.substr(begin, text.find(after, begin) - begin);
}

json held_by(const std::string& html) {
  return json::parse(between(html, "type=\"application/json\" id=\"run\">", "</script>"));
}

TEST(RunPage, HoldsTheRun) {
  Table table("Mean");
  table.add_row({{"method", "ais"}, {"log p(x)", "-70.0"}});
  RunPage page{"A run", "image", "log p(x)", "eval-loglik a", {{table, {"A bound."}}}};
  const json summary = {{"results", {{{"log_likelihood", -70.123456789012345}}}}};
  const json run = held_by(html_of(page, two_problems(), summary));
  const json expected = {{"title", "A run"},
                         {"problem", "image"},
                         {"quantity", "log p(x)"},
                         {"command", "eval-loglik a"},
                         {"findings", json::array()},
                         {"pictures", json::object()},
                         {"particles", nullptr},
                         {"summary", summary},
                         {"indices", {7, 9}},
                         {"tables",
                          {{{"title", "Mean"},
                            {"headers", {"method", "log p(x)"}},
                            {"rows", json::array({json::array({"ais", "-70.0"})})},
                            {"notes", {"A bound."}}}}},
                         {"estimates",
                          {{{"method", "ais"},
                            {"value", {-70, nullptr}},
                            {"std_error", {0.1, nullptr}},
                            {"ess", {0.8, 0.1}},
                            {"flags", {"", "ess+tail"}}}}},
                         {"schedule",
                          {{"beta", {0.0, 0.5, 1.0}},
                           {"step_size", {0.3, 0.3}},
                           {"accept_prob", json::array()},
                           {"ess", json::array()},
                           {"divergence", json::array()},
                           {"shared", true}}}};
  EXPECT_EQ(run, expected);
}

TEST(RunPage, HostileNamesStayNames) {
  const std::string evil = "</script><script>alert(1)</script><!--\xff";
  RunPage page{evil, "image", "log p(x)"};
  page.findings = {evil};
  const std::string harmless = html_of({"", "image", "log p(x)"}, two_problems(), json::object());
  const std::string html = html_of(page, two_problems(), {{"path", evil}});
  const auto scripts = [](const std::string& text) {
    size_t count = 0;
    for (size_t i = text.find("<script"); i != std::string::npos; i = text.find("<script", i + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(scripts(html), scripts(harmless));
  EXPECT_EQ(held_by(html)["title"], evil.substr(0, evil.size() - 1) + "\ufffd");
}

TEST(RunPage, MayLoadNothing) {
  const std::string html = html_of({"", "image", "log p(x)"}, two_problems(), json::object());
  EXPECT_EQ(between(html, "content=\"default-src ", ";"), "'none'");
  const std::string own = html.substr(0, html.find("/*!")) + html.substr(html.find("id=\"run\""));
  for (const char* part : {"http:", "https:", "src=\"", "@RUN@", "@CHART_JS@"})
    EXPECT_EQ(own.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace crais
