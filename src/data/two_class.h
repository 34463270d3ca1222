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
/// path, or the name of a file in $DATA or $DATA/uci, with $DATA as in `data_dir`. "pima" and
/// "sonar" stand for pima-indians-diabetes.csv and sonar.all-data.csv.
///
/// Throws Error: kNoInput that lists every searched path; kData that names the file and the line or
/// column for a value that is not a finite number, a line of another length, a number of classes
/// other than two, or a constant feature.
TwoClassData read_two_class(const std::string& name, const std::string& data_dir);

}  // namespace crais
