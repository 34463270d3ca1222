# src/kernels/: one source file per instruction set, compiled for it; which one runs is decided at run
# time. Optimised in every configuration, since a debug build's tests would crawl otherwise, and free
# to fuse a multiplication and an addition, which they are written to survive.
set(kernel_sources ${PROJECT_SOURCE_DIR}/src/kernels/portable.cpp)
set(avx512 ${PROJECT_SOURCE_DIR}/src/kernels/avx512.cpp)
set(avx2 ${PROJECT_SOURCE_DIR}/src/kernels/avx2.cpp)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND kernel_sources ${avx512} ${avx2})
  set_property(SOURCE ${avx512} APPEND PROPERTY COMPILE_OPTIONS
    -mavx512f -mavx512dq -mfma -mprefer-vector-width=512)
  set_property(SOURCE ${avx2} APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/kernels/fused_decoder.cpp APPEND PROPERTY
    COMPILE_DEFINITIONS CRAIS_X86_KERNELS)
else()
  set_property(SOURCE ${avx512} ${avx2} PROPERTY HEADER_FILE_ONLY ON)
endif()
set_property(SOURCE ${kernel_sources} APPEND PROPERTY COMPILE_OPTIONS -O3 -ffp-contract=fast)
# A header compiled for every processor is no use to them, nor should its code be compiled with
# theirs.
set_property(SOURCE ${kernel_sources} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
set_property(SOURCE ${kernel_sources} ${PROJECT_SOURCE_DIR}/src/kernels/fused_decoder.cpp
  PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
