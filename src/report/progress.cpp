#include "report/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "report/table.h"
#include "util/format.h"
#include "util/interrupt.h"

namespace crais {
namespace {

constexpr double kRedrawSeconds = 0.1;  // limit of redraws on a terminal
constexpr double kFirstLineSeconds = 2.0;
constexpr double kNextLineSeconds = 10.0;
constexpr int kLeastBar = 10;
constexpr int kGreatestBar = 30;
constexpr int kBarStep = 5;  // so that the bar does not change its length with every digit

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool stderr_redraws() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

int stderr_width() {
  const int width = terminal_width(STDERR_FILENO);
  return width > 0 ? width : 80;
}

std::string bar(double fraction, int width) {
  const int inside = width - 2;
  const int full = std::clamp(static_cast<int>(std::floor(fraction * inside)), 0, inside);
  std::string text(static_cast<size_t>(full), '=');
  if (full < inside) text += '>';
  text.resize(static_cast<size_t>(inside), ' ');
  return "[" + text + "]";
}

std::string spaced(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts)
    if (!part.empty()) text += (text.empty() ? "" : "  ") + part;
  return text;
}

}  // namespace

std::string render_progress(const ProgressLine& line, int width) {
  const bool known = line.total > 0;
  const double fraction =
      known ? static_cast<double>(line.done) / static_cast<double>(line.total) : 0;
  const auto run_done = static_cast<double>(line.done - line.done_before);
  const double rate = line.elapsed > 0.0 ? run_done / line.elapsed : 0.0;

  std::string counted = with_commas(line.done);
  if (known) counted.append("/").append(with_commas(line.total));
  counted.append(" ").append(line.unit);
  std::string speed, time;
  if (rate > 0.0) speed = significant(rate) + " " + line.unit + "/s";
  if (line.finished)
    time = "in " + duration(line.elapsed);
  else if (rate > 0.0 && known && line.done < line.total)
    time = duration(static_cast<double>(line.total - line.done) / rate) + " left";

  std::string text = spaced({line.label, counted, speed, time, line.status});
  if (width < 0) return text;
  const int room = width - static_cast<int>(text.size()) - 2;
  if (known && room >= kLeastBar)
    text = spaced({line.label, bar(fraction, std::min(room, kGreatestBar) / kBarStep * kBarStep),
                   counted, speed, time, line.status});
  if (static_cast<int>(text.size()) > width) text.resize(static_cast<size_t>(width));
  return text;
}

ProgressBar::ProgressBar(ProgressBarOptions options) : options_(std::move(options)) {
  if (!options_.write) options_.write = write_to_stderr;
  if (!options_.seconds) options_.seconds = monotonic_seconds;
  redraws_ = options_.terminal < 0 ? stderr_redraws() : options_.terminal == 1;
  line_.label = options_.label;
  line_.unit = options_.unit;
  line_.total = options_.total;
  line_.done = line_.done_before = options_.done;
  start_ = options_.seconds();
  next_ = start_ + (redraws_ ? kRedrawSeconds : kFirstLineSeconds);
  if (redraws_ && options_.enabled) draw();
}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::advance(int64_t by) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  line_.done += by;
  show();
}

void ProgressBar::update(int64_t done, const std::string& status) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  line_.done = done;
  line_.status = status;
  show();
}

void ProgressBar::finish() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::exchange(line_.finished, true) || !options_.enabled) return;
  draw();
}

/// Redraws the line if enough time has passed.
void ProgressBar::show() noexcept {
  if (line_.finished || !options_.enabled || options_.seconds() < next_) return;
  next_ = options_.seconds() + (redraws_ ? kRedrawSeconds : kNextLineSeconds);
  draw();
}

void ProgressBar::draw() noexcept {
  try {
    line_.elapsed = options_.seconds() - start_;
    // The last column stays free: some terminals wrap when it is filled.
    const int width = std::max(1, (options_.width < 0 ? stderr_width() : options_.width) - 1);
    options_.write(redraws_ ? "\r" + render_progress(line_, width) + "\x1b[K" +
                                  (line_.finished ? "\n" : "")
                            : render_progress(line_, -1) + "\n");
  } catch (...) {  // a failure to show progress must not stop the work
  }
}

RunProgress::RunProgress(RunProgressOptions options)
    : options_(std::move(options)), mean_(options_.value) {}

void RunProgress::begin(int64_t done, int64_t total) {
  ProgressBarOptions bar;
  bar.label = options_.program;
  bar.unit = options_.unit;
  bar.total = total;
  bar.done = done;
  bar.enabled = options_.enabled;
  done_ = done;
  running_ = std::make_unique<ProgressBar>(bar);
}

void RunProgress::chunk(const ChunkResult& result) {
  const std::string status = mean_.add(result);
  if (!running_) return;  // the chunk came from the store
  done_ += static_cast<int64_t>(result.indices.size());
  running_->update(done_, status);
}

bool RunProgress::stop() { return interrupted(); }

void RunProgress::finish() {
  if (running_) running_->finish();
}

}  // namespace crais
