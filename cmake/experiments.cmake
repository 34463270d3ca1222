# experiments.cpp: the experiments of reproduce, each a JSON file, as text in the program.
file(GLOB experiments CONFIGURE_DEPENDS src/programs/reproduce/experiments/*.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${experiments})
set(entries "")
foreach(file IN LISTS experiments)
  cmake_path(GET file STEM name)
  file(READ ${file} text)
  string(APPEND entries "{\"${name}\", R\"json(${text})json\"},\n")
endforeach()
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/generated/experiments.cpp CONTENT
"#include \"programs/reproduce/experiment.h\"

namespace crais {
const std::map<std::string, std::string_view>& embedded_experiments() {
  static const std::map<std::string, std::string_view> all = {
${entries}};
  return all;
}
}  // namespace crais
")
target_sources(crais_programs PRIVATE ${PROJECT_BINARY_DIR}/generated/experiments.cpp)
