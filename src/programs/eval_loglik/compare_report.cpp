#include "programs/eval_loglik/compare_report.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <utility>

#include "evaluation/comparison.h"
#include "io/csv.h"
#include "io/json.h"
#include "report/run_page.h"
#include "report/table.h"
#include "util/error.h"
#include "util/files.h"
#include "util/format.h"
#include "util/version.h"

namespace crais {
namespace {

using nlohmann::json;

constexpr size_t kMostChanged = 12;  // pictures of the most changed images in each direction

/// Settings for the place of images, which are not compared: the digests of the images are.
const std::vector<std::string> kOfImages = {"data",         "labels",     "split",
                                            "binarisation", "scale",      "limit",
                                            "indices",      "dequantise", "simulate"};

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// The estimates of every model by one method.
std::vector<ImageEstimates> estimates_of(const std::vector<ComparedModel>& models,
                                         const std::string& method) {
  std::vector<ImageEstimates> all;
  for (const ComparedModel& model : models)
    for (const MethodTable& table : tables(model.results))
      if (table.method == method) all.emplace_back(table);
  return all;
}

MeanEstimate mean_of(const ImageEstimates& estimates) {
  return mean_over_images(at::tensor(estimates.value, at::kDouble).unsqueeze(0),
                          at::tensor(estimates.std_error, at::kDouble).unsqueeze(0));
}

int64_t count_of(const std::vector<bool>& flags) {
  return std::count(flags.begin(), flags.end(), true);
}

std::string percent(double share) { return fixed(100 * share, 1) + "%"; }

/// The 95% interval of the difference (negated if `opposite`): "8.28 to 8.94".
std::string interval(const Comparison& c, bool opposite = false) {
  if (!std::isfinite(c.low) || !std::isfinite(c.high)) return "unknown";
  const int decimals = std::clamp(
      static_cast<int>(std::ceil(1 - std::log10(std::max(c.difference.data_std_error, 1e-12)))), 0,
      6);
  return opposite ? fixed(-c.high, decimals) + " to " + fixed(-c.low, decimals)
                  : fixed(c.low, decimals) + " to " + fixed(c.high, decimals);
}

/// The rows that are better under a, and those that are better under b: the most changed first, at
/// most `count` of each.
std::pair<std::vector<size_t>, std::vector<size_t>> changes(const Comparison& c, size_t count) {
  std::vector<size_t> order(c.per_image.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto key = [&](size_t i) { return std::isnan(c.per_image[i]) ? 0.0 : c.per_image[i]; };
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return key(i) > key(j); });
  std::vector<size_t> gained, lost;
  for (size_t i = 0; i < std::min(count, order.size()); ++i) {
    if (c.per_image[order[i]] > 0) gained.push_back(order[i]);
    const size_t last = order[order.size() - 1 - i];
    if (c.per_image[last] < 0) lost.push_back(last);
  }
  return {gained, lost};
}

/// A report that compares each of several comparable models with every other.
class ComparisonReport {
 public:
  /// Throws Error kArgument if the models have no method in common.
  explicit ComparisonReport(std::vector<ComparedModel> models) : models_(std::move(models)) {
    for (const MethodTable& table : tables(models_.front().results)) {
      std::vector<ImageEstimates> by_model = estimates_of(models_, table.method);
      if (by_model.size() != models_.size()) continue;
      methods_.push_back(table.method);
      means_.emplace_back();
      for (const ImageEstimates& estimates : by_model) means_.back().push_back(mean_of(estimates));
      estimates_.push_back(std::move(by_model));
    }
    if (methods_.empty())
      throw argument_error(
          "the runs have no --method in common; evaluate all models by the same method");
    for (size_t m = 0; m < methods_.size(); ++m)
      for (size_t a = 0; a < models_.size(); ++a)
        for (size_t b = a + 1; b < models_.size(); ++b)
          pairs_.push_back({methods_[m], a, b, compare(estimates_[m][a], estimates_[m][b])});
    indices_ = indices_of(models_.front().results);
  }

  void write(const std::string& folder) const {
    const std::filesystem::path path(folder);
    write_file_atomic(path / "report.html", page());
    write_file_atomic(path / "per_image.csv", per_image_csv());
    write_file_atomic(path / "comparison.json", to_text(summary()));
  }

