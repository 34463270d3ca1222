#include "report/progress.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace crais {
namespace {

/// A clock that is set by hand and a screen that remembers.
struct Stage {
  double now = 100.0;
  std::vector<std::string> written;

  ProgressBarOptions options(bool terminal, int64_t total = 1000) {
    ProgressBarOptions options;
    options.label = "AIS";
    options.total = total;
    options.write = [this](std::string_view text) { written.emplace_back(text); };
    options.seconds = [this] { return now; };
    options.width = 80;
    options.terminal = terminal ? 1 : 0;
    return options;
  }
};

ProgressLine line() {
  ProgressLine line;
  line.label = "AIS";
  line.done = 512;
  line.total = 1024;
  line.unit = "images";
  line.status = "log p -87.31 +- 0.21";
  line.elapsed = 64.0;
  return line;
}

TEST(ProgressLine, SaysHowFarHowFastHowLong) {
  EXPECT_EQ(render_progress(line(), -1),
            "AIS  512/1,024 images  8.00 images/s  1 min 04 s left  log p -87.31 +- 0.21");
}

TEST(ProgressLine, FillsTheWidthWithABar) {
  const std::string rest = "512/1,024 images  8.00 images/s  1 min 04 s left  log p -87.31 +- 0.21";
  EXPECT_EQ(render_progress(line(), 97), "AIS  [=========>        ]  " + rest);
  EXPECT_EQ(render_progress(line(), 84), "AIS  " + rest);  // no room for a bar
}

TEST(ProgressLine, NeverExceedsTheWidth) {
  for (int width = 1; width < 120; ++width)
    EXPECT_LE(render_progress(line(), width).size(), static_cast<size_t>(width));
}

TEST(ProgressLine, AResumedRunRatesOnlyItsOwnWork) {
  ProgressLine resumed = line();
  resumed.done_before = 448;  // 64 in 64 s, 512 to go
  EXPECT_EQ(render_progress(resumed, -1),
            "AIS  512/1,024 images  1.00 images/s  8 min 32 s left  log p -87.31 +- 0.21");
}

TEST(ProgressLine, WithoutATotalPromisesNoEnd) {
  ProgressLine open = line();
  open.total = 0;
  EXPECT_EQ(render_progress(open, -1), "AIS  512 images  8.00 images/s  log p -87.31 +- 0.21");
}

TEST(ProgressLine, WithoutWorkPromisesNothing) {
  ProgressLine fresh = line();
  fresh.done = 0;
  fresh.status.clear();
  EXPECT_EQ(render_progress(fresh, -1), "AIS  0/1,024 images");
}

TEST(ProgressBar, WritesPlainLinesNowAndThen) {
  Stage stage;
  {
    ProgressBar progress(stage.options(false));
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

TEST(ProgressBar, RedrawsOneLineOnATerminal) {
  Stage stage;
  {
    ProgressBar progress(stage.options(true));
    ASSERT_EQ(stage.written.size(), 1u);  // at once, before the first chunk is done
    stage.now += 0.05;
    progress.advance();
    EXPECT_EQ(stage.written.size(), 1u);  // too soon
    stage.now += 0.1;
    progress.advance(2);
    ASSERT_EQ(stage.written.size(), 2u);
    EXPECT_NE(stage.written[1].find("3/1,000 images"), std::string::npos);
    progress.finish();
    progress.finish();
    progress.advance();
  }
  std::string all;
  for (const auto& text : stage.written) all += text;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 1);  // one line, closed once
  EXPECT_EQ(all.back(), '\n');
  for (size_t i = 0; i + 1 < stage.written.size(); ++i) {
    EXPECT_EQ(stage.written[i].front(), '\r');
    EXPECT_LE(stage.written[i].size(), 79u + 4u);  // "\r" and the "clear to the end" besides
  }
}

TEST(ProgressBar, QuietShowsNothing) {
  for (const bool terminal : {false, true}) {
    Stage stage;
    ProgressBarOptions options = stage.options(terminal);
    options.enabled = false;
    {
      ProgressBar progress(std::move(options));
      stage.now += 60;
      progress.update(10, "x");
    }
    EXPECT_TRUE(stage.written.empty());
  }
}

TEST(ProgressBar, CountsEveryThread) {
  Stage stage;
  {
    ProgressBar progress(stage.options(false, 4000));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) progress.advance();
      });
    for (auto& thread : threads) thread.join();
  }
  ASSERT_EQ(stage.written.size(), 1u);
  EXPECT_EQ(stage.written[0].substr(0, 24), "AIS  4,000/4,000 images ");
}

TEST(ProgressBar, AFailingScreenDoesNotStopTheWork) {
  Stage stage;
  ProgressBarOptions options = stage.options(false);
  options.write = [](std::string_view) { throw std::runtime_error("gone"); };
  ProgressBar progress(std::move(options));
  stage.now += 60;
  EXPECT_NO_THROW(progress.advance());
  EXPECT_NO_THROW(progress.finish());
}

}  // namespace
}  // namespace crais
