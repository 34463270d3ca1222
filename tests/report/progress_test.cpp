#include "report/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace crais {
namespace {

/// A clock that is set by hand and a screen that remembers.
struct Stage {
  double now = 100.0;
  std::vector<std::string> written = {};

  ProgressOptions options(int width) {
    return {.label = "AIS",
            .unit = "images",
            .write = [this](std::string_view text) { written.emplace_back(text); },
            .width = [width] { return width; },
            .seconds = [this] { return now; }};
  }
};

/// The line after 64 seconds with 512 images done.
std::string line(int width, int64_t before, int64_t total, int64_t done = 512,
                 const std::string& status = "log p -87.31 +- 0.21") {
  Stage stage;
  ProgressLine progress(stage.options(width));
  progress.begin(before, total);
  stage.now += 64;
  progress.update(done, status);
  return stage.written.back();
}

TEST(ProgressLine, SaysHowFarHowFastHowLong) {
  const std::string rest = "512/1,024 images  8.00 images/s  1 min 04 s left  log p -87.31 +- 0.21";
  EXPECT_EQ(line(0, 0, 1024), "AIS  " + rest + "\n");
  EXPECT_EQ(line(100, 0, 1024), "\rAIS  [==========>         ]  " + rest + "\x1b[K");
  EXPECT_EQ(line(85, 0, 1024), "\rAIS  " + rest + "\x1b[K");  // no room for a bar
  // A resumed run rates only its own work: 64 in 64 s, 512 to go.
  EXPECT_EQ(line(0, 448, 1024),
            "AIS  512/1,024 images  1.00 images/s  8 min 32 s left  log p -87.31 +- 0.21\n");
  EXPECT_EQ(line(0, 0, 0), "AIS  512 images  8.00 images/s  log p -87.31 +- 0.21\n");
  EXPECT_EQ(line(0, 0, 1024, 0, ""), "AIS  0/1,024 images\n");
  for (int width = 1; width < 120; ++width)
    EXPECT_LE(line(width, 0, 1024).size(), static_cast<size_t>(std::max(1, width - 1)) + 4);
}

TEST(ProgressLine, WritesPlainLinesNowAndThen) {
  Stage stage;
  {
    ProgressLine progress(stage.options(0));
    progress.begin(0, 1000);
    for (int second = 1; second <= 30; ++second) {
      stage.now = 100.0 + second;
      progress.update(10 * second, "ESS 0.62");
    }
    ASSERT_EQ(stage.written.size(), 3u);  // after 2, 12 and 22 seconds
    EXPECT_EQ(stage.written[0], "AIS  20/1,000 images  10.0 images/s  1 min 38 s left  ESS 0.62\n");
    EXPECT_EQ(stage.written[1].substr(0, 10), "AIS  120/1");
  }
  ASSERT_EQ(stage.written.size(), 4u);
  EXPECT_EQ(stage.written[3], "AIS  300/1,000 images  10.0 images/s  in 30 s  ESS 0.62\n");
}

TEST(ProgressLine, RedrawsOneLineOnATerminal) {
  Stage stage;
  {
    ProgressLine progress(stage.options(80));
    progress.begin(0, 1000);
    ASSERT_EQ(stage.written.size(), 1u);  // at once, before the first chunk is done
    stage.now += 0.05;
    progress.update(1, "");
    EXPECT_EQ(stage.written.size(), 1u);  // too soon
    stage.now += 0.1;
    progress.update(3, "");
    ASSERT_EQ(stage.written.size(), 2u);
    EXPECT_NE(stage.written[1].find("3/1,000 images"), std::string::npos);
    progress.finish();
    progress.finish();
    progress.update(4, "");
  }
  ASSERT_EQ(stage.written.size(), 3u);
  for (const std::string& text : stage.written) {
    EXPECT_EQ(text.front(), '\r');
    EXPECT_EQ(text.back() == '\n', &text == &stage.written.back());
  }
}

TEST(ProgressLine, IsSilentIfItIsOffOrHasNotBegun) {
  for (const int width : {0, 80}) {
    Stage stage;
    ProgressOptions off = stage.options(width);
    off.enabled = false;
    ProgressLine quiet(off), early(stage.options(width));
    quiet.begin(0, 10);
    stage.now += 60;
    for (ProgressLine* line : {&quiet, &early}) {
      line->update(10, "x");
      line->finish();
    }
    EXPECT_TRUE(stage.written.empty());
  }
}

TEST(ProgressLine, AFailingScreenDoesNotStopTheWork) {
  Stage stage;
  ProgressOptions options = stage.options(0);
  options.write = [](std::string_view) { throw std::runtime_error("gone"); };
  ProgressLine progress(std::move(options));
  progress.begin(0, 0);
  stage.now += 60;
  EXPECT_NO_THROW(progress.update(1, ""));
  EXPECT_NO_THROW(progress.finish());
}

}  // namespace
}  // namespace crais
