// The programs are one file under several names: what it was started as says which one it is.
#include <filesystem>
#include <map>

#include "cli/program.h"
#include "programs/estimate_logz/logz_run.h"
#include "programs/eval_loglik/commands.h"
#include "programs/eval_loglik/settings.h"
#include "programs/train_vae/train_vae.h"

namespace crais {
namespace {

struct Program {
  Synopsis (*synopsis)();
  int (*run)(const CommandLine& cli);
};

int run(const std::string& name, int argc, char** argv) {
  const std::map<std::string, Program> programs = {
      {"estimate-logz", {estimate_logz_synopsis, estimate_logz}},
      {"eval-loglik", {eval_loglik_synopsis, eval_loglik}},
      {"train-vae", {train_vae_synopsis, train_vae}}};
  const auto found = programs.find(name);
  if (found == programs.end())
    throw argument_error("start it as estimate-logz, eval-loglik or train-vae");
  return found->second.run({found->second.synopsis(), argc, argv});
}

}  // namespace
}  // namespace crais

int main(int argc, char** argv) {
  const std::string name = argc > 0 ? std::filesystem::path(argv[0]).filename() : "crais";
  return crais::run_main(name, [&] { return crais::run(name, argc, argv); });
}
