# source_digest.cpp: a digest of the sources that decide estimates, made anew when one of them changes.
# Included by CMakeLists.txt it adds the rule; run as a script (-P) with ROOT and OUT it makes the file.
set(deciding simd core data models kernels targets divergences paths schedules transitions samplers bases estimates
  evaluation evidence)
if(CMAKE_SCRIPT_MODE_FILE)
  set(digests "")
  foreach(folder IN LISTS deciding)
    file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/src/${folder}/*.h ${ROOT}/src/${folder}/*.cpp)
    if(folder STREQUAL models)
      file(GLOB sources RELATIVE ${ROOT} ${ROOT}/models/*.h ${ROOT}/models/*.cpp)
    endif()
    list(SORT sources)
    foreach(source IN LISTS sources)
      file(SHA256 ${ROOT}/${source} digest)
      string(APPEND digests "${source} ${digest}\n")
    endforeach()
  endforeach()
  string(SHA256 digest "${digests}")
  string(SUBSTRING ${digest} 0 16 digest)
  file(WRITE ${OUT} "#include \"util/version.h\"\n\nnamespace crais {\n"
    "std::string source_digest() { return \"${digest}\"; }\n}  // namespace crais\n")
  return()
endif()
set(deciding_sources ${CRAIS_SOURCES})
list(FILTER deciding_sources INCLUDE REGEX "/(src/(simd|core|data|kernels|targets|divergences|paths|schedules|transitions|samplers|bases|estimates|evaluation|evidence)|models)/[^/]*$")
file(GLOB_RECURSE deciding_headers CONFIGURE_DEPENDS src/*.h models/*.h)
list(FILTER deciding_headers INCLUDE REGEX "/(src/(simd|core|data|kernels|targets|divergences|paths|schedules|transitions|samplers|bases|estimates|evaluation|evidence)|models)/[^/]*$")
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/generated/source_digest.cpp
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}
    -DOUT=${PROJECT_BINARY_DIR}/generated/source_digest.cpp -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${deciding_sources} ${deciding_headers} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
target_sources(crais PRIVATE ${PROJECT_BINARY_DIR}/generated/source_digest.cpp)
