#include "programs/estimate_logz/settings.h"

#include "util/error.h"

namespace crais {

Synopsis estimate_logz_synopsis() {
  Synopsis s;
  s.program = "estimate-logz";
  s.summary =
      "Estimates the log normaliser of a named density, in nats, and compares it with the truth "
      "where that is known.";
  s.operands = "TARGET | list";
  s.min_operands = 1;
  s.max_operands = 4096;
  s.groups = estimator_options("problem", "prior");
  s.presets = estimator_presets(
      "constant rate from the prior as in the paper's figure in the plane", "0.03125", "1024");
  s.groups.insert(
      s.groups.end(),
      {{"Target",
        {option::integer("problems", "R", 10,
                         "independent replicates of the target: their spread is the error bar")
             .at_least(1),
         option::text("data-dir", "DIR", {},
                      "where a target's FILE may lie, or DIR/uci (else $CRAIS_DATA, ./data)")}},
       {"Running",
        {option::device(), option::threads(),
         option::choice("dtype", {"float32", "float64"}, "float64", "of particles"),
         option::integer("chunk", "N", 5,
                         "replicates a unit of work; part of what results depend on")
             .at_least(1)}},
       output_options("summary.json, per_problem.csv, schedule.csv and chunks")});
  s.examples =
      "  estimate-logz list\n"
      "  estimate-logz mixture:128 --schedule linear --steps 64 --step-size 0.5 --chains 4096\n"
      "  estimate-logz u1 --preset paper --out results/u1\n"
      "  estimate-logz logistic-regression:pima,variance=5 --base laplace --steps 256\n";
  return s;
}

LogzSettings read_logz_settings(const CommandLine& cli) {
  if (cli.operands().size() > 1)
    throw argument_error("unexpected '" + cli.operands()[1] +
                         "': one target is estimated at a time");
  return {read_run(cli, "problem"), cli.operands().front(), cli.integer("problems"),
          cli.text("data-dir", "")};
}

}  // namespace crais
