# include/crais/ of the build folder: the public headers, those that begin with "/// @file". Inside the
# project an include names its layer ("core/path.h"); what others see says <crais/core/path.h>, so that
# nothing of ours collides with a folder of theirs. Run as a script (-P) with ROOT and OUT it makes them.
if(CMAKE_SCRIPT_MODE_FILE)
  file(GLOB_RECURSE headers ${ROOT}/src/*.h ${ROOT}/models/*.h)
  file(REMOVE_RECURSE ${OUT})
  foreach(header IN LISTS headers)
    file(READ ${header} text)
    if(text MATCHES "^/// @file\n")
      string(REGEX REPLACE "#include \"([^\"\n]+)\"" "#include <crais/\\1>" text "${text}")
      string(REPLACE "${ROOT}/src/" "" name ${header})
      string(REPLACE "${ROOT}/" "" name ${name})
      file(WRITE ${OUT}/${name} "${text}")
    endif()
  endforeach()
  return()
endif()
file(GLOB_RECURSE headers CONFIGURE_DEPENDS src/*.h models/*.h)
set(public_headers ${PROJECT_BINARY_DIR}/include/crais)
add_custom_command(OUTPUT ${public_headers}/crais.h
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUT=${public_headers}
    -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${headers} ${CMAKE_CURRENT_LIST_FILE} VERBATIM)
add_custom_target(public_headers ALL DEPENDS ${public_headers}/crais.h)
add_dependencies(crais public_headers)
target_include_directories(crais INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
                                           $<INSTALL_INTERFACE:include>)
install(DIRECTORY ${public_headers} DESTINATION include)
