// What eval-loglik is asked to do.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "programs/estimator_flags.h"
#include "programs/eval_loglik/model.h"
#include "programs/eval_loglik/rate_distortion.h"

namespace crais {

/// Which images, and how their pixels become numbers.
struct ImageSettings {
  std::string data;    // FILE[:KEY]; empty: MNIST
  std::string labels;  // FILE[:KEY]; empty: those beside the images
  std::string data_dir;
  std::string split;
  std::string binarisation;            // empty: as the model was trained
  std::string indices;                 // "A:B"
  std::optional<double> scale;         // stored numbers are divided by it
  std::optional<uint64_t> dequantise;  // the seed of uniform noise that is added before
  std::optional<int64_t> limit;
  std::optional<int64_t> simulate;
  uint64_t seed = 0;
  bool is_for_means = false;    // a decoder's means are compared with them, whatever its likelihood
  std::set<std::string> given;  // flags, as given_of_table has them
};

struct EvalSettings : RunSettings {
  std::string checkpoint;
  ForeignOptions foreign;  // for a file of another program
  ImageSettings images;
  Shard shard;
  bool dry_run = false;
  bool accept_prior = false;                   // one that does not integrate to 1
  std::optional<DistortionChoice> distortion;  // of a curve: see read_curve
};

Synopsis eval_loglik_synopsis();
/// Of an evaluation of the file `model`; of the first operand.
EvalSettings read_settings(const CommandLine& cli, const std::string& model);
EvalSettings read_settings(const CommandLine& cli);

/// `eval-loglik curve MODEL`: the evaluation that a curve is, one method from the prior.
Synopsis curve_synopsis();
EvalSettings read_curve(const CommandLine& cli);

/// A command line of eval-loglik with the settings of another (CommandLine::settings), and `more`
/// words. Flags that eval-loglik does not have are left out.
CommandLine command_line_of(const std::string& model, const nlohmann::json& settings,
                            const std::vector<std::string>& more = {});

}  // namespace crais
