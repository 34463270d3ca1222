// Radon in houses of Minnesota: a regression whose intercepts differ by county.
//                                                       [Gelman & Hill 2007; posteriordb; PyMC]
// The measurements are public (EPA, State Residential Radon Survey), here as PyMC3 3.8 carries them
// (Apache License 2.0).
#include <cmath>
#include <memory>
#include <vector>

#include "targets/replicated_function.h"

namespace crais {
namespace {

constexpr int64_t kCounties = 85, kHouses = 919;

// Houses of each county, which follow one another below, and its uranium, parts per million.
const std::vector<int64_t> kHousesOf = {
    4,  52, 3,  7,   4,  3,  14, 4,  10, 6,  5, 4, 6, 14, 4, 2, 4,  12, 63, 3,  9, 6,
    2,  9,  14, 105, 6,  5,  3,  11, 5,  4,  4, 3, 7, 2,  9, 4, 5,  4,  8,  1,  9, 7,
    13, 5,  2,  9,   13, 1,  4,  3,  3,  23, 8, 3, 6, 4,  4, 2, 32, 5,  3,  11, 2, 14,
    13, 8,  4,  116, 25, 10, 2,  4,  3,  4,  7, 5, 4, 46, 3, 1, 13, 13, 2};
const std::vector<double> kUranium = {
    0.502054, 0.428565, 0.892741, 0.552472, 0.866849, 1.47264,  1.31208,  1.31993,  0.717261,
    1.10061,  0.544319, 1.3148,   0.479352, 1.41027,  0.941896, 0.603508, 1.40433,  0.530789,
    0.976144, 1.30194,  1.16849,  1.34316,  1.51424,  1.25133,  1.21727,  0.907991, 1.65455,
    0.66992,  0.471483, 0.515124, 1.36209,  0.948014, 1.11598,  0.992227, 0.414025, 1.36483,
    0.500776, 0.505752, 1.21464,  1.56034,  1.48399,  1.16137,  1.01386,  1.18041,  1.15076,
    1.02424,  0.810536, 0.910987, 1.29814,  1.49011,  1.28152,  1.49998,  1.30372,  1.27526,
    0.814867, 0.928646, 0.849343, 1.61382,  1.30488,  1.32465,  0.658327, 1.44242,  1.46313,
    1.21306,  1.69558,  0.808928, 1.06515,  0.504879, 1.26771,  0.622088, 1.12344,  1.30971,
    1.60124,  1.37167,  0.95424,  1.64476,  1.16193,  0.510671, 1.23666,  0.862876, 1.2011,
    1.26622,  1.58917,  0.913909, 1.42659};
// Activity, tenths of pCi / l.
const std::vector<int64_t> kActivity = {
    22,  22,  29,  10,  31,  25,  15,  10,  7,   12,  12,  13,  14,  4,   11,  45,  13,  21,  59,
    33,  18,  54,  63,  19,  66,  31,  68,  70,  77,  52,  45,  44,  28,  81,  16,  42,  54,  40,
    23,  29,  14,  33,  29,  18,  2,   24,  11,  22,  6,   17,  29,  22,  17,  14,  19,  18,  12,
    43,  45,  63,  46,  57,  22,  4,   46,  44,  66,  27,  29,  29,  72,  50,  26,  50,  130, 72,
    68,  128, 58,  95,  60,  38,  143, 18,  69,  47,  95,  25,  67,  40,  101, 22,  18,  34,  56,
    43,  39,  13,  42,  8,   20,  16,  129, 147, 47,  96,  0,   37,  74,  19,  53,  40,  77,  14,
    100, 94,  8,   44,  50,  21,  17,  81,  9,   129, 26,  35,  266, 15,  130, 88,  195, 25,  90,
    131, 36,  69,  48,  34,  9,   34,  27,  14,  68,  111, 0,   25,  18,  16,  10,  9,   29,  44,
    15,  41,  25,  67,  43,  55,  36,  28,  146, 67,  80,  26,  28,  44,  17,  20,  20,  15,  96,
    81,  35,  8,   51,  32,  108, 82,  63,  48,  60,  11,  87,  88,  68,  23,  16,  28,  65,  17,
    46,  33,  44,  212, 91,  9,   49,  50,  11,  76,  54,  36,  49,  47,  14,  34,  42,  25,  14,
    14,  19,  48,  14,  38,  88,  43,  44,  45,  22,  5,   58,  54,  72,  57,  74,  48,  68,  64,
    37,  55,  78,  44,  27,  34,  42,  23,  13,  52,  1,   25,  32,  32,  96,  42,  90,  63,  326,
    132, 22,  56,  143, 69,  76,  98,  26,  435, 49,  49,  35,  48,  56,  35,  39,  67,  79,  33,
    21,  16,  40,  18,  25,  112, 26,  39,  74,  13,  9,   4,   25,  60,  20,  54,  30,  29,  55,
    41,  39,  149, 72,  23,  28,  44,  15,  86,  56,  86,  38,  18,  19,  55,  25,  8,   21,  28,
    39,  43,  47,  28,  41,  16,  43,  7,   55,  33,  55,  25,  27,  84,  33,  32,  86,  17,  57,
    130, 27,  47,  56,  138, 76,  57,  46,  76,  26,  45,  59,  22,  24,  40,  46,  46,  109, 76,
    30,  15,  16,  165, 31,  51,  49,  60,  9,   18,  39,  56,  4,   26,  36,  62,  236, 39,  29,
    30,  47,  30,  42,  38,  30,  43,  29,  34,  85,  90,  48,  36,  22,  28,  8,   15,  46,  37,
    36,  30,  22,  19,  26,  18,  24,  43,  26,  11,  33,  25,  94,  13,  84,  50,  29,  131, 153,
    18,  38,  79,  26,  113, 41,  123, 67,  69,  45,  9,   17,  14,  20,  10,  10,  28,  13,  113,
    160, 13,  13,  16,  9,   28,  5,   15,  71,  5,   101, 43,  33,  29,  125, 42,  45,  39,  33,
    175, 106, 79,  35,  65,  69,  51,  120, 51,  89,  58,  46,  39,  15,  238, 9,   14,  11,  28,
    482, 9,   83,  41,  5,   67,  75,  92,  5,   15,  103, 39,  18,  99,  23,  44,  28,  11,  12,
    16,  254, 0,   106, 23,  39,  72,  21,  32,  5,   57,  14,  21,  44,  24,  49,  30,  30,  28,
    39,  109, 64,  20,  30,  45,  21,  80,  13,  92,  11,  106, 240, 91,  121, 81,  108, 42,  157,
    54,  62,  97,  81,  16,  16,  64,  44,  112, 100, 45,  80,  23,  32,  50,  41,  11,  20,  11,
    29,  21,  78,  38,  25,  29,  17,  25,  94,  6,   27,  11,  21,  120, 126, 32,  42,  38,  37,
    58,  3,   41,  28,  19,  12,  12,  15,  94,  17,  121, 43,  69,  14,  25,  96,  38,  34,  68,
    36,  22,  26,  21,  70,  12,  38,  35,  42,  16,  28,  86,  62,  52,  27,  12,  35,  55,  101,
    55,  12,  49,  40,  35,  25,  12,  27,  17,  31,  7,   10,  19,  38,  89,  74,  207, 60,  21,
    58,  97,  64,  46,  56,  190, 24,  30,  51,  77,  81,  47,  84,  16,  60,  11,  114, 43,  36,
    103, 34,  31,  36,  27,  40,  12,  17,  42,  193, 91,  20,  114, 102, 21,  12,  32,  20,  43,
    22,  54,  252, 51,  23,  32,  25,  28,  31,  16,  47,  40,  50,  15,  48,  8,   5,   24,  23,
    46,  110, 149, 86,  45,  15,  39,  18,  16,  5,   4,   5,   87,  16,  14,  87,  111, 15,  11,
    9,   7,   42,  34,  21,  29,  18,  18,  24,  17,  8,   117, 18,  28,  35,  36,  35,  30,  32,
    31,  33,  17,  56,  34,  15,  322, 11,  21,  8,   15,  13,  31,  72,  14,  13,  15,  50,  23,
    24,  12,  54,  11,  14,  72,  11,  33,  32,  15,  36,  8,   16,  14,  27,  33,  9,   6,   20,
    19,  9,   54,  15,  31,  18,  9,   33,  17,  31,  7,   43,  14,  18,  15,  22,  24,  27,  17,
    11,  18,  2,   22,  46,  21,  20,  7,   64,  30,  20,  9,   33,  18,  18,  22,  43,  75,  64,
    83,  21,  33,  13,  50,  10,  70,  57,  101, 66,  26,  33,  15,  50,  74,  145, 18,  74,  26,
    37,  19,  22,  50,  73,  37,  29,  44,  84,  51,  36,  15,  86,  106, 80,  45,  30,  24,  15,
    48,  68,  21,  60,  29,  67,  193, 40,  59,  90,  84,  11,  31,  115, 96,  29,  7,   32,  47,
    48,  4,   93,  17,  9,   102, 77,  22,  65,  122, 46,  62,  65,  28,  19,  12,  24,  10,  12,
    16,  8,   17,  47,  17,  33,  8,   98,  53,  85,  19,  66,  38,  59,  49,  25,  107, 24,  21,
    47,  37,  134, 29,  43,  38,  18,  15,  18,  13,  66,  204, 60,  138, 102, 57,  93,  34,  41,
    116, 72,  47,  18,  7,   47,  102, 113, 76,  118, 5,   67,  53,  31,  21,  73,  51,  22,  23,
    159, 95,  64,  45,  50,  37,  29};
// The houses, counted from 0, that were measured on the first floor and not in the basement.
const std::vector<int64_t> kFirstFloor = {
    0,   43,  44,  46,  56,  58,  62,  63,  64,  65,  68,  78,  82,  87,  89,  94,  103,
    104, 106, 122, 125, 131, 135, 136, 138, 143, 144, 145, 148, 154, 155, 164, 166, 173,
    212, 228, 236, 239, 248, 249, 251, 253, 266, 278, 290, 301, 311, 313, 328, 344, 350,
    354, 368, 372, 374, 375, 376, 379, 408, 409, 412, 413, 415, 416, 417, 419, 429, 431,
    433, 440, 442, 450, 452, 453, 454, 457, 460, 473, 475, 476, 477, 484, 491, 502, 504,
    518, 531, 538, 541, 543, 544, 546, 550, 552, 556, 562, 564, 565, 579, 580, 588, 605,
    608, 614, 622, 623, 625, 626, 628, 633, 634, 635, 636, 637, 641, 644, 662, 675, 676,
    678, 684, 688, 694, 698, 702, 705, 727, 747, 751, 756, 760, 761, 784, 789, 791, 800,
    820, 821, 828, 833, 834, 840, 851, 854, 859, 861, 870, 888, 889, 896, 897, 903, 911};

/// By quadrature over both standard deviations, the others integrated out.
constexpr double kLogZ = -1045.5003;

/// z = (log sigma_y, log sigma_a, mu, b [2], effects [85]): log(activity + 0.1) is N(a + b_2 floor,
/// sigma_y^2), and a county's a its effect + b_1 log uranium; effects ~ N(mu, sigma_a^2), or in
/// their standardised form; mu, b ~ N(0, 10^2), both sigmas half N(0, 1) with its factor 2.
ReplicatedFunction::LogDensity radon(bool centred, const at::TensorOptions& tensors) {
  // Houses enter by their county's mean and by the squares about it: 85 numbers, not 919.
  const at::Tensor counts = at::tensor(kHousesOf, at::kLong);
  const at::Tensor county = at::arange(kCounties).repeat_interleave(counts);
  const at::Tensor y = (0.1 * at::tensor(kActivity, at::kDouble) + 0.1).log();
  const at::Tensor floor =
      at::zeros({kHouses}, at::kDouble).index_fill(0, at::tensor(kFirstFloor, at::kLong), 1);
  const auto mean_of = [&](const at::Tensor& x) {
    return at::zeros({kCounties}, at::kDouble).index_add(0, county, x) / counts;
  };
  const at::Tensor mean_y = mean_of(y), mean_floor = mean_of(floor);
  const at::Tensor dy = y - mean_y.index_select(0, county);
  const at::Tensor dfloor = floor - mean_floor.index_select(0, county);
  const double yy = dy.dot(dy).item<double>(), fy = dfloor.dot(dy).item<double>(),
               ff = dfloor.dot(dfloor).item<double>();
  const at::Tensor n = counts.to(tensors), y_of = mean_y.to(tensors),
                   floor_of = mean_floor.to(tensors),
                   uranium = at::tensor(kUranium, at::kDouble).log().to(tensors);
  return [=](const at::Tensor& z) {
    const at::Tensor log_sds = z.slice(-1, 0, 2), log_sy = z.select(-1, 0),
                     log_sa = z.slice(-1, 1, 2), mu = z.slice(-1, 2, 3), own = z.slice(-1, 5);
    const at::Tensor effects = centred ? own : mu + log_sa.exp() * own;
    const at::Tensor prior = centred ? normal_log_density((own - mu) * (-log_sa).exp()) - log_sa
                                     : normal_log_density(own);
    const at::Tensor b = z.select(-1, 4);
    const at::Tensor apart =
        y_of - effects - z.slice(-1, 3, 4) * uranium - b.unsqueeze(-1) * floor_of;
    const at::Tensor squares = (n * apart.square()).sum(-1) + yy - 2 * b * fy + b.square() * ff;
    const at::Tensor seen =
        -0.5 * squares * (-2 * log_sy).exp() - kHouses * (log_sy + 0.5 * std::log(2 * M_PI));
    return (normal_log_density(log_sds.exp()) + std::log(2.0) + log_sds).sum(-1) +
           normal_log_density(z.slice(-1, 2, 5), 0, 10).sum(-1) + prior.sum(-1) + seen;
  };
}

const Enrol<TargetRegistry> kEnrolRadon(
    "radon", {"radon[:centred=0|1]",
              "radon in 919 houses of 85 counties, whose intercepts are centred (1) or not",
              "radon:centred=0", [](Spec& spec, const TargetOptions& options) {
                const bool centred = spec.integer("centred", 0, 1, 1) == 1;
                return std::make_unique<ReplicatedFunction>(options, kCounties + 5, kLogZ,
                                                            radon(centred, options.tensors));
              }});

}  // namespace
}  // namespace crais
