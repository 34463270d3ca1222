#include "report/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "report/terminal.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr double kRedrawSeconds = 0.1;  // on a terminal
constexpr double kFirstLineSeconds = 2.0;
constexpr double kNextLineSeconds = 10.0;
constexpr int kLeastBar = 10;
constexpr int kGreatestBar = 30;
constexpr int kBarStep = 5;  // lest the bar change its length with every digit

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

class ProgressBar::State {
 public:
  explicit State(ProgressBarOptions options) : options_(std::move(options)) {
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

  void change(int64_t done, const std::string* status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    set(done, status);
  }

  void advance(int64_t by) {
    const std::lock_guard<std::mutex> lock(mutex_);
    set(line_.done + by, nullptr);
  }

  void set_status(const std::string& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    set(line_.done, &status);
  }

  void note(const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex_);
    options_.write((drawn_ ? "\r\x1b[K" : "") + text + "\n");
    if (drawn_) draw();
  }

  void finish() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (line_.finished) return;
    line_.finished = true;
    if (!options_.enabled) return;
    draw();
    if (redraws_) options_.write("\n");
    drawn_ = false;
  }

 private:
  void set(int64_t done, const std::string* status) {
    if (line_.finished) return;
    line_.done = done;
    if (status != nullptr) line_.status = *status;
    const double now = options_.seconds();
    if (!options_.enabled || now < next_) return;
    next_ = now + (redraws_ ? kRedrawSeconds : kNextLineSeconds);
    draw();
  }

  void draw() {
    line_.elapsed = options_.seconds() - start_;
    if (!redraws_) return options_.write(render_progress(line_, -1) + "\n");
    // The last column stays free: some terminals wrap as soon as it is filled.
    const int width = std::max(1, (options_.width < 0 ? stderr_width() : options_.width) - 1);
    options_.write(std::string("\r").append(render_progress(line_, width)).append("\x1b[K"));
    drawn_ = true;
  }

  ProgressBarOptions options_;
  ProgressLine line_;
  std::mutex mutex_;
  bool redraws_ = false;
  bool drawn_ = false;  // a line without its newline stands on the terminal
  double start_ = 0.0;
  double next_ = 0.0;  // the time before which nothing is drawn
};

namespace {

/// What shows progress must not stop the work.
template <typename Action>
void quietly(const Action& action) noexcept {
  try {
    action();
  } catch (...) {
  }
}

}  // namespace

ProgressBar::ProgressBar(ProgressBarOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}
ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::advance(int64_t by) noexcept {
  quietly([&] { state_->advance(by); });
}
void ProgressBar::update(int64_t done, const std::string& status) noexcept {
  quietly([&] { state_->change(done, &status); });
}
void ProgressBar::set_status(const std::string& status) noexcept {
  quietly([&] { state_->set_status(status); });
}
void ProgressBar::note(const std::string& line) noexcept {
  quietly([&] { state_->note(line); });
}
void ProgressBar::finish() noexcept {
  quietly([&] { state_->finish(); });
}

}  // namespace crais
