#include "kernels/processor.h"

#include <ATen/Context.h>

#include <array>
#include <cstdint>

#ifdef CRAIS_X86_KERNELS
#include <cpuid.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace crais {
namespace {

/// EAX, EBX, ECX and EDX of a leaf of CPUID; zeros if the processor lacks the leaf.
std::array<unsigned, 4> cpuid([[maybe_unused]] unsigned leaf, [[maybe_unused]] unsigned subleaf) {
  std::array<unsigned, 4> registers{};
#ifdef CRAIS_X86_KERNELS
  __get_cpuid_count(leaf, subleaf, &registers[0], &registers[1], &registers[2], &registers[3]);
#endif
  return registers;
}

bool is_intel() {
  constexpr unsigned kGenuineIntel = 0x756e6547;
  return cpuid(0, 0)[1] == kGenuineIntel;
}

bool gives_tiles() {
#if defined(__linux__) && defined(CRAIS_X86_KERNELS)
  constexpr int64_t kRequestPermission = 0x1023, kTileData = 18;  // for arch_prctl(2)
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

bool has_tiles() {
  static const bool kHas = [] {
    constexpr unsigned kTiles = 1U << 24, kBfloat16 = 1U << 22, kInt8 = 1U << 25;
    const unsigned features = cpuid(7, 0)[3];
    return (features & kTiles) != 0 && (features & kBfloat16) != 0 && (features & kInt8) != 0 &&
           gives_tiles();
  }();
  return kHas;
}

bool has_avx512_bfloat16() {
  constexpr unsigned kBfloat16 = 1U << 5;
  return (cpuid(7, 1)[0] & kBfloat16) != 0;
}

bool has_avx_vnni() {
  constexpr unsigned kVnni = 1U << 4;
  return (cpuid(7, 1)[0] & kVnni) != 0;
}

bool has_fast_integers() {
  // The processor generation, recognised by instructions that were new in it.
  constexpr unsigned kClflushopt = 1U << 23, kVaes = 1U << 9;
  const std::array<unsigned, 4> features = cpuid(7, 0);
  return is_intel() ? (features[1] & kClflushopt) != 0 : (features[2] & kVaes) != 0;
}

bool has_bfloat16_products() {
  static const bool kHas = (has_tiles() || (!is_intel() && has_avx512_bfloat16())) &&
                           at::hasMKLDNN() && at::globalContext().userEnabledMkldnn();
  return kHas;
}

}  // namespace crais
