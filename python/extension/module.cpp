// crais._crais: the library for the Python package, which says what everything means.
#include "module.h"

#include "from_python.h"
#include "util/interrupt.h"

PYBIND11_MODULE(_crais, m) {
  crais::translate_errors();
  crais::bind_report(m);
  crais::bind_options(m);
  crais::bind_evaluate(m);
  crais::bind_log_normalizer(m);
  crais::bind_train_vae(m);
  crais::bind_compare(m);
  m.def("stop", [] { crais::set_interrupted(true); });  // every run, since Python ends
}
