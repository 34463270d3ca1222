#include <algorithm>
#include <cmath>
#include <numeric>

#include "evaluation/comparison.h"
#include "programs/eval_loglik/diagnose.h"
#include "programs/eval_loglik/report.h"
#include "programs/eval_loglik/settings.h"
#include "report/pictures.h"
#include "report/run_page.h"
#include "report/run_report.h"
#include "util/format.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr size_t kExtremes = 12;      // pictures of the least and of the most probable images
constexpr size_t kMostFlagged = 200;  // of flagged images; per_image.csv lists the others

/// The first method's estimates with their images.
struct Pictured : ImageEstimates {
  std::vector<int64_t> indices;  // in the data set
  std::vector<int64_t> flags;    // of any repeat

  explicit Pictured(const EvalResults& results, const MethodTable& table)
      : ImageEstimates(table), indices(indices_of(results)), flags(indices.size(), 0) {
    for (const auto& repeat : table.flags)
      for (size_t i = 0; i < repeat.size(); ++i) flags[i] |= repeat[i];
  }

  std::vector<size_t> by_value() const {
    std::vector<size_t> order(value.size());
    std::iota(order.begin(), order.end(), size_t{0});
    // Values that are not numbers come first: they have no order.
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::isnan(value[a]) ? !std::isnan(value[b]) : value[a] < value[b];
    });
    return order;
  }
};

/// The main result as text: "ais: -85.11 +- 0.72 nats over 1,000 images. ..."
std::string answer(const LikelihoodSummary& s) {
  const MeanEstimate& mean = s.log_likelihood;
  return s.method + ": mean log p(x) = " + with_error(mean.mean, mean.data_std_error) +
         " nats over " + with_commas(s.problems) + " images, a " + s.bound +
         ". Judged by its chains, the estimate itself is " +
         trust_words(mean.monte_carlo_std_error, s.bias) + ". " + flagged_words(s);
}

void add_pictures(HtmlPage& page, const EvalResults& results, const Pictured& images) {
  if (!results.thumbnails.defined()) return;
  const auto items = [&](const std::vector<size_t>& rows) {
    std::vector<GalleryItem> gallery;
    for (const size_t i : rows) {
      std::vector<std::string> lines = {"image " + std::to_string(images.indices[i]),
                                        with_error(images.value[i], images.std_error[i])};
      if (images.flags[i] != 0) lines.push_back("flags: " + flag_words(images.flags[i]));
      gallery.push_back(
          gallery_item(results.thumbnails, static_cast<int64_t>(i), images.indices[i], lines));
    }
    return gallery;
  };
  page.heading("Images");
  const std::vector<size_t> order = images.by_value();
  const size_t count = std::min(kExtremes, (order.size() + 1) / 2);
  page.gallery("The least probable, log p(x) in nats:",
               items({order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count)}));
  page.gallery("The most probable:",
               items({order.rbegin(), order.rbegin() + static_cast<std::ptrdiff_t>(count)}));
  std::vector<size_t> flagged;
  for (const size_t i : order)
    if (images.flags[i] != 0) flagged.push_back(i);
  if (flagged.empty()) return;
  std::string words = "Flagged, whose estimates are not to be trusted";
  if (flagged.size() > kMostFlagged) {
    words += " (the " + std::to_string(kMostFlagged) + " least probable of " +
             with_commas(static_cast<int64_t>(flagged.size())) + "; per_image.csv names all)";
    flagged.resize(kMostFlagged);
  }
  page.gallery(words + ":", items(flagged));
}

/// The path of the model in a summary.json; "" if it has none.
std::string model_path(const json& summary) {
  for (const char* kind : {"checkpoint", "model"})
    if (summary.contains(kind) && summary[kind].contains("path") &&
        summary[kind]["path"].is_string())
      return summary[kind]["path"].get<std::string>();
  return "";
}

}  // namespace

GalleryItem gallery_item(const at::Tensor& thumbnails, int64_t row, int64_t number,
                         const std::vector<std::string>& lines) {
  std::string alt = "image " + std::to_string(number);
  for (size_t i = 1; i < lines.size(); ++i) alt += ", " + lines[i];
  return {png_of(thumbnails[row]), alt, lines};
}

std::string page_of(const EvalResults& results, const std::vector<LikelihoodSummary>& methods,
                    const json& summary) {
  const std::string model = model_path(summary);
  HtmlPage page("Log-likelihood" + (model.empty() ? "" : " of " + model));
  for (const LikelihoodSummary& s : methods) page.lead(answer(s));
  for (const std::string& warning : warnings_of(summary)) page.lead("Warning: " + warning + ".");
  for (const Table& table : result_tables(methods)) add_table(page, table);
  page.paragraph(kReading);

  const std::vector<MethodTable> estimates = tables(results);
  const Pictured images(results, estimates.front());
  const std::string title = "log p(x) by " + methods.front().method;
  add_histogram(page, {title, "log p(x), nats", "images", images.value},
                "Histogram of log p(x): " + with_commas(methods.front().problems) +
                    " images, mean " + fixed(methods.front().log_likelihood.mean, 2) + " nats");
  add_pictures(page, results, images);
  page.heading("How far to trust it");
  for (const Finding& finding : diagnose(results, summary)) page.paragraph(sentence_of(finding));
  const MeanEstimate& first = methods.front().log_likelihood;
  add_what_helps(page, first.monte_carlo_std_error, first.data_std_error, "image");
  add_effective_sizes(page, estimates, "image");
  add_annealing(page, results);
  const std::string file = model.empty() ? "MODEL" : model;
  add_record(page, summary, command_of(eval_loglik_synopsis(), {file}, summary.at("settings")));
  return page.text();
}

}  // namespace crais
