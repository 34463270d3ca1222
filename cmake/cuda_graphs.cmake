# Moves recorded as CUDA graphs need the header of CUDA's runtime. Without, --device cuda works and the
# host launches each operation. A crais with them runs with a LibTorch of CUDA only.
option(CRAIS_CUDA_GRAPHS "Record moves as CUDA graphs, where LibTorch can" ON)
if(LibTorch_torch_cuda AND CRAIS_CUDA_GRAPHS)
  include(CheckCXXSourceCompiles)
  string(MAKE_C_IDENTIFIER "CRAIS_CUDA_GRAPHS_${LibTorch_VERSION}" has_graphs)  # asked of each anew
  set(CMAKE_REQUIRED_LIBRARIES LibTorch::LibTorch)
  find_path(CRAIS_CUDA_INCLUDE cuda_runtime_api.h
    HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda ${LibTorch_ROOT}/../nvidia
    PATH_SUFFIXES include cu13/include cuda_runtime/include)
  if(CRAIS_CUDA_INCLUDE)
    set(CMAKE_REQUIRED_INCLUDES ${CRAIS_CUDA_INCLUDE})
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
    check_cxx_source_compiles("#include <ATen/cuda/CUDAGraph.h>
      void f(at::cuda::CUDAGraph& graph, const at::Generator& rng) { graph.register_generator_state(rng); }"
      ${has_graphs})
    unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
    unset(CMAKE_REQUIRED_INCLUDES)
  endif()
  unset(CMAKE_REQUIRED_LIBRARIES)
  if(${has_graphs})
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/samplers/mover.cpp APPEND PROPERTY
      COMPILE_OPTIONS -DCRAIS_CUDA_GRAPHS -isystem ${CRAIS_CUDA_INCLUDE})
    # LibTorch's libraries call CUDA's runtime, and so do inline functions of its headers.
    find_library(CRAIS_CUDART NAMES cudart libcudart.so.13 libcudart.so.12
      HINTS ${CRAIS_CUDA_INCLUDE}/../lib64 ${CRAIS_CUDA_INCLUDE}/../lib
            ${CRAIS_CUDA_INCLUDE}/../targets/x86_64-linux/lib)
    if(CRAIS_CUDART)
      target_link_libraries(crais PRIVATE ${CRAIS_CUDART})
    endif()
    message(STATUS "CUDA graphs: with ${CRAIS_CUDA_INCLUDE}")
  else()
    message(STATUS "CUDA graphs: no (no cuda_runtime_api.h that LibTorch compiles with)")
  endif()
endif()
