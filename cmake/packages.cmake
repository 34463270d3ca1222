# Exported models (.pt2) need AOTInductor's loader: LibTorch 2.6 or later.
if(EXISTS ${LibTorch_INCLUDE_DIR}/torch/csrc/inductor/aoti_package/model_package_loader.h
    AND LibTorch_VERSION VERSION_GREATER_EQUAL 2.6)
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/models/package_runner.cpp APPEND PROPERTY
    COMPILE_DEFINITIONS CRAIS_PACKAGES)
  message(STATUS "Exported models: yes")
else()
  message(STATUS "Exported models: no (LibTorch before 2.6)")
endif()
