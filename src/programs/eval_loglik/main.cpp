#include "programs/eval_loglik/eval_loglik.h"
#include "programs/eval_loglik/extend.h"
#include "programs/eval_loglik/settings.h"
#include "programs/eval_loglik/submit.h"

int main(int argc, char** argv) {
  return crais::run_main("eval-loglik", [&] {
    if (crais::is_submission(argc, argv)) return crais::submit_evaluation(argc, argv);
    if (crais::is_extension(argc, argv)) return crais::extend_evaluation(argc, argv);
    return crais::eval_loglik(crais::CommandLine(crais::eval_loglik_synopsis(), argc, argv));
  });
}
