# The libraries that crais needs beside LibTorch: the system's, or, where it lacks one, that of Debian 12,
# with which CI builds too. Its archive lies in the folder third_party, which an sdist brings, or is
# downloaded. Run as a script (-P) this file only fills that folder.
set(kMirrors https://deb.debian.org/debian https://snapshot.debian.org/archive/debian/20250520T000000Z)
# What each is in Debian's archive, and its sha256. Packages (.deb) are used as they are, the others
# are sources.
set(kcxxopts c/cxxopts/libcxxopts-dev_3.1.1-1_all.deb
  f630f681cf07f5c8438241983ddd27e97fce36a1ef3c7d8b954a88e8de3d8417)
set(knlohmann_json n/nlohmann-json3/nlohmann-json3-dev_3.11.2-2_all.deb
  ec57940def6b6186c30be0e0ee81d1e58f86d11a54a145b28686a1e3e4aae801)
set(kstb libs/libstb/libstb-dev_0.0~git20220908.8b5f1f3+ds-1_amd64.deb
  4f85f82942c61845ac96d64d722ef1b2f4897d6662cb98bc5ff78596b8fbb144)
set(kchart_js n/node-chart.js/libjs-chart.js_3.9.1+~0.2.1-2_all.deb
  16456ab02ad662f480ae3f4d0769a069f69133d0a957821925bbdd648ae5390a)
set(kzlib z/zlib/zlib_1.2.13.dfsg.orig.tar.bz2
  71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1)
set(klibzip libz/libzip/libzip_1.7.3.orig.tar.xz
  a60473ffdb7b4260c08bfa19c2ccea0438edac11193c3afbbb1f17fbcf6c6132)

set(archives ${CMAKE_CURRENT_LIST_DIR}/../third_party)

# Sets `archive` to the file of `name`, which is checked, and downloaded if need be.
macro(fetch name)
  list(GET k${name} 0 path)
  list(GET k${name} 1 sha256)
  cmake_path(GET path FILENAME archive)
  string(PREPEND archive ${archives}/)
  foreach(mirror IN ITEMS third_party ${kMirrors})
    if(NOT mirror STREQUAL third_party)
      file(DOWNLOAD ${mirror}/pool/main/${path} ${archive} TLS_VERIFY ON)
    endif()
    set(digest "")
    if(EXISTS ${archive})
      file(SHA256 ${archive} digest)
    endif()
    if(digest STREQUAL sha256)
      break()
    endif()
  endforeach()
  if(NOT digest STREQUAL sha256)
    file(REMOVE ${archive})
    message(FATAL_ERROR "There is no ${name} here, and ${path} of Debian 12 cannot be downloaded: install "
      "${name} (on Debian, scripts/setup does), or put that file into third_party.")
  endif()
endmacro()

if(CMAKE_SCRIPT_MODE_FILE)
  foreach(name IN ITEMS cxxopts nlohmann_json stb chart_js zlib libzip)
    fetch(${name})
  endforeach()
  return()
endif()

option(CRAIS_BUNDLED "Take no library of the system but LibTorch" OFF)
if(NOT EXISTS ${archives})
  set(archives ${PROJECT_BINARY_DIR}/third_party/archives)  # what is downloaded stays out of the sources
endif()
set(bundled ${PROJECT_BINARY_DIR}/third_party)

function(unpack name)
  message(STATUS "${name}: Debian's, compiled in")
  fetch(${name})
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${bundled})
  if(archive MATCHES "\\.deb$")
    file(ARCHIVE_EXTRACT INPUT ${bundled}/data.tar.xz DESTINATION ${bundled})
  endif()
endfunction()

macro(of_system package)
  if(NOT CRAIS_BUNDLED)
    find_package(${package} QUIET)
  endif()
endmacro()

foreach(name IN ITEMS nlohmann_json cxxopts)
  of_system(${name})
  if(NOT ${name}_FOUND)
    unpack(${name})
    add_library(${name}::${name} INTERFACE IMPORTED)
    target_include_directories(${name}::${name} INTERFACE ${bundled}/usr/include)
  endif()
endforeach()

if(NOT CRAIS_BUNDLED)
  find_path(STB_INCLUDE stb/stb_image_write.h)
endif()
if(NOT STB_INCLUDE)
  unpack(stb)
  set(STB_INCLUDE ${bundled}/usr/include)
endif()

if(NOT CRAIS_BUNDLED)
  find_file(CHART_JS chart.min.js PATHS /usr/share/javascript/chart.js NO_DEFAULT_PATH)
endif()
if(NOT CHART_JS)
  unpack(chart_js)
  set(CHART_JS ${bundled}/usr/share/javascript/chart.js/chart.min.js)
endif()

of_system(ZLIB)
if(NOT ZLIB_FOUND)
  unpack(zlib)
  enable_language(C)
  set(ZLIB_INCLUDE_DIR ${bundled}/zlib-1.2.13.dfsg)
  file(GLOB sources ${ZLIB_INCLUDE_DIR}/*.c)
  add_library(zlib STATIC ${sources})
  add_library(ZLIB::ZLIB INTERFACE IMPORTED)
  target_link_libraries(ZLIB::ZLIB INTERFACE zlib)
  set(ZLIB_LIBRARY zlib)  # so that libzip finds this one
  target_compile_definitions(zlib PRIVATE HAVE_UNISTD_H)
  target_include_directories(zlib SYSTEM PUBLIC ${ZLIB_INCLUDE_DIR})
  set_target_properties(zlib PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
endif()

of_system(LibZip)
if(NOT LibZip_FOUND)
  unpack(libzip)
  function(add_libzip)
    set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)  # its options are the variables here
    set(CMAKE_POLICY_DEFAULT_CMP0063 NEW)  # of a static library, too, symbols are hidden
    set(CMAKE_POLICY_VERSION_MINIMUM 3.5)
    set(CMAKE_POSITION_INDEPENDENT_CODE ON)
    set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
    foreach(part IN ITEMS COMMONCRYPTO GNUTLS MBEDTLS OPENSSL BZIP2 LZMA)
      set(ENABLE_${part} OFF)
    endforeach()
    set(LIBZIP_DO_INSTALL OFF)
    set(CMAKE_SUPPRESS_DEVELOPER_WARNINGS ON)
    foreach(part IN ITEMS SHARED_LIBS TOOLS REGRESS EXAMPLES DOC)
      set(BUILD_${part} OFF)
    endforeach()
    add_subdirectory(${bundled}/libzip-1.7.3 ${bundled}/libzip EXCLUDE_FROM_ALL)
  endfunction()
  add_libzip()
  add_library(LibZip::LibZip ALIAS zip)
endif()
