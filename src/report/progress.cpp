#include "report/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "report/table.h"
#include "util/format.h"
#include "util/interrupt.h"

namespace crais {
namespace {

constexpr double kRedrawSeconds = 0.1;  // limit of redraws on a terminal
constexpr double kFirstLineSeconds = 2.0;
constexpr double kNextLineSeconds = 10.0;
constexpr size_t kBar = 20;  // characters

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int width_of_stderr() {
  const char* const kind = std::getenv("TERM");
  return kind && std::string_view(kind) == "dumb" ? 0 : terminal_width(STDERR_FILENO);
}

}  // namespace

ProgressLine::ProgressLine(ProgressOptions options)
    : options_(std::move(options)), mean_(options_.value) {
  if (!options_.write) options_.write = [](std::string_view text) { std::cerr << text; };
  if (!options_.width) options_.width = width_of_stderr;
  if (!options_.seconds) options_.seconds = monotonic_seconds;
}

void ProgressLine::begin(int64_t done, int64_t total) {
  const std::lock_guard<std::mutex> lock(mutex_);
  before_ = done_ = done;
  total_ = total;
  is_shown_ = options_.enabled;
  start_ = options_.seconds();
  next_ = start_ + kFirstLineSeconds;
  if (options_.width() > 0) show(/*must=*/true);
}

void ProgressLine::chunk(const ChunkResult& result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  status_ = mean_.add(result);
  done_ += static_cast<int64_t>(result.indices.size());  // `begin` sets it after the store's chunks
  show(/*must=*/false);
}

bool ProgressLine::stop() { return interrupted(); }

void ProgressLine::update(int64_t done, const std::string& status) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ = done;
  status_ = status;
  show(/*must=*/false);
}

void ProgressLine::finish() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  show(/*must=*/true, /*is_last=*/true);
}

/// Writes the line if it `must`, or if it may again.
void ProgressLine::show(bool must, bool is_last) noexcept {
  if (!is_shown_) return;
  try {
    const double now = options_.seconds();
    if (now < next_ && !must) return;
    is_shown_ = !is_last;
    const int width = options_.width();
    next_ = now + (width > 0 ? kRedrawSeconds : kNextLineSeconds);
    // The last column stays free: some terminals wrap when it is filled.
    const std::string text = line(now - start_, width > 0 ? std::max(1, width - 1) : 0, is_last);
    options_.write(width > 0 ? "\r" + text + "\x1b[K" + (is_last ? "\n" : "") : text + "\n");
  } catch (...) {  // a failure to show progress must not stop the work
  }
}

/// A line with a bar in at most `width` columns, or, if that is 0, without one.
std::string ProgressLine::line(double elapsed, int width, bool is_last) const {
  const auto done = static_cast<double>(done_), total = static_cast<double>(total_);
  const double rate = elapsed > 0 ? (done - static_cast<double>(before_)) / elapsed : 0;
  std::string text = "  " + with_commas(done_);
  if (total_ > 0) text += "/" + with_commas(total_);
  text += " " + options_.unit;
  if (rate > 0) text += "  " + significant(rate) + " " + options_.unit + "/s";
  if (is_last)
    text += "  in " + duration(elapsed);
  else if (rate > 0 && done_ < total_)
    text += "  " + duration((total - done) / rate) + " left";
  if (!status_.empty()) text += "  " + status_;
  if (width == 0) return options_.label + text;
  const size_t most = static_cast<size_t>(width);
  if (total_ > 0 && options_.label.size() + kBar + 4 + text.size() <= most) {
    const auto full = static_cast<size_t>(std::clamp(done / total, 0.0, 1.0) * double(kBar));
    text = "  [" + (std::string(full, '=') + ">" + std::string(kBar, ' ')).substr(0, kBar) + "]" +
           text;
  }
  return (options_.label + text).substr(0, most);
}

}  // namespace crais
