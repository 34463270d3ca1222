// The programs are one file under several names: what it was started as says which one it is.
#include <filesystem>
#include <map>

#include "cli/program.h"
#include "programs/estimate_logz/logz_run.h"
#include "programs/eval_loglik/commands.h"
#include "programs/train_vae/train_vae.h"

int main(int argc, char** argv) {
  const std::map<std::string, int (*)(int, char**)> programs = {
      {"estimate-logz", crais::estimate_logz},
      {"eval-loglik", crais::eval_loglik},
      {"train-vae", crais::train_vae}};
  const std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename() : "crais";
  return crais::run_main(name, [&] {
    const auto found = programs.find(name);
    if (found == programs.end())
      throw crais::argument_error("start it as estimate-logz, eval-loglik or train-vae");
    return found->second(argc, argv);
  });
}
