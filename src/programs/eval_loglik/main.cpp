#include "programs/eval_loglik/eval_loglik.h"
#include "programs/eval_loglik/settings.h"

int main(int argc, char** argv) {
  return crais::run_main("eval-loglik", [&] {
    return crais::eval_loglik(crais::CommandLine(crais::eval_loglik_synopsis(), argc, argv));
  });
}
