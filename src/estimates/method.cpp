#include "estimates/method.h"

#include "util/error.h"

namespace crais {

PreparedMethod Method::prepare(const Problem& /*pilots*/, uint64_t /*seed*/,
                               const PrepareReport& /*report*/) const {
  throw internal_error("a method that has nothing to learn was asked to");
}

}  // namespace crais
