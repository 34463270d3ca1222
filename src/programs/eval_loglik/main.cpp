#include "programs/eval_loglik/curve.h"
#include "programs/eval_loglik/eval_loglik.h"
#include "programs/eval_loglik/extend.h"
#include "programs/eval_loglik/settings.h"
#include "programs/eval_loglik/submit.h"

int main(int argc, char** argv) {
  return crais::run_main("eval-loglik", [&] {
    if (crais::is_submission(argc, argv)) return crais::submit_evaluation(argc, argv);
    if (crais::is_extension(argc, argv)) return crais::extend_evaluation(argc, argv);
    const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    if (crais::is_curve(arguments))
      return crais::evaluate_curve(crais::CommandLine(crais::curve_synopsis(), arguments));
    return crais::eval_loglik(crais::CommandLine(crais::eval_loglik_synopsis(), argc, argv));
  });
}
