# LibTorch as the one target LibTorch::LibTorch, from its headers and libraries alone.
#
# Its own package file is not read: that of a CUDA build wants a whole CUDA toolkit, which a program
# that only calls ATen does not need to compile, and others warn of libraries they then do without.
#
# Looks in LibTorch_ROOT, Torch_DIR, CMAKE_PREFIX_PATH, the latter two also as environment variables,
# LibTorch_FALLBACK (what scripts/setup chose) and the system, and takes headers and libraries from
# one place, which LibTorch_ROOT then names. Nothing is cached: another choice in the same build
# folder takes effect.
foreach(name IN ITEMS INCLUDE_DIR torch torch_cpu c10 torch_cuda c10_cuda glog)
  unset(LibTorch_${name})
endforeach()

set(places ${LibTorch_ROOT})
foreach(place IN ITEMS "${Torch_DIR}" ${CMAKE_PREFIX_PATH} "$ENV{Torch_DIR}")
  list(APPEND places ${place})
  if(place MATCHES "/cmake/Torch/?$")  # ROOT/share/cmake/Torch or ROOT/lib/ARCHITECTURE/cmake/Torch
    list(APPEND places ${place}/../../.. ${place}/../../../..)
  endif()
endforeach()
string(REPLACE ":" ";" environment "$ENV{CMAKE_PREFIX_PATH}")
find_path(LibTorch_INCLUDE_DIR ATen/ATen.h NO_CACHE NO_DEFAULT_PATH PATH_SUFFIXES include
  PATHS ${places} ${environment} ${LibTorch_FALLBACK})
if(NOT LibTorch_INCLUDE_DIR)
  find_path(LibTorch_INCLUDE_DIR ATen/ATen.h NO_CACHE)
endif()
if(LibTorch_INCLUDE_DIR)
  get_filename_component(LibTorch_ROOT ${LibTorch_INCLUDE_DIR}/.. REALPATH)
  foreach(name IN ITEMS torch torch_cpu c10 torch_cuda c10_cuda)
    find_library(LibTorch_${name} ${name} NO_CACHE NO_DEFAULT_PATH
      PATHS ${LibTorch_ROOT}/lib ${LibTorch_ROOT}/lib/${CMAKE_LIBRARY_ARCHITECTURE})
  endforeach()
  set(LibTorch_VERSION 0)  # its place depends on the version
  foreach(header IN ITEMS torch/csrc/api/include/torch/version.h torch/headeronly/version.h)
    if(EXISTS ${LibTorch_INCLUDE_DIR}/${header})
      file(STRINGS ${LibTorch_INCLUDE_DIR}/${header} numbers
        REGEX "^#define TORCH_VERSION_(MAJOR|MINOR) [0-9]+")
      if(numbers)
        string(REGEX REPLACE "[^0-9;]" "" numbers "${numbers}")
        string(REPLACE ";" "." LibTorch_VERSION "${numbers}")
      endif()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_ROOT LibTorch_INCLUDE_DIR LibTorch_torch LibTorch_torch_cpu LibTorch_c10
  VERSION_VAR LibTorch_VERSION)

if(LibTorch_FOUND)
  file(GLOB_RECURSE configs ${LibTorch_ROOT}/share/cmake/Torch/TorchConfig.cmake)
  if(configs)
    file(STRINGS ${configs} old_abi REGEX "_GLIBCXX_USE_CXX11_ABI=0")
    if(old_abi)
      message(FATAL_ERROR "The LibTorch in ${LibTorch_ROOT} has the C++ library's ABI of before 2011; "
        "take one of 2.7 or later, or a \"cxx11 ABI\" build (scripts/setup finds one).")
    endif()
  endif()
endif()

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  target_include_directories(LibTorch::LibTorch INTERFACE
    ${LibTorch_INCLUDE_DIR} ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include)
  # Some of PyTorch's wheels export pieces of a C++ library of their own, with holes (its issue 133437):
  # the loader must come to the system's first, or std::filesystem jumps to nowhere.
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND NOT APPLE)
    target_link_libraries(LibTorch::LibTorch INTERFACE
      "-Wl,--push-state,--no-as-needed,-lstdc++,--pop-state")
  endif()
  # Nobody calls libtorch by name. It loads the libraries of a GPU where its build has them, so that a
  # crais built with a CPU build runs with both.
  target_link_libraries(LibTorch::LibTorch INTERFACE
    "-Wl,--push-state,--no-as-needed,${LibTorch_torch},--pop-state" ${LibTorch_torch_cpu} ${LibTorch_c10})
  if(LibTorch_torch_cuda)
    # What these need in turn (cuBLAS...) they find themselves when they run.
    target_link_libraries(LibTorch::LibTorch INTERFACE -Wl,--allow-shlib-undefined
      "-Wl,--push-state,--as-needed,${LibTorch_torch_cuda},${LibTorch_c10_cuda},--pop-state")
  endif()
  # Debian's headers call glog.
  file(GLOB_RECURSE macros ${LibTorch_INCLUDE_DIR}/c10/macros/cmake_macros.h)
  if(macros)
    file(STRINGS ${macros} glog REGEX "define C10_USE_GLOG")
    if(glog)
      find_library(LibTorch_glog glog NO_CACHE REQUIRED)
      target_link_libraries(LibTorch::LibTorch INTERFACE ${LibTorch_glog})
    endif()
  endif()
endif()
