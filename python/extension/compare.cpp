// compare: two results on the same images, by the library's paired comparison.
#include <pybind11/stl.h>

#include "evaluation/comparison.h"
#include "module.h"

namespace py = pybind11;

namespace crais {
namespace {

using Numbers = std::vector<double>;

ImageEstimates estimates(Numbers value, Numbers std_error, Numbers bias,
                         std::vector<bool> flagged) {
  ImageEstimates found;
  found.value = std::move(value);
  found.std_error = std::move(std_error);
  found.bias = std::move(bias);
  found.flagged = std::move(flagged);
  return found;
}

}  // namespace

void bind_compare(py::module_& m) {
  py::class_<ImageEstimates>(m, "ImageEstimates")
      .def(py::init(&estimates), py::arg("value"), py::arg("std_error"), py::arg("bias"),
           py::arg("flagged"));
  py::class_<MeanEstimate>(m, "MeanEstimate")
      .def_readonly("mean", &MeanEstimate::mean)
      .def_readonly("data_se", &MeanEstimate::data_std_error)
      .def_readonly("mc_se", &MeanEstimate::monte_carlo_std_error);
  py::class_<Comparison>(m, "Comparison")
      .def_readonly("difference", &Comparison::difference)
      .def_readonly("low", &Comparison::low)
      .def_readonly("high", &Comparison::high)
      .def_readonly("unpaired_se", &Comparison::unpaired_std_error)
      .def_readonly("bias", &Comparison::bias)
      .def_readonly("share_better", &Comparison::share_better)
      .def_readonly("clearly_better", &Comparison::clearly_better)
      .def_readonly("clearly_worse", &Comparison::clearly_worse)
      .def_readonly("flagged", &Comparison::flagged)
      .def_property_readonly(
          "unflagged",
          [](const Comparison& c) { return c.unflagged ? py::cast(*c.unflagged) : py::none(); })
      .def_readonly("per_image", &Comparison::per_image)
      .def_readonly("std_error", &Comparison::std_error);
  m.def("compare", &compare);
}

}  // namespace crais
