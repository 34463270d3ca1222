#include "programs/reproduce/experiments/highdim_published.h"

#include <map>

namespace crais::highdim {
namespace {

using PublishedRow = std::vector<PublishedError>;  // Normal, Mixture, Laplace, Student-t
const std::map<int64_t, std::map<std::string, PublishedRow>> kPublished = {
    {128,
     {{"linear", {{991.90, 69.87, 64}, {230.65, 6.16, 64}, {0.36, 0.22, 64}, {1.37, 0.19, 64}}},
      {"sigmoidal", {{907.57, 24.04, 64}, {270.55, 6.42, 64}, {0.07, 1.14, 64}, {1.46, 0.14, 64}}},
      {"geometric", {{780.58, 40.02, 64}, {507.43, 15.04, 64}, {1.21, 0.51, 64}, {2.04, 0.31, 64}}},
      {"CESS*",
       {{856.33, 29.96, 125.8}, {250.06, 6.14, 99.6}, {0.37, 0.90, 73.4}, {1.66, 0.15, 73.8}}},
      {"constant rate",
       {{788.67, 36.25, 78.0}, {308.82, 6.81, 112.0}, {0.68, 0.31, 117.2}, {0.69, 0.27, 98.4}}},
      {"constant rate*",
       {{807.77, 4.36, 88.2}, {228.54, 0.00, 72.0}, {0.01, 0.00, 72.0}, {1.53, 0.00, 73.0}}},
      {"MCD",
       {{114.18, 15.83, 12800},
        {680.60, 13.68, 12800},
        {1.01, 1.33, 12800},
        {1.99, 1.26, 12800}}}}},
    {512,
     {{"linear", {{5279.55, 79.56, 64}, {1087.38, 22.68, 64}, {9.03, 0.77, 64}, {8.16, 0.45, 64}}},
      {"sigmoidal",
       {{4757.13, 59.34, 64}, {1022.60, 23.55, 64}, {6.95, 2.48, 64}, {8.71, 1.24, 64}}},
      {"geometric",
       {{4435.05, 110.36, 64}, {1683.21, 13.73, 64}, {13.17, 0.40, 64}, {13.98, 1.08, 64}}},
      {"CESS*",
       {{4423.42, 204.04, 117.4}, {1272.70, 158.61, 85.2}, {8.27, 1.33, 94.8}, {9.30, 0.56, 81.6}}},
      {"constant rate",
       {{4413.95, 95.75, 129.6}, {1200.12, 27.12, 140.0}, {8.75, 1.84, 110.8}, {8.40, 1.28, 98.4}}},
      {"constant rate*",
       {{4546.65, 57.80, 128.8}, {1069.32, 1.96, 75.0}, {7.93, 0.74, 78.6}, {8.98, 0.00, 73.0}}},
      {"MCD",
       {{707.85, 110.02, 12800},
        {2173.25, 43.78, 12800},
        {16.94, 2.51, 12800},
        {20.95, 0.93, 12800}}}}}};

}  // namespace

const PublishedError* published(int64_t dim, const std::string& family, size_t target) {
  const auto& table = kPublished.at(dim);
  const auto row = table.find(family);
  return row != table.end() && target < row->second.size() ? &row->second[target] : nullptr;
}

}  // namespace crais::highdim
