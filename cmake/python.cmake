# crais._crais, the extension of the Python package, against the torch of a Python.
#
# build/.../python is then on a par with an installed package: PYTHONPATH=build/release/python.
file(GLOB extension CONFIGURE_DEPENDS python/extension/*.cpp)
add_library(_crais MODULE ${extension})
target_compile_definitions(_crais PRIVATE Py_LIMITED_API=0x030A0000)
target_include_directories(_crais PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
target_link_libraries(_crais PRIVATE crais_programs Python::Module)
set_target_properties(crais_programs PROPERTIES POSITION_INDEPENDENT_CODE ON)
set(library torch-${LibTorch_VERSION})  # the folder of what fits this torch alone
set_target_properties(_crais PROPERTIES CXX_VISIBILITY_PRESET hidden
  PREFIX "" OUTPUT_NAME _native SUFFIX .abi3.so
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/crais/${library})

# Python has not the sanitizers' runtime: with them the extension is compiled only on demand.
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set_target_properties(_crais PROPERTIES EXCLUDE_FROM_ALL ON)
endif()

# The package of the build folder: links to the sources, and what the build alone knows.
file(CONFIGURE OUTPUT python/crais/_built.py CONTENT "VERSION = \"@PROJECT_VERSION@\"\n" @ONLY)
file(GLOB modules CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/python/crais
  python/crais/*.py python/crais/*.pyi python/crais/py.typed python/crais/reproduce python/crais/yardstick)
foreach(module ${modules})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/crais/${module}
    ${PROJECT_BINARY_DIR}/python/crais/${module} SYMBOLIC)
endforeach()
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/extension/_crais.py
  ${PROJECT_BINARY_DIR}/python/crais/_crais.py SYMBOLIC)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python/crais/${library})
file(CREATE_LINK ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/crais
  ${PROJECT_BINARY_DIR}/python/crais/${library}/crais SYMBOLIC)

# bin/reproduce is a program of Python, which finds that package.
file(CONFIGURE OUTPUT bin/reproduce @ONLY CONTENT [[#!/bin/sh
PYTHONPATH='@PROJECT_BINARY_DIR@/python'${PYTHONPATH:+:$PYTHONPATH} exec '@Python_EXECUTABLE@' -m crais.reproduce "$@"
]])
file(CHMOD ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/reproduce PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# The wheel: extension, library and programs inside the package, beside torch's own folder.
if(SKBUILD)
  install(TARGETS _crais crais programs COMPONENT python
    LIBRARY DESTINATION crais/${library} RUNTIME DESTINATION crais/${library})
  install(FILES ${PROJECT_BINARY_DIR}/python/crais/_built.py python/extension/_crais.py
    DESTINATION crais COMPONENT python)
  # Those who compiled in what they did not write pass its licences on.
  file(GLOB licences ${bundled}/usr/share/doc/*/copyright ${bundled}/*/LICENSE)
  foreach(licence IN LISTS licences)
    cmake_path(GET licence PARENT_PATH folder)
    cmake_path(GET folder FILENAME name)
    install(FILES ${licence} DESTINATION crais/licences RENAME ${name}.txt COMPONENT python)
  endforeach()
endif()
