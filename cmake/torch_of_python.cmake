# The torch that Python imports, as LibTorch_ROOT: what its extension is built against. A build in isolation
# (python/packaging) does not see that torch, and names its folder in the environment.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
set(LibTorch_ROOT "$ENV{CRAIS_TORCH}")
if(NOT LibTorch_ROOT)
  execute_process(OUTPUT_VARIABLE LibTorch_ROOT RESULT_VARIABLE failed ERROR_QUIET
    COMMAND ${Python_EXECUTABLE} -c
      "import os, importlib.util as u; print(os.path.dirname(u.find_spec('torch').origin), end='')")
  if(failed)
    message(FATAL_ERROR "${Python_EXECUTABLE} has no torch: pip install torch")
  endif()
endif()
