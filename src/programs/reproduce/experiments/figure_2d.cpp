// Constant rate in the plane: the number of transitions, their positions, and the final divergence.
#include <cmath>
#include <string>
#include <vector>

#include "programs/reproduce/density_experiment.h"

namespace crais {
namespace {

constexpr double kDelta = 1.0 / 32;

/// Numbers from the paper's figure of particles (alpha = 0, delta = 1/32, N = 1024) and from the
/// notebook released with it (NaN: missing), one seed each.
struct Plane {
  std::string target;
  double transitions, notebook_transitions, ess;
  std::string remark;
};
constexpr const char* kImproper = "improper";
const std::vector<Plane> kPlanes = {{"u1", 139, 154, 0.837, ""},
                                    {"u2", 90, NAN, 0.026, kImproper},
                                    {"u3", 82, NAN, 0.002, kImproper},
                                    {"u4", 65, NAN, 0.002, kImproper},
                                    {"u2:4", 90, NAN, 0.026, "walls at |z1| = 4"},
                                    {"u3:4", 82, NAN, 0.002, "walls at |z1| = 4"},
                                    {"u4:4", 65, NAN, 0.002, "walls at |z1| = 4"},
                                    {"u6", 5307, 6317, 0.455, ""},
                                    {"u5:s=std", NAN, NAN, NAN, "paper: 487, --fault widths"},
                                    {"u10:s=std", NAN, NAN, NAN, "paper: 38, --fault widths"},
                                    {"u11:s=std", NAN, NAN, NAN, "paper: 17, --fault widths"}};

/// The targets with the widths of components read as variances.
const std::vector<Plane> kWrongWidths = {{"u5", 487, 558, 0.827, "fault: widths"},
                                         {"u10", 38, NAN, 0.259, "fault: widths"},
                                         {"u11", 17, 19, 0.096, "fault: widths"}};

class Figure2d : public Experiment {
 public:
  std::vector<Fault> faults() const override {
    return {{"widths", "mixtures divide squared distances by s", "by s^2, s being a deviation",
             "all of U5, U10, U11: the ring needs a tenth of the transitions"},
            {"tuning-particles", "the notebook tunes with 32 particles", "1024, as the text says",
             "M scatters, and is up to 15% low"}};
  }

  void run(const ExperimentOptions& options, Page& page) const override {
    const int64_t seeds = options.num_seeds(20, 4);
    page.paragraph(
        "The geometric path from N(0, I) at delta = 1/32: 1024 chains, one leapfrog step of 0.5 a "
        "transition, " +
        std::to_string(seeds) +
        " seeds with a plan each. Theory says KL(N(0, I) || target) / delta transitions; 100,000 "
        "draws of N(0, I) say how many that is. U2 to U4 are improper but for walls. Published "
        "numbers are one seed; those of U5, U10 and U11 take widths for variances (--fault "
        "widths).");
    const std::string flags = "--schedule constant-rate:" + std::to_string(kDelta) +
                              " --kernel hmc --step-size 0.5 --per-problem --chains 1024"
                              " --pilot-chains ";
    std::vector<Variant> variants = {{"constant rate", flags + "1024"},
                                     {"KL", "--method elbo:100000 --base prior"}};
    if (options.has("tuning-particles"))
      variants.push_back({"constant rate, 32 tuning", flags + "32"});
    std::vector<Row> rows, plans;
    std::vector<Plane> planes = kPlanes;
    if (options.has("widths"))
      planes.insert(planes.end(), kWrongWidths.begin(), kWrongWidths.end());
    for (const Plane& plane : planes) {
      const DensityExperiment experiment(options, plane.target, seeds);
      const std::vector<VariantResult> results = experiment.run(plane.target, variants);
      // KL(q0 || target) = log Z - E[log gamma - log q0].
      const double kl = experiment.truth() - results[1].value.mean().item<double>();
      rows.push_back(row_of(plane, experiment.truth(), results[0], kl));
      if (results.size() > 2) {
        Plane few = plane;
        few.remark += (few.remark.empty() ? "" : ", ") + std::string("fault: tuning-particles");
        rows.push_back(row_of(few, experiment.truth(), results[2], kl));
      }
      // Without walls, the curves equal those with walls.
      if (!results[0].failed.empty() || plane.remark == kImproper) continue;
      plans.push_back(along_plan({{"target", plane.target}}, results[0].traces[0].betas));
    }
    add_table(page, "figure-2d", "Transitions M and effective sample size of the estimate", rows);
    add_table(page, "plans", "Temperatures against transition / M", plans, /*folded=*/true);
  }

 private:
  static Row row_of(const Plane& plane, double truth, const VariantResult& result, double kl) {
    const Spread log_z(result.value[0]);
    return {{"target", plane.target},
            {"M", result.or_reason(number(result.transitions, 0))},
            {"KL / delta", number(kl / kDelta, 0)},
            {"M, paper", number(plane.transitions, 0)},
            {"M, its notebook", number(plane.notebook_transitions, 0)},
            {"ESS", number(result.mean_ess(), 3)},
            {"ESS, paper", number(plane.ess, 3)},
            {"log Z", number(log_z.mean, 3)},
            {"SE", number(log_z.std_error, 3)},
            {"truth", number(truth, 3)},
            {"remark", plane.remark}};
  }
};

const EnrolExperiment<Figure2d> kEnrolFigure2d(
    "figure-2d", "constant rate in the plane: transitions, schedules, ESS");

}  // namespace
}  // namespace crais