  void print(const std::string& folder, Format format, int width) const {
    if (print_for_programs(summary(), format)) return;
    std::cout << models_table().text(width) << "\n" << pairs_table().text(width) << "\n";
    for (const Pair& pair : pairs_) std::cout << wrapped(verdict(pair), width);
    for (const std::string& warning : warnings()) std::cout << wrapped(warning, width);
    if (!folder.empty())
      std::cout << "Files: " << folder << "/comparison.json, per_image.csv, report.html\n";
    std::cout << std::flush;
  }

 private:
  /// Two models compared by one method.
  struct Pair {
    std::string method;
    size_t a = 0, b = 0;  // indices of the models
    Comparison comparison;
  };

  /// The name of the difference: "A - B".
  std::string difference_name(const Pair& pair) const {
    return models_[pair.a].label + " - " + models_[pair.b].label;
  }

  /// A sentence that names the better model, how certain the difference is, and its other possible
  /// causes.
  std::string verdict(const Pair& pair) const {
    const Comparison& c = pair.comparison;
    const MeanEstimate& d = c.difference;
    const bool is_seen = c.low > 0 || c.high < 0, b_wins = d.mean < 0;
    const std::string &a = models_[pair.a].label, &b = models_[pair.b].label;
    std::string text =
        is_seen
            ? (b_wins ? b + " is better than " + a : a + " is better than " + b) + " by " +
                  with_error(std::abs(d.mean), d.data_std_error) + " nats an image"
            : "No difference between " + a + " and " + b + " is seen: " + difference_name(pair) +
                  " is " + with_error(d.mean, d.data_std_error) + " nats an image";
    text += " (" + pair.method + ", 95% interval " + interval(c, is_seen && b_wins) + "). " +
            percent(c.share_better) + " of the images are better under " + a +
            ". Paired by image the error is " + significant(d.data_std_error, 2) +
            "; of two separate sets of images it would be " + significant(c.unpaired_std_error, 2) +
            ".";
    const double chains = 2 * d.monte_carlo_std_error;
    if (std::isfinite(c.bias) && d.mean * c.bias > 0 &&
        std::abs(d.mean) <= 2 * std::abs(c.bias) + chains)
      text += " The estimates' own biases differ by about " + significant(c.bias, 2) +
              " nats, which could explain the difference: evaluate both with more chains or "
              "temperatures.";
    else if (std::abs(d.mean) <= chains)
      text +=
          " The chains' own error is as large as the difference: evaluate both with more chains.";
    if (c.unflagged)
      text += " " + with_commas(c.flagged) + " images are flagged in one or both; without them " +
              difference_name(pair) + " is " +
              with_error(c.unflagged->mean, c.unflagged->data_std_error) + ".";
    else if (c.flagged > 0)
      text += " Every image is flagged in one or both: neither estimate is to be trusted.";
    return text;
  }

  std::vector<std::string> warnings() const {
    std::vector<std::string> lines;
    const json& first = models_.front().run.at("settings");
    for (size_t i = 1; i < models_.size(); ++i) {
      std::string differences;
      const json& other = models_[i].run.at("settings");
      for (const auto& [key, value] : first.items()) {
        const bool of_images =
            std::find(kOfImages.begin(), kOfImages.end(), key) != kOfImages.end();
        if (of_images || !other.contains(key) || other[key] == value) continue;
        differences += (differences.empty() ? "" : ", ") + key + " " + text_of(value) + " and " +
                       text_of(other[key]);
      }
      if (!differences.empty())
        lines.push_back(models_.front().label + " and " + models_[i].label +
                        " were not evaluated alike (" + differences +
                        "): their biases may differ more than the chains suggest.");
    }
    return lines;
  }

  Table models_table() const {
    Table table(
        {"model", "method", "log p(x)", "data SE", "MC SE", "bias", "flagged", "file or folder"},
        "Models, nats an image");
    for (size_t m = 0; m < methods_.size(); ++m)
      for (size_t i = 0; i < models_.size(); ++i) {
        const ImageEstimates& e = estimates_[m][i];
        const double bias = at::tensor(e.bias, at::kDouble).mean().item<double>();
        table.add_row({models_[i].label, methods_[m], fixed(means_[m][i].mean, 3),
                       fixed(means_[m][i].data_std_error, 3),
                       significant(means_[m][i].monte_carlo_std_error, 2),
                       std::isnan(bias) ? "-" : significant(bias, 2),
                       with_commas(count_of(e.flagged)), models_[i].name});
      }
    return table;
  }

