# Workers of torchrun share chunks by c10d's TCPStore, which a LibTorch may have been built without; its
# headers are there all the same.
include(CheckCXXSourceCompiles)
string(MAKE_C_IDENTIFIER "CRAIS_TCP_STORE_${LibTorch_VERSION}" has_tcp_store)  # asked of each anew
set(CMAKE_REQUIRED_LIBRARIES LibTorch::LibTorch)
check_cxx_source_compiles("#include <torch/csrc/distributed/c10d/TCPStore.hpp>
  int main() { c10d::TCPStore store(\"localhost\", c10d::TCPStoreOptions()); }"
  ${has_tcp_store})
unset(CMAKE_REQUIRED_LIBRARIES)
if(${has_tcp_store})
  # ... and not with others in one file: this header brings in half of LibTorch.
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/programs/store_claims.cpp PROPERTIES
    COMPILE_DEFINITIONS CRAIS_HAS_TCP_STORE SKIP_UNITY_BUILD_INCLUSION ON)
  message(STATUS "TCPStore: yes")
else()
  message(STATUS "TCPStore: no; torchrun's workers can have shards only")
endif()
