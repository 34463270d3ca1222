# src/report/page.html with Chart.js inside, as a text of the library.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/report/page.html)
file(READ src/report/page.html page)
file(READ ${CHART_JS} chart)
string(REPLACE "@CHART_JS@" "${chart}" page "${page}")
file(CONFIGURE OUTPUT page_template.cpp @ONLY CONTENT
  "namespace crais {\nextern const char* const kPageTemplate;\nconst char* const kPageTemplate = R\"page(@page@)page\";\n}\n")
target_sources(crais PRIVATE ${PROJECT_BINARY_DIR}/page_template.cpp)
set_source_files_properties(${PROJECT_BINARY_DIR}/page_template.cpp PROPERTIES
  SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON COMPILE_OPTIONS -Wno-overlength-strings)
