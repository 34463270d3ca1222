# Read by ctest: registers every suite of a GoogleTest `program` as the test <folder>.<Suite>. The
# list is kept beside the program and made again when the program is newer.
set(list "${program}.suites")
if(NOT EXISTS "${program}")
  add_test("${folder}.not_built" "${program}")
  return()
endif()
if(NOT EXISTS "${list}" OR "${program}" IS_NEWER_THAN "${list}")
  execute_process(COMMAND "${program}" --gtest_list_tests
    OUTPUT_VARIABLE output RESULT_VARIABLE failed)
  if(failed)  # a test that fails, and shows why
    add_test("${folder}.list_of_suites" "${program}" --gtest_list_tests)
    return()
  endif()
  string(REGEX MATCHALL "[^\n]+" lines "${output}")
  list(FILTER lines INCLUDE REGEX "^[A-Za-z_0-9/]+\\.( |$)")  # cases are indented
  list(TRANSFORM lines REPLACE "\\..*" "")
  file(WRITE "${list}" "${lines}")
endif()
file(READ "${list}" suites)
foreach(suite IN LISTS suites)
  add_test("${folder}.${suite}" bash "${runner}" "${program}" "${suite}")
  set_tests_properties("${folder}.${suite}" PROPERTIES
    SKIP_RETURN_CODE 77 TIMEOUT 3600 ENVIRONMENT OMP_NUM_THREADS=1)
endforeach()