  Table pairs_table() const {
    Table table({"pair", "method", "difference", "SE", "95% interval", "unpaired SE", "MC SE",
                 "bias", "better", "clearly better", "clearly worse"},
                "Differences over " + with_commas(static_cast<int64_t>(indices_.size())) +
                    " images, nats an image",
                /*names=*/2);
    for (const Pair& pair : pairs_) {
      const Comparison& c = pair.comparison;
      table.add_row({difference_name(pair), pair.method, fixed(c.difference.mean, 3),
                     significant(c.difference.data_std_error, 2), interval(c),
                     significant(c.unpaired_std_error, 2),
                     significant(c.difference.monte_carlo_std_error, 2),
                     std::isnan(c.bias) ? "-" : significant(c.bias, 2), percent(c.share_better),
                     with_commas(c.clearly_better), with_commas(c.clearly_worse)});
    }
    return table;
  }

  json summary() const {
    json object = {{"program", "eval-loglik compare"},
                   {"crais", crais_version()},
                   {"images", models_.front().run.at("images")},
                   {"models", json::array()},
                   {"results", json::array()},
                   {"warnings", warnings()}};
    for (size_t i = 0; i < models_.size(); ++i) {
      json model = {
          {"label", models_[i].label}, {"path", models_[i].name}, {"run", models_[i].run}};
      for (size_t m = 0; m < methods_.size(); ++m)
        model["estimates"].push_back(
            {{"method", methods_[m]},
             {"log_likelihood", json_number(means_[m][i].mean)},
             {"data_std_error", json_number(means_[m][i].data_std_error)},
             {"monte_carlo_std_error", json_number(means_[m][i].monte_carlo_std_error)},
             {"flagged", count_of(estimates_[m][i].flagged)}});
      object["models"].push_back(std::move(model));
    }
    for (const Pair& pair : pairs_) {
      const Comparison& c = pair.comparison;
      json result = {
          {"a", models_[pair.a].label},
          {"b", models_[pair.b].label},
          {"method", pair.method},
          {"images", indices_.size()},
          {"difference", json_number(c.difference.mean)},
          {"data_std_error", json_number(c.difference.data_std_error)},
          {"monte_carlo_std_error", json_number(c.difference.monte_carlo_std_error)},
          {"interval_low", json_number(c.low)},
          {"interval_high", json_number(c.high)},
          {"unpaired_std_error", json_number(c.unpaired_std_error)},
          {"estimated_bias", json_number(c.bias)},
          {"share_better", c.share_better},
          {"share_std_error", c.share_std_error},
          {"clearly_better", c.clearly_better},
          {"clearly_worse", c.clearly_worse},
          {"flagged", c.flagged},
          {"unflagged_difference", c.unflagged ? json_number(c.unflagged->mean) : json()},
          {"verdict", verdict(pair)}};
      object["results"].push_back(std::move(result));
    }
    return object;
  }

  std::string per_image_csv() const {
    std::vector<std::string> headers = {"image", "method"};
    for (const ComparedModel& model : models_)
      headers.insert(headers.end(),
                     {model.label, model.label + "_std_error", model.label + "_flagged"});
    for (const Pair& pair : pairs_)
      if (pair.method == methods_.front())
        headers.insert(headers.end(),
                       {difference_name(pair), difference_name(pair) + "_std_error"});
    CsvWriter csv(headers);
    for (size_t m = 0; m < methods_.size(); ++m)
      for (size_t i = 0; i < indices_.size(); ++i) {
        std::vector<CsvCell> cells = {indices_[i], methods_[m]};
        for (const ImageEstimates& e : estimates_[m]) {
          cells.emplace_back(e.value[i]);
          cells.emplace_back(e.std_error[i]);
          cells.emplace_back(int64_t{e.flagged[i]});
        }
        for (const Pair& pair : pairs_)
          if (pair.method == methods_[m]) {
            cells.emplace_back(pair.comparison.per_image[i]);
            cells.emplace_back(pair.comparison.std_error[i]);
          }
        csv.add_row(cells);
      }
    return csv.text();
  }

