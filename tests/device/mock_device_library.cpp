// The mock device as a library, for Python: ctypes.CDLL(...).crais_make_mock_device().
#include "device/mock_device.h"

extern "C" void crais_make_mock_device() {
  crais::testing::make_mock_device();
  static const crais::testing::CountedNumbers counted;
}
