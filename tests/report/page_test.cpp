#include "report/page.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "io/json.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace crais {
namespace {

using testing::TemporaryFolder;

bool has_gnuplot() { return std::system("command -v gnuplot >/dev/null 2>&1") == 0; }

Plot two_curves() {
  Plot plot{"Error's <decline>", "evaluations", "error, nats", true, true, {}};
  plot.series.push_back({"one", {64, 256, 1024}, {1.0, 0.1, 0.01}, {0.1, 0.01, 0.5}});
  plot.series.push_back({"it's two", {64, 256, 1024}, {2.0, -1.0, INFINITY}, {}});
  return plot;
}

TEST(Page, WritesTablesForPeopleAndPrograms) {
  const TemporaryFolder folder;
  Page page(folder.path(), "A <title>");
  page.paragraph("1 < 2 & 3");
  page.table("figures", "Figures", {"arm", "count", "value"},
             {{"a, b", int64_t{12345}, Cell::number(0.123456789, 3)},
              {"c", int64_t{1}, Cell::number(NAN, 3)}});
  page.finish();
  EXPECT_EQ(read_file(folder.path() / "figures.csv"),
            "arm,count,value\n\"a, b\",12345,0.123456789\nc,1,nan\n");
  const nlohmann::json rows = read_json(folder.path() / "figures.json");
  EXPECT_EQ(rows[0]["value"].get<double>(), 0.123456789);
  EXPECT_EQ(rows[0]["count"].get<int64_t>(), 12345);
  EXPECT_TRUE(rows[1]["value"].is_null());
  const std::string html = read_file(folder.path() / "index.html");
  for (const char* part :
       {"A &lt;title&gt;", "1 &lt; 2 &amp; 3", "<td>12,345</td>", "<td>0.123</td>"})
    EXPECT_NE(html.find(part), std::string::npos) << part;
}

TEST(Page, ShowsPlotsInPlace) {
  if (!has_gnuplot()) GTEST_SKIP() << "no gnuplot";
  const TemporaryFolder folder;
  Page page(folder.path(), "Plots");
  page.plot("curves", two_curves());
  page.finish();
  const std::string svg = read_file(folder.path() / "curves.svg");
  EXPECT_NE(svg.find("it's two"), std::string::npos);
  EXPECT_EQ(read_file(folder.path() / "curves.png").substr(1, 3), "PNG");
  const std::string html = read_file(folder.path() / "index.html");
  EXPECT_NE(html.find("<svg"), std::string::npos);
  EXPECT_EQ(html.find("<?xml"), std::string::npos);
}

TEST(Plot, LeavesNothingBehindWithoutGnuplot) {
  const TemporaryFolder folder;
  const std::string path = std::getenv("PATH") ? std::getenv("PATH") : "";
  setenv("PATH", folder.path().c_str(), 1);
  const bool drawn = write_plot(folder.path() / "curves", two_curves());
  setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(drawn);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace crais
