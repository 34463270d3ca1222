// Tables of two classes in the format of the UCI repository: features, then the class, one case a
// line.
#pragma once

#include <ATen/ATen.h>

#include <string>

namespace crais {

struct TwoClassData {
  at::Tensor features;  // [N,D] float64, each column standardised to mean 0 and sd 1 (over N)
  at::Tensor labels;    // [N] float64: 1 for the class of the first line, -1 for the other
  std::string source;   // the file's path
};

/// Reads a file without a header line whose last column is the class (any two texts). `name` is a
/// path, or the name of a file in $DATA, $DATA/uci or $DATA/logz, with $DATA as in `data_dir`.
/// "pima", "sonar" and "ionosphere" stand for pima-indians-diabetes.csv, sonar.all-data.csv and
/// ionosphere.csv (less its second feature, which never changes); "german" is the table that the
/// library carries.
///
/// Throws Error: kNoInput that lists every searched path; kData that names the file and the line or
/// column for a value that is not a finite number, a line of another length, a number of classes
/// other than two, or a constant feature.
TwoClassData read_two_class(const std::string& name, const std::string& data_dir);

}  // namespace crais