  std::string page() const {
    HtmlPage page("Comparison of " + with_commas(static_cast<int64_t>(models_.size())) + " models");
    for (const Pair& pair : pairs_) page.lead(verdict(pair));
    for (const std::string& warning : warnings()) page.paragraph(warning);
    add_table(page, models_table());
    add_table(page, pairs_table());
    at::Tensor thumbnails;
    for (const ComparedModel& model : models_)
      if (!thumbnails.defined()) thumbnails = model.results.thumbnails;
    for (const Pair& pair : pairs_) {
      const Comparison& c = pair.comparison;
      const std::string name = difference_name(pair);
      page.heading(name + " by " + pair.method);
      add_histogram(
          page, {name, name + ", nats", "images", c.per_image},
          "Histogram of " + name + " over the images, mean " + fixed(c.difference.mean, 3));
      if (!thumbnails.defined()) continue;
      const auto items = [&](const std::vector<size_t>& rows) {
        std::vector<GalleryItem> gallery;
        gallery.reserve(rows.size());
        for (const size_t i : rows)
          gallery.push_back(gallery_item(thumbnails, static_cast<int64_t>(i), indices_[i],
                                         {"image " + std::to_string(indices_[i]),
                                          with_error(c.per_image[i], c.std_error[i])}));
        return gallery;
      };
      const auto [gained, lost] = changes(c, kMostChanged);
      if (!gained.empty())
        page.gallery(
            "Images most better under " + models_[pair.a].label + ", " + name + " in nats:",
            items(gained));
      if (!lost.empty())
        page.gallery("Images most better under " + models_[pair.b].label + ":", items(lost));
    }
    page.begin_fold("How to read this");
    page.paragraph(
        "SE is the error of the mean difference over such images, chains included; MC SE that of "
        "the "
        "chains alone. Unpaired SE is the error were the models evaluated on separate images. An "
        "image is clearly better where its difference is above two Monte Carlo errors. Bias is "
        "what "
        "the chains suggest of the difference.");
    page.end_fold();
    return page.text();
  }

  std::vector<ComparedModel> models_;
  std::vector<std::string> methods_;
  std::vector<std::vector<ImageEstimates>> estimates_;  // [method][model]
  std::vector<std::vector<MeanEstimate>> means_;        // [method][model]
  std::vector<Pair> pairs_;
  std::vector<int64_t> indices_;  // of the images in their data set
};

}  // namespace

void check_comparable(const ComparedModel& first, const ComparedModel& other) {
  const json& images = first.run.at("images");
  const json& other_images = other.run.at("images");
  const auto differ = [&](const std::string& key) {
    return images.contains(key) && other_images.contains(key) && images[key] != other_images[key];
  };
  const std::string names = first.name + " and " + other.name;
  if (differ("sha256") || !images.contains("sha256") || !other_images.contains("sha256")) {
    for (const char* key :
         {"source", "count", "binarisation", "dequantisation", "scale", "values", "file_md5"})
      if (differ(key))
        throw argument_error(names + " have different images (" + key + ": " +
                             text_of(images[key]) + " and " + text_of(other_images[key]) +
                             "); a comparison is paired by image: evaluate both on the same");
    throw argument_error(names +
                         " have different images (sha256 of their pixels); a comparison is paired "
                         "by image: evaluate both on the same --split, --indices and --limit");
  }
  if (differ("quantity"))
    throw argument_error(names + ": p(x) is a " + text_of(images["quantity"]) + " for one and a " +
                         text_of(other_images["quantity"]) +
                         " for the other; their nats are not comparable");
  if (differ("bits_offset"))
    throw argument_error(names + ": the densities belong to data at different scales (--scale)");
  if (indices_of(first.results) != indices_of(other.results))
    throw data_error(names + ": name other images than their run.json");
}

void report_comparison(std::vector<ComparedModel> models, const std::string& folder,
                       Format format) {
  const ComparisonReport report(std::move(models));
  if (!folder.empty()) report.write(folder);
  report.print(folder, format, stdout_width());
}

}  // namespace crais
