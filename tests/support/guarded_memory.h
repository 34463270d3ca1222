// Tensors whose memory ends at a page that nobody may touch: reading or writing beyond a buffer
// ends the test at once, whatever wrote the code (the address sanitizer sees compiled code only).
#pragma once

#include <c10/core/Allocator.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

namespace crais::testing {

/// While it lives, CPU tensors are made in guarded memory, 64 bytes aligned: an overrun of fewer
/// bytes than fill the last 64 goes unseen.
class GuardedMemory {
 public:
  GuardedMemory() { c10::SetAllocator(c10::kCPU, &pages()); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;
  ~GuardedMemory() { c10::SetAllocator(c10::kCPU, before_); }

 private:
  struct Pages : c10::Allocator {
    c10::DataPtr allocate(size_t bytes) override {
      const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
      const size_t used = (bytes + 63) / 64 * 64, open = (used + page - 1) / page * page;
      void* const begin =
          ::mmap(nullptr, open + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (begin == MAP_FAILED) throw std::bad_alloc();
      char* const end = static_cast<char*>(begin) + open;
      ::mprotect(end, page, PROT_NONE);
      return {end - used, new Region{begin, open + page}, &release, c10::Device(c10::kCPU)};
    }
    void copy_data(void* to, const void* from, size_t bytes) const override {
      std::memcpy(to, from, bytes);
    }
  };
  struct Region {
    void* begin;
    size_t size;
  };
  static void release(void* context) {
    auto* const region = static_cast<Region*>(context);
    ::munmap(region->begin, region->size);
    delete region;
  }
  static Pages& pages() {
    static Pages pages;
    return pages;
  }

  c10::Allocator* before_ = c10::GetAllocator(c10::kCPU);
};

}  // namespace crais::testing
