# cmake --install: programs, library, public headers (cmake/public_headers.cmake), checkpoints, and the package that gives crais::crais.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/crais)

install(TARGETS crais EXPORT crais)
install(DIRECTORY weights DESTINATION share/crais OPTIONAL)

install(EXPORT crais NAMESPACE crais:: DESTINATION ${package} FILE craisTargets.cmake)
configure_package_config_file(cmake/craisConfig.cmake.in craisConfig.cmake
  INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(craisConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/craisConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/craisConfigVersion.cmake cmake/FindLibTorch.cmake
  DESTINATION ${package})
