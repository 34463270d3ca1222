// --config: a JSON file of flags.
#include "harness.h"
#include "programs/eval_loglik/settings.h"

void crais::fuzz::read(std::string_view input) {
  static const Synopsis kSynopsis = eval_loglik_synopsis();
  read_settings(CommandLine(kSynopsis, {"model", "--config", file(input)}));
}
