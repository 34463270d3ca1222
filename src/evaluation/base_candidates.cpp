#include "evaluation/base_candidates.h"

#include <algorithm>
#include <optional>

namespace crais {
namespace {

constexpr double kBaseShare = 0.4;      // of a budget; pilots take a tenth
constexpr double kRefiningShare = 0.2;  // of an estimate

/// "best:1.1,starts=4" in its parts; a base without a widening has 1.
struct FitName {
  std::string rule, widening = "1", options;

  explicit FitName(const std::string& name) {
    const size_t colon = name.find(':'), comma = name.find(',');
    rule = name.substr(0, colon);
    if (colon == std::string::npos) return;
    widening = name.substr(colon + 1, comma - colon - 1);
    if (comma != std::string::npos) options = name.substr(comma);
  }
  std::string widened_by(const std::string& factor) const {
    return options.empty() && factor == "1" ? rule : rule + ":" + factor + options;
  }
  bool is_fit() const { return rule != "prior" && rule != "encoder"; }
};

double expected_cost(const std::string& name, const Target& target) {
  return BaseRegistry::instance().make("base", name)->expected_cost(target).value_or(0);
}

/// `name`, or the first cheaper base that costs at most `most`; nothing where no search for modes
/// is that cheap.
std::optional<std::string> within(const std::string& name, double most, const Target& target) {
  const FitName fit(name);
  if (!fit.is_fit()) return name;
  std::vector<std::string> cheaper = {name};
  const auto with_starts = [&](const std::vector<std::string>& counts) {
    for (const std::string& starts : counts)
      cheaper.push_back(fit.rule + ":" + fit.widening + ",starts=" + starts);
  };
  if (fit.rule == "best") with_starts({"24", "12", "4"});
  if (fit.rule == "modes") {
    with_starts({"8", "4"});
  } else {
    cheaper.push_back("laplace:" + fit.widening);
    cheaper.push_back("laplace:" + fit.widening + ",rounds=2");
    cheaper.emplace_back("prior");
  }
  for (const std::string& one : cheaper)
    if (expected_cost(one, target) <= most) return one;
  return {};
}

std::string refined(const std::string& name) {
  const FitName fit(name);
  const std::string own = fit.widened_by("1");
  const std::string nested = own.find(',') == std::string::npos ? own : "(" + own + ")";
  return "variational:" + fit.widening + (own == "laplace" ? "" : ",from=" + nested);
}

}  // namespace

std::vector<std::string> base_candidates(const Target& target) {
  if (target.may_be_multimodal()) return {"best:1.1", "prior"};
  if (target.amortised_base()) return {"laplace", "encoder", "prior"};
  return {"laplace", "prior"};
}

std::vector<std::string> base_candidates(const EstimatorParts& parts, const Target& target,
                                         int64_t num_problems, Rivals rivals) {
  const EstimateOptions& options = parts.options;
  constexpr int64_t kLong = 64;
  const bool is_long = !options.budget && options.steps >= kLong;
  const auto chains = static_cast<double>(options.chains * parts.num_anneals() *
                                          parts.evaluations_per_chain(options.steps));
  // A pilot's fit comes on top, which one problem alone would feel.
  const auto problems = static_cast<double>(num_problems);
  const double estimate = options.budget.value_or(chains);
  const double share = options.budget ? problems / (problems + 1) : 1;
  const double most_for_base = kBaseShare * share * estimate;
  std::vector<std::string> names = base_candidates(target), candidates;
  const bool may_be_many = rivals == Rivals::kMany ||
                           (rivals == Rivals::kUnknown && options.budget && target.can_select());
  if (may_be_many) names.insert(names.begin(), "modes");
  for (std::string name : names) {
    if (is_long && (name == "laplace" || name == "modes")) name += ":1.1";
    if (rivals == Rivals::kNone && FitName(name).rule == "best") name += ",starts=4";
    if (options.budget) {
      const std::optional<std::string> affordable = within(name, most_for_base, target);
      if (!affordable) continue;
      name = *affordable;
    }
    // The parts of `modes` reach past kinks, where a normal nearest to one mode does not.
    const FitName fit(name);
    if (fit.is_fit() && fit.rule != "modes" && !target.is_replicated()) {
      const std::string nearer = refined(name);
      const double all = expected_cost(nearer, target), more = all - expected_cost(name, target);
      if (more <= kRefiningShare * estimate && (!options.budget || all <= most_for_base))
        name = nearer;
    }
    if (std::find(candidates.begin(), candidates.end(), name) == candidates.end())
      candidates.push_back(name);
  }
  return candidates;
}

}  // namespace crais
