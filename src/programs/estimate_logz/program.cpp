#include <c10/core/GradMode.h>

#include <filesystem>
#include <iostream>
#include <vector>

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

std::string particle_lines(const at::Tensor& particles) {
  std::vector<std::string> columns = {"problem", "particle"};
  for (int64_t d = 1; d < particles.size(2); ++d) columns.push_back("z" + std::to_string(d));
  columns.emplace_back("log_weight");
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
  if (name.empty()) return;
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
/// z1, ..., zD, log_weight, a line for each particle.
void write_particles(const LogzSettings& settings, const RunResults& results) {
  const auto kept = kept_particles(results);
  if (!kept) throw internal_error("--save-particles: a chunk has kept no particles");
  const at::Tensor particles = at::cat({kept->z, kept->log_w.unsqueeze(-1)}, -1);
  const bool is_csv = settings.particles_file.ends_with(".csv");
  write_file_atomic(settings.particles_file,
                    is_csv ? particle_lines(particles) : npy_text(particles));
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
  RunReport report =
      complete_run(settings, {"estimate-logz", "problems", "log Z", !settings.quiet},
                   [&](RunObserver& observer) { return run_logz(settings, target, observer); });
  if (!settings.particles_file.empty()) write_particles(settings, report.results);
  print(std::move(report), settings.out, settings.format);
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
