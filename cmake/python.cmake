# crais._crais, the extension of the Python package, against the torch of a Python.
#
# build/.../python is then on a par with an installed package: PYTHONPATH=build/release/python.
find_library(torch_python torch_python PATHS ${LibTorch_ROOT}/lib
  NO_CACHE REQUIRED NO_DEFAULT_PATH)

file(GLOB extension CONFIGURE_DEPENDS python/extension/*.cpp)
Python_add_library(_crais MODULE WITH_SOABI ${extension})
target_include_directories(_crais PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
target_link_libraries(_crais PRIVATE crais_programs ${torch_python})
set_target_properties(crais_programs PROPERTIES POSITION_INDEPENDENT_CODE ON)
set_target_properties(_crais PROPERTIES CXX_VISIBILITY_PRESET hidden
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/crais)

# Python has not the sanitizers' runtime: with them the extension is compiled only on demand.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set_target_properties(_crais PROPERTIES EXCLUDE_FROM_ALL ON)
endif()

# The package of the build folder: links to the sources, and what the build alone knows.
file(CONFIGURE OUTPUT python/crais/_built.py CONTENT
  "\"\"\"What the extension was built with.\"\"\"\n\nTORCH = \"@CRAIS_TORCH_VERSION@\"\nVERSION = \"@PROJECT_VERSION@\"\n" @ONLY)
file(GLOB modules CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python/crais
  python/crais/*.py python/crais/*.pyi python/crais/py.typed python/crais/reproduce python/crais/yardstick)
foreach(module ${modules})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/crais/${module}
    ${PROJECT_BINARY_DIR}/python/crais/${module} SYMBOLIC)
endforeach()
file(CREATE_LINK ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${PROJECT_BINARY_DIR}/python/crais/bin SYMBOLIC)

# bin/reproduce is a program of Python, which finds that package.
file(CONFIGURE OUTPUT bin/reproduce @ONLY CONTENT [[#!/bin/sh
PYTHONPATH='@PROJECT_BINARY_DIR@/python'${PYTHONPATH:+:$PYTHONPATH} exec '@Python_EXECUTABLE@' -m crais.reproduce "$@"
]])
file(CHMOD ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/reproduce PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# The wheel: extension, library and programs inside the package, beside torch's own folder.
if(SKBUILD)
  install(TARGETS _crais LIBRARY DESTINATION crais COMPONENT python)
  install(TARGETS crais LIBRARY DESTINATION crais/lib COMPONENT python)
  install(TARGETS programs RUNTIME DESTINATION crais/bin COMPONENT python)
  install(FILES ${PROJECT_BINARY_DIR}/python/crais/_built.py DESTINATION crais COMPONENT python)
  # Those who compiled in what they did not write pass its licences on.
  file(GLOB licences ${bundled}/usr/share/doc/*/copyright ${bundled}/*/LICENSE)
  foreach(licence IN LISTS licences)
    cmake_path(GET licence PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    install(FILES ${licence} DESTINATION crais/licences RENAME ${name}.txt COMPONENT python)
  endforeach()
  set_target_properties(_crais PROPERTIES INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/../torch/lib")
endif()
