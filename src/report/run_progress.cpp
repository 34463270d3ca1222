#include "report/run_progress.h"

#include <utility>

#include "util/format.h"
#include "util/interrupt.h"

namespace crais {

RunProgress::RunProgress(RunProgressOptions options)
    : options_(std::move(options)), mean_(options_.value) {}

void RunProgress::begin(int64_t done, int64_t total) {
  ProgressBarOptions bar;
  bar.label = options_.program;
  bar.unit = options_.unit;
  bar.total = total;
  bar.done = done;
  bar.enabled = options_.enabled;
  running_ = std::make_unique<ProgressBar>(bar);
}

void RunProgress::chunk(const ChunkResult& result) {
  const std::string status = mean_.add(result);
  if (!running_) return;  // found in the store
  running_->advance(static_cast<int64_t>(result.indices.size()));
  running_->set_status(status);
}

bool RunProgress::stop() { return interrupted(); }

void RunProgress::finish() {
  if (running_) running_->finish();
}

}  // namespace crais
