// Constant rate in the plane: how many transitions it takes, where it puts them, and what is left.
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

constexpr double kDelta = 1.0 / 32;

/// From the paper's figure of particles (alpha = 0, delta = 1/32, N = 1024) and from the notebook
/// released with it (0: not there), one seed each.
struct Plane {
  std::string target;
  int64_t transitions, notebook_transitions;
  double ess;
  std::string remark;
};
constexpr const char* kImproper = "improper";
const std::vector<Plane> kPlanes = {{"u1", 139, 154, 0.837, ""},
                                    {"u2", 90, 0, 0.026, kImproper},
                                    {"u3", 82, 0, 0.002, kImproper},
                                    {"u4", 65, 0, 0.002, kImproper},
                                    {"u2:4", 90, 0, 0.026, "walls at |z1| = 4"},
                                    {"u3:4", 82, 0, 0.002, "walls at |z1| = 4"},
                                    {"u4:4", 65, 0, 0.002, "walls at |z1| = 4"},
                                    {"u6", 5307, 6317, 0.455, ""},
                                    {"u5:s=std", 0, 0, 0, "paper: 487, --fault widths"},
                                    {"u10:s=std", 0, 0, 0, "paper: 38, --fault widths"},
                                    {"u11:s=std", 0, 0, 0, "paper: 17, --fault widths"}};

/// The same with the widths of components read as variances.
const std::vector<Plane> kWrongWidths = {{"u5", 487, 558, 0.827, "fault: widths"},
                                         {"u10", 38, 0, 0.259, "fault: widths"},
                                         {"u11", 17, 19, 0.096, "fault: widths"}};

class Figure2d : public Experiment {
 public:
  std::string title() const override { return "Constant rate in the plane"; }
  std::vector<Fault> faults() const override {
    return {{"widths", "mixtures divide squared distances by s", "by s^2, s being a deviation",
             "all of U5, U10, U11: the ring needs a tenth of the transitions"},
            {"tuning-particles", "the notebook tunes with 32 particles", "1024, as the text says",
             "M scatters, and is up to 15% low"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.seeds > 0 ? options.seeds : options.full ? 20 : 4;
    page.paragraph(
        "The geometric path from N(0, I) at delta = 1/32: 1024 chains, one leapfrog step of 0.5 a "
        "transition, " +
        std::to_string(seeds) +
        " seeds, each with a plan of its own. Constant rate lowers KL(q || target) by delta a "
        "step, so it takes about KL(N(0, I) || target) / delta transitions, which 100,000 draws of "
        "N(0, I) tell beforehand. U2 to U4 are improper: with walls they have a normaliser, "
        "without "
        "them the chains keep spreading and the ESS means little. The published numbers are one "
        "seed; those of U5, U10 and U11 take the widths of components for variances, and stand "
        "beside the same reading: rows of --fault widths.");
    std::vector<std::vector<Cell>> rows;
    Plot plot{"Temperatures", "transition / M", "beta", false, false, {}};
    Plot tail{"The way to 1", "transition / M", "1 - beta", false, true, {}};
    std::vector<Plane> planes = kPlanes;
    if (options.has("widths"))
      planes.insert(planes.end(), kWrongWidths.begin(), kWrongWidths.end());
    for (const Plane& plane : planes) {
      const DensityExperiment experiment(options, plane.target, seeds);
      const std::vector<VariantResult> results =
          experiment.run(plane.target, variants(options.has("tuning-particles")));
      rows.push_back(row_of(plane, experiment.truth(), results[0], results[1]));
      if (results.size() > 2) {
        Plane few = plane;
        few.remark += (few.remark.empty() ? "" : ", ") + std::string("fault: tuning-particles");
        rows.push_back(row_of(few, experiment.truth(), results[2], results[1]));
      }
      // Without walls the curves are those with them.
      if (!results[0].failed.empty() || plane.remark == kImproper) continue;
      const Series series = along_plan(plane.target, results[0].traces[0].betas);
      plot.series.push_back(series);
      tail.series.push_back(series);
      for (double& beta : tail.series.back().y) beta = 1 - beta;
    }
    page.table("figure-2d", "Transitions M and effective sample size of the estimate",
               {"target", "M", "KL / delta", "M, paper", "M, its notebook", "ESS", "ESS, paper",
                "log Z", "SE", "truth", "remark"},
               rows);
    page.plot("schedules", plot);
    page.plot("schedules-tail", tail);
  }

 private:
  static std::vector<Variant> variants(bool few_particles) {
    const std::string flags = "--schedule constant-rate:" + std::to_string(kDelta) +
                              " --kernel hmc --step-size 0.5 --per-problem --chains 1024"
                              " --pilot-chains ";
    std::vector<Variant> all = {{"constant rate", flags + "1024"},
                                {"KL", "--method elbo:100000 --base prior"}};
    if (few_particles) all.push_back({"constant rate, 32 tuning", flags + "32"});
    return all;
  }

  static std::vector<Cell> row_of(const Plane& plane, std::optional<double> truth,
                                  const VariantResult& annealed, const VariantResult& base) {
    const auto known = [](int64_t number) { return number > 0 ? Cell(number) : Cell("-"); };
    const Cell notebook = known(plane.notebook_transitions);
    const Cell their_ess = plane.ess > 0 ? Cell::number(plane.ess, 3) : Cell("-");
    if (!annealed.failed.empty())
      return {plane.target, annealed.reason(),
              "-",          known(plane.transitions),
              notebook,     "-",
              their_ess,    "-",
              "-",          "-",
              plane.remark};
    const Spread log_normalizer(annealed.value[0]);
    // KL(q0 || target) = log Z - E[log gamma - log q0].
    const double elbo = base.value.mean().item<double>();
    return {plane.target,
            Cell::number(annealed.transitions, 0),
            truth ? Cell::number((*truth - elbo) / kDelta, 0) : Cell("-"),
            known(plane.transitions),
            notebook,
            Cell::number(annealed.ess.mean().item<double>(), 3),
            their_ess,
            Cell::number(log_normalizer.mean, 3),
            Cell::number(log_normalizer.std_error, 3),
            truth ? Cell::number(*truth, 3) : Cell("-"),
            plane.remark};
  }
};

const Enrol<ExperimentRegistry> kEnrolFigure2d(
    "figure-2d", {"figure-2d", "constant rate in the plane: transitions, schedules, ESS",
                  "figure-2d", [](Spec&) { return std::make_unique<Figure2d>(); }});

}  // namespace
}  // namespace crais
