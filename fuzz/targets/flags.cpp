// Command lines, an argument a line, the program first; and the values of flags by themselves.
#include "cli/parse.h"
#include "core/spec.h"
#include "harness.h"
#include "programs/estimate_logz/logz_run.h"
#include "programs/eval_loglik/settings.h"
#include "programs/train_vae/train_vae.h"

namespace crais::fuzz {

void read(std::string_view input) {
  static const Synopsis kLogz = estimate_logz_synopsis(), kEval = eval_loglik_synopsis(),
                        kTrain = train_vae_synopsis();
  std::vector<std::string> arguments = split(std::string(input), '\n');
  if (arguments.empty()) return;
  const std::string program = arguments.front();
  arguments.erase(arguments.begin());
  if (arguments.empty()) {
    attempt([&] { parse_range(program, "--indices").within(100, "--indices", "images"); });
    attempt([&] { parse_shard(program, "--shard"); });
    attempt([&] { parse_duration(program, "--max-time"); });
    attempt([&] { parse_integer(program, "--limit"); });
    attempt([&] { parse_number(program, "--scale"); });
    return;
  }
  try {
    if (program == "estimate-logz") read_logz_settings(CommandLine(kLogz, arguments));
    if (program == "eval-loglik") read_settings(CommandLine(kEval, arguments));
    if (program == "train-vae") train_vae_options(CommandLine(kTrain, arguments));
  } catch (const Answer&) {  // --help, --version
  }
}

}  // namespace crais::fuzz
