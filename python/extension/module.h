// The parts of crais._crais, a file each.
#pragma once

#include <c10/core/GradMode.h>
#include <torch/csrc/utils/pybind.h>

#include "util/parallel.h"

namespace crais {

/// What surrounds a run: Python's other threads go on, LibTorch does one operation on one thread,
/// and computes no gradient that is not asked for. The end restores everything.
struct Released {
  py::gil_scoped_release no_gil;
  OneThreadPerOperation one_thread;
  c10::NoGradGuard no_grad;
};

void bind_report(py::module_& m);
void bind_options(py::module_& m);
void bind_evaluate(py::module_& m);
void bind_log_normalizer(py::module_& m);
void bind_train_vae(py::module_& m);
void bind_compare(py::module_& m);

}  // namespace crais
