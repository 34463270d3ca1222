#include <c10/core/GradMode.h>

#include <filesystem>
#include <iostream>
#include <vector>

#include "core/rng.h"
#include "evaluation/summary.h"
#include "io/csv.h"
#include "io/npy.h"
#include "programs/estimate_logz/logz_run.h"
#include "programs/run_program.h"
#include "report/table.h"
#include "util/error.h"
#include "util/files.h"
#include "util/parallel.h"

namespace crais {
namespace {

/// The rows of the file: [P,K,D+1], or [P,K,D] resampled, float64 on the CPU.
at::Tensor rows_of(const LogzSettings& settings, const WeightedParticles& particles) {
  if (!settings.resampled) return at::cat({particles.z, particles.log_w.unsqueeze(-1)}, -1);
  at::Generator rng = make_generator(derive_seed(settings.estimator.seed, Purpose::kResample, 0));
  const auto scheme = ResamplingRegistry::instance().make("resampling", "systematic");
  const at::Tensor index = scheme->ancestors(particles.log_w, rng).unsqueeze(-1);
  return particles.z.gather(1, index.expand_as(particles.z)).contiguous();
}

std::string particle_lines(const at::Tensor& particles, int64_t dim) {
  std::vector<std::string> columns = {"problem", "particle"};
  for (int64_t d = 1; d <= dim; ++d) columns.push_back("z" + std::to_string(d));
  if (particles.size(2) > dim) columns.emplace_back("log_weight");
  CsvWriter csv(columns);
  const double* value = particles.data_ptr<double>();
  for (int64_t p = 0; p < particles.size(0); ++p)
    for (int64_t k = 0; k < particles.size(1); ++k) {
      std::vector<CsvCell> row = {p, k};
      row.reserve(columns.size());
      for (int64_t d = 0; d < particles.size(2); ++d) row.emplace_back(*value++);
      csv.add_row(row);
    }
  return csv.text();
}

/// Throws Error kArgument if no run can write the requested file, kCannotCreate if its folder
/// cannot be made.
void check_particles_file(const LogzSettings& settings) {
  const std::string& name = settings.particles_file;
  if (name.empty()) {
    if (settings.resampled) throw argument_error("--resampled needs --save-particles FILE");
    return;
  }
  if (!name.ends_with(".npy") && !name.ends_with(".csv"))
    throw argument_error("--save-particles ", name, ": the name must end in .npy or .csv");
  if (settings.store.resume || settings.max_time)
    throw argument_error(
        "--save-particles excludes --resume and --max-time: finished chunks keep sums over their "
        "particles, not the particles");
  if (settings.estimator.repeats > 1)
    throw argument_error("--save-particles needs a single repeat; ask for more --problems instead");
  make_output_folder(std::filesystem::absolute(name).parent_path());
}

/// FILE.npy: float64 [P,K,D+1], the coordinates z and the log-weight in nats. log_mean_exp over a
/// problem estimates log Z, so weights of all problems have one scale. FILE.csv: problem, particle,
/// z1, ..., zD, log_weight, a line for each particle. Resampled: systematically within each
/// problem, without the last column.
void write_particles(const LogzSettings& settings, const RunResults& results) {
  const auto kept = kept_particles(results);
  if (!kept) throw internal_error("--save-particles: a chunk has kept no particles");
  const at::Tensor particles = rows_of(settings, *kept);
  if (settings.particles_file.ends_with(".csv")) {
    const int64_t dim = particles.size(2) - (settings.resampled ? 0 : 1);
    write_file_atomic(settings.particles_file, particle_lines(particles, dim));
    return;
  }
  write_file_atomic(settings.particles_file, npy_text(particles));
}

/// Lists every target with its parameters and its description.
void list_targets() {
  Table table;
  for (const auto& [name, entry] : TargetRegistry::instance().entries())
    table.add_row({{"target", entry.usage}, {"density", entry.summary}});
  std::cout << table.text(stdout_width());
}

}  // namespace

void estimate_logz(const CommandLine& cli, const TargetOf& target_of) {
  LogzSettings settings = read_logz_settings(cli);
  resolve_sharing(settings, cli, /*is_shard=*/false);
  const std::shared_ptr<const Target> target = target_of(settings);
  if (settings.part && !settings.particles_file.empty())
    throw argument_error(
        "--save-particles: processes under torchrun share a folder, which keeps sums over "
        "particles, not the particles; run it without torchrun");
  check_particles_file(settings);
  const RunReport report =
      complete_run(settings, {"estimate-logz", "problems", "log Z", !settings.quiet},
                   [&](RunObserver& observer) { return run_logz(settings, target, observer); });
  if (!settings.particles_file.empty()) write_particles(settings, report.results);
  print(report, settings);
}

int estimate_logz(int argc, char** argv) {
  const CommandLine cli(estimate_logz_synopsis(), argc, argv);
  if (cli.operands().front() == "list" && cli.operands().size() == 1) {
    cli.allow_only({}, "list only prints the targets; the flag applies to estimates");
    list_targets();
    return 0;
  }
  use_one_thread_per_operation();
  const c10::NoGradGuard no_grad;
  estimate_logz(cli, named_target);
  return 0;
}

}  // namespace crais
