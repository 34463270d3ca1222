#include "report/training_bar.h"

#include <memory>

#include "report/progress.h"
#include "util/format.h"
#include "util/interrupt.h"

namespace crais {

PrepareReport training_bar(const std::string& label, const std::string& advice, bool enabled) {
  auto bar = std::make_shared<std::unique_ptr<ProgressBar>>();  // a new one for each method
  return [=](int64_t done, int64_t total, double objective) {
    throw_if_interrupted(advice);
    if (done <= 1) {
      ProgressBarOptions options;
      options.label = label;
      options.unit = "iterations";
      options.total = total;
      options.enabled = enabled;
      *bar = std::make_unique<ProgressBar>(options);
    }
    (*bar)->update(done, "E[log w] " + fixed(objective, 3));
    if (done == total) (*bar)->finish();
  };
}

}  // namespace crais
