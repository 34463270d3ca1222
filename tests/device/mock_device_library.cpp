// The mock device as a library, for Python: ctypes.CDLL(...).crais_have_mock_device().
#include "device/mock_device.h"

extern "C" bool crais_have_mock_device() { return crais::testing::have_mock_device(); }
