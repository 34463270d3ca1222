#include "data/two_class.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace crais {
namespace {

class TwoClass : public ::testing::Test {
 protected:
  void expect_failure(const std::string& text, const std::vector<std::string>& words) {
    std::vector<std::string> all = words;
    all.push_back("t.csv");
    const std::string path = folder_.file("t.csv", text);
    expect_error(ErrorKind::kData, all, [&] { read_two_class(path, ""); });
  }

  testing::TemporaryFolder folder_;
};

TEST_F(TwoClass, StandardisesItsFeatures) {
  const std::string path = folder_.file("t.csv", "1,10,R\n3,40,M\n\n8,10,R\n");
  const TwoClassData data = read_two_class(path, "");
  EXPECT_EQ(data.source, path);
  const double sd = std::sqrt(26.0 / 3.0);
  EXPECT_TRUE(at::allclose(data.features, at::tensor({-3 / sd, -std::sqrt(0.5), -1 / sd,
                                                      std::sqrt(2.0), 4 / sd, -std::sqrt(0.5)},
                                                     at::kDouble)
                                              .view({3, 2})));
  EXPECT_TRUE(at::equal(data.labels, at::tensor({1.0, -1.0, 1.0}, at::kDouble)));
}

TEST_F(TwoClass, SaysWhichLineIsWrong) {
  expect_failure("age,weight,class\n1,2,a\n2,1,b\n", {"line 1", "column 1", "'age'"});
  expect_failure("1,2,a\n2,,b\n", {"line 2", "column 2", "''"});
  expect_failure("1,2,a\n# note\n2,?,b\n", {"line 3", "column 2", "'?'"});
  expect_failure("1,2,a\n2,nan,b\n", {"line 2", "column 2", "missing"});
  expect_failure("1,2,a\n2,1,\n", {"line 2", "class is missing"});
  expect_failure("1,2,a\n2,b\n", {"line 2", "2 values", "3"});
  expect_failure("1,2,a\n2,1,a\n", {"lines 1 to 2", "only one class", "'a'"});
  expect_failure("1,2,a\n2,1,b\n3,1,c\n", {"line 3", "third class", "'c'"});
  expect_failure("1,2,a\n1,1,b\n", {"column 1", "same in every line"});
  expect_failure("a\nb\n", {"line 1", "one column"});
  expect_failure("", {"no values"});
}

TEST_F(TwoClass, LooksInTheDataFolder) {
  std::filesystem::create_directory(folder_.path() / "uci");
  const std::string path =
      folder_.file("uci/pima-indians-diabetes.csv", "1,10,0\n3,40,1\n8,10,1\n");
  for (const char* name : {"pima", "pima-indians-diabetes.csv", "uci/pima-indians-diabetes.csv"})
    EXPECT_EQ(read_two_class(name, folder_.path().string()).source, path) << name;
  expect_error(ErrorKind::kNoInput, {"sonar", "uci/sonar.all-data.csv"},
               [&] { read_two_class("sonar", folder_.path().string()); });
}

TEST_F(TwoClass, ReadsTheRealFiles) {
  const char* const data = std::getenv("CRAIS_DATA");
  if (!data || !std::filesystem::exists(std::filesystem::path(data) / "uci"))
    GTEST_SKIP() << "needs CRAIS_DATA/uci";
  EXPECT_EQ(read_two_class("pima", data).features.sizes(), (std::vector<int64_t>{768, 8}));
  const TwoClassData sonar = read_two_class("sonar", data);
  EXPECT_EQ(sonar.features.sizes(), (std::vector<int64_t>{208, 60}));
  EXPECT_EQ(sonar.labels.sum().item<double>(), 97 - 111);
}

}  // namespace
}  // namespace crais
