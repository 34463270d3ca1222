#include "util/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "util/format.h"

namespace crais {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20;

}  // namespace

std::string size_text(int64_t bytes) {
  const double mebi = static_cast<double>(bytes) / static_cast<double>(kMebi);
  return mebi < 1024 ? fixed(std::ceil(mebi), 0) + " MiB" : fixed(mebi / 1024, 1) + " GiB";
}

int64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return usage.ru_maxrss;
#else
  return usage.ru_maxrss * 1024;  // Linux counts in KiB
#endif
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error)) return true;
  const std::string text = error.what();  // LibTorch's allocators have no type of their own
  const std::vector<std::string> said = {"allocate memory", "enough memory", "out of memory"};
  return std::any_of(said.begin(), said.end(), [&](const std::string& words) {
    return text.find(words) != std::string::npos;
  });
}

}  // namespace crais
