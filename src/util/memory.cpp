#include "util/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <new>
#include <vector>

#include "util/error.h"
#include "util/format.h"

namespace crais {
namespace {

constexpr double kMebi = 1 << 20;

std::string size_text_of(double bytes) {
  const double mebi = bytes / kMebi;
  if (mebi < 1024) return fixed(std::ceil(mebi), 0) + " MiB";
  return mebi < kMebi ? fixed(mebi / 1024, 1) + " GiB" : fixed(mebi / kMebi, 1) + " TiB";
}

}  // namespace

std::string size_text(int64_t bytes) { return size_text_of(static_cast<double>(bytes)); }

int64_t physical_memory() {
  int64_t bytes = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur < static_cast<rlim_t>(bytes))
    bytes = static_cast<int64_t>(space.rlim_cur);
  int64_t of_group = 0;
  for (const std::string limit : {"memory.max", "memory/memory.limit_in_bytes"})  // cgroups 2, 1
    if (std::ifstream("/sys/fs/cgroup/" + limit) >> of_group) bytes = std::min(bytes, of_group);
  return bytes;
}

void require_memory(double bytes, const std::string& what) {
  const auto present = static_cast<double>(physical_memory());
  if (!(bytes < present))
    throw argument_error(what, " take ", size_text_of(bytes), ", and this machine has ",
                         size_text_of(present), " of memory; ask for fewer");
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
  const std::string text = error.what();  // LibTorch's allocators have no exception type
  const std::vector<std::string> phrases = {"allocate memory", "enough memory", "out of memory"};
  return std::any_of(phrases.begin(), phrases.end(), [&](const std::string& words) {
    return text.find(words) != std::string::npos;
  });
}

}  // namespace crais
