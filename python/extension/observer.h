// A run that Python watches and may stop.
#pragma once

#include <atomic>

#include "evaluation/run_problems.h"
#include "from_python.h"
#include "util/interrupt.h"

namespace crais {

/// Tells a `crais.native.Run` how a run goes. Whoever makes it holds the GIL; the run does not.
class PythonObserver : public RunObserver {
 public:
  /// `value` is what the running mean is of: "log p".
  PythonObserver(py::object run, const std::string& value) : run_(std::move(run)), mean_(value) {}

  void begin(int64_t done, int64_t total) override {
    tell([&] { run_.attr("begin")(done, total); });
  }
  void chunk(const ChunkResult& result) override {
    const std::string status = mean_.add(result);
    tell([&] { run_.attr("advance")(result.indices.size(), status); });
  }
  bool stop() override {
    tell([&] { stopped_ = stopped_ || run_.attr("stopped").cast<bool>(); });
    return stopped_ || interrupted();
  }

 private:
  /// A finished chunk is kept whatever comes: Ctrl-C stops what is to follow.
  template <typename Call>
  void tell(const Call& call) {
    if (!told(call)) stopped_ = true;
  }

  py::object run_;
  RunningMean mean_;
  std::atomic<bool> stopped_{false};
};

}  // namespace crais
