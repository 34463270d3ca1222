// A schedule that is known beforehand: a heuristic, a file, or a frozen plan.
#include "schedules/fixed.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/files.h"

namespace crais {
namespace {

/// One beta a line; where lines have several comma-separated columns, the one headed "beta".
std::vector<double> read_betas(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<double> betas;
  size_t column = 0;
  std::string line;
  for (int64_t number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || line.front() == '#') continue;
    const auto cells = split(line, ',');
    const auto heading = std::find(cells.begin(), cells.end(), "beta");
    if (betas.empty() && heading != cells.end()) {
      column = static_cast<size_t>(heading - cells.begin());
      continue;
    }
    double beta = 0;
    const std::string cell = column < cells.size() ? cells[column] : "";
    const auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), beta);
    if (error != std::errc() || stop != cell.data() + cell.size())
      throw data_error(path + ", line " + std::to_string(number) + ": '" + cell +
                       "' is not a number; one beta a line was expected, from 0 to 1");
    betas.push_back(beta);
  }
  if (betas.size() < 2) throw data_error(path + ": holds fewer than two betas");
  return betas;
}

const Enrol<ScheduleRegistry> kEnrol(
    "file",
    {"file:F", "betas from a file, one a line (or its column 'beta'), from 0 to 1", "",
     [](Spec& spec, const ScheduleOptions&) {
       const std::string path = spec.word("path");
       const auto betas = read_betas(path);
       try {
         return std::make_unique<FixedSchedule>(at::tensor(betas, at::kDouble).unsqueeze(1));
       } catch (const Error& error) {
         throw data_error(path + ": " + error.what());
       }
     }});

}  // namespace

FixedSchedule::FixedSchedule(at::Tensor betas) : betas_(std::move(betas)) {
  TORCH_CHECK(betas_.dim() == 2 && betas_.size(0) >= 2, "schedule: betas must be [T+1,P]");
  const at::Tensor step = betas_.diff(1, 0);
  const at::Tensor previous = betas_.slice(0, 0, -1);
  if (!(betas_[0] == 0).all().item<bool>() || !(betas_[-1] == 1).all().item<bool>())
    throw data_error("a schedule must start at beta = 0 and end at 1");
  if (!((step > 0) | ((step == 0) & (previous == 1))).all().item<bool>())
    throw data_error("a schedule must rise at every step");
}

at::Tensor FixedSchedule::next(const Progress& progress, const Path&) const {
  return betas_[progress.index + 1].to(progress.beta.device()).expand_as(progress.beta);
}

std::unique_ptr<ScheduleRule> make_heuristic(int64_t steps,
                                             const std::function<double(double)>& shape) {
  at::Tensor betas = at::zeros({steps + 1, 1}, at::kDouble);
  auto* beta = betas.data_ptr<double>();
  for (int64_t i = 1; i < steps; ++i)
    beta[i] = shape(static_cast<double>(i) / static_cast<double>(steps));
  beta[steps] = 1.0;
  return std::make_unique<FixedSchedule>(betas);
}

}  // namespace crais
