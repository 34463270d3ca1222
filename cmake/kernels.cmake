# src/kernels/ and src/simd/: one source file per instruction set, compiled for it; which one runs is
# decided at run time. Optimised in every configuration, since a debug build's tests would crawl
# otherwise. Decoders are free to fuse a multiplication and an addition, which they are written to
# survive; the loops of src/simd are not, so that they give the same bits on every processor.
set(for_avx2 -mavx2 -mfma)
set(for_avx512 -mavx512f -mavx512dq -mfma -mprefer-vector-width=512)
set(for_avx512vnni ${for_avx512} -mavx512bw -mavx512vl -mavx512vnni)
foreach(folder IN ITEMS kernels simd)
  set(sources ${PROJECT_SOURCE_DIR}/src/${folder}/portable.cpp)
  foreach(set IN ITEMS avx2 avx512 avx512vnni)
    set(source ${PROJECT_SOURCE_DIR}/src/${folder}/${set}.cpp)
    if(NOT EXISTS ${source})
      continue()
    endif()
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
      list(APPEND sources ${source})
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${for_${set}})
    else()
      set_property(SOURCE ${source} PROPERTY HEADER_FILE_ONLY ON)
    endif()
  endforeach()
  set_property(SOURCE ${sources} APPEND PROPERTY COMPILE_OPTIONS -O3)
  # A header compiled for every processor is no use to them, nor should its code be compiled with
  # theirs.
  set_property(SOURCE ${sources} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  set(${folder}_sources ${sources})
endforeach()
set_property(SOURCE ${kernels_sources} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=fast)
set_property(SOURCE ${simd_sources} APPEND PROPERTY COMPILE_OPTIONS -ffp-contract=off)
set(choosing ${PROJECT_SOURCE_DIR}/src/kernels/fused_decoder.cpp
  ${PROJECT_SOURCE_DIR}/src/simd/simd_kernel.cpp)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set_property(SOURCE ${choosing} APPEND PROPERTY COMPILE_DEFINITIONS CRAIS_X86_KERNELS)
endif()
set_property(SOURCE ${kernels_sources} ${simd_sources} ${choosing}
  PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
