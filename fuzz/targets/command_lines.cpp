// Whole command lines of eval-loglik, an argument a line, down to the images: nothing is evaluated.
#include <unistd.h>

#include <cstdlib>

#include "core/spec.h"
#include "harness.h"
#include "models/checkpoint.h"
#include "programs/eval_loglik/eval_run.h"
#include "util/error.h"
#include "util/files.h"

namespace crais::fuzz {
namespace {

/// Files for flags to name: a model and arrays that fit it.
const std::vector<Part>& files() {
  static const std::vector<Part> kFiles = [] {
    VaeArchitecture architecture;
    architecture.image_rows = architecture.image_cols = 2;
    architecture.latent = 1;
    architecture.hidden = {2};
    const std::string path = (folder() / "made").string();
    write_checkpoint(path, {make_vae(architecture, 0), {}, ""});
    const std::string header("\0\0\x08\x03\0\0\0\x06\0\0\0\x02\0\0\0\x02", 16);
    return std::vector<Part>{
        {"vae", read_file(path)},
        {"images", header + std::string(24, '\x7f')},
        {"flat", std::string("\0\0\x08\x01\0\0\0\x06", 8) + std::string(6, 1)}};
  }();
  return kFiles;
}

/// In a folder of our own, and none of them a count that would take minutes.
bool is_harmless(const std::string& argument) {
  return argument.find('/') == std::string::npos && argument.find("..") == std::string::npos &&
         argument.find("cuda") == std::string::npos;
}

}  // namespace

void read(std::string_view input) {
  static const int kHere = ::chdir(folder().c_str());
  static const int kNoData = ::setenv("CRAIS_DATA", "nowhere", 1);
  (void)kHere, (void)kNoData;
  for (const Part& part : files()) file(part.bytes, part.name);
  std::vector<std::string> arguments = {"vae"};
  for (const std::string& argument : split(std::string(input), '\n'))
    if (is_harmless(argument)) arguments.push_back(argument);
  try {
    EvalSettings settings = read_settings(CommandLine(eval_loglik_synopsis(), arguments));
    if (settings.images.simulate)
      settings.images.simulate = std::min<int64_t>(*settings.images.simulate, 9);
    const EvalRun run(settings, open_model(settings.checkpoint, settings.script, settings.device,
                                           settings.dtype));
    run.describe();
    run.record();
  } catch (const Answer&) {  // --help, --version
  }
}

}  // namespace crais::fuzz
