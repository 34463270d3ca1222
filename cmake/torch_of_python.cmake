# The torch that Python imports, as LibTorch_ROOT: what its extension is built against.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
execute_process(OUTPUT_VARIABLE found RESULT_VARIABLE failed ERROR_QUIET
  COMMAND ${Python_EXECUTABLE} -c
    "import os, torch; print(os.path.dirname(torch.__file__), torch.__version__, sep=';', end='')")
if(failed)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no torch: pip install torch")
endif()
list(POP_FRONT found LibTorch_ROOT CRAIS_TORCH_VERSION)
