#include "util/digest.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace crais {
namespace {

constexpr size_t kBlock = 64;   // bytes that are taken at a time
constexpr size_t kCounter = 8;  // bytes at the end of the last block: the message's number of bits

using Block = std::array<uint32_t, kBlock / 4>;
using Table = std::array<uint32_t, 64>;

/// The shift of byte `index` in a number of `size` bytes.
template <std::endian kOrder>
constexpr int shift_of(int index, int size) {
  return 8 * (kOrder == std::endian::little ? index : size - 1 - index);
}

/// What SHA-256 and MD5 share: `compress(state, block)` takes the message block by block. The last
/// block is padded with one bit and zeros.
template <std::endian kOrder, size_t kSize, class Compress>
std::string digest(std::array<uint32_t, kSize> state, std::string_view bytes, Compress compress) {
  const auto take = [&](const char* content) {
    Block block{};
    for (size_t i = 0; i < kBlock; ++i)
      block[i / 4] |= uint32_t{static_cast<unsigned char>(content[i])}
                      << shift_of<kOrder>(static_cast<int>(i % 4), 4);
    compress(state, block);
  };
  const uint64_t num_bits = 8 * uint64_t{bytes.size()};
  for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) take(bytes.data());
  std::string rest(bytes);
  rest += '\x80';
  while (rest.size() % kBlock != kBlock - kCounter) rest += '\0';
  for (int i = 0; i < 8; ++i) rest += static_cast<char>(num_bits >> shift_of<kOrder>(i, 8));
  for (size_t start = 0; start < rest.size(); start += kBlock) take(rest.data() + start);

  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint32_t word : state)
    for (int i = 0; i < 4; ++i) {
      const uint32_t byte = word >> shift_of<kOrder>(i, 4);
      text += {kHexDigits[byte >> 4 & 15], kHexDigits[byte & 15]};
    }
  return text;
}

/// The first 32 bits after the point.
uint32_t fraction(double value) {
  return static_cast<uint32_t>((value - std::floor(value)) * 0x1p32);
}

/// The fractions of a root of the first primes.
template <size_t kCount>
std::array<uint32_t, kCount> prime_roots(double (*root)(double)) {
  std::array<uint32_t, kCount> table{};
  size_t known = 0;
  for (int n = 2; known < kCount; ++n) {
    bool prime = true;
    for (int d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
    if (prime) table[known++] = fraction(root(n));
  }
  return table;
}

Table sines() {
  Table table{};
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<uint32_t>(std::abs(std::sin(static_cast<double>(i + 1))) * 0x1p32);
  return table;
}

}  // namespace

std::string sha256(std::string_view bytes) {
  static const std::array<uint32_t, 8> kStart = prime_roots<8>(std::sqrt);
  static const Table kRound = prime_roots<64>(std::cbrt);
  const auto compress = [&round = kRound](std::array<uint32_t, 8>& state, const Block& block) {
    Table w{};
    for (size_t t = 0; t < 16; ++t) w[t] = block[t];
    for (size_t t = 16; t < 64; ++t) {
      const uint32_t x = w[t - 15], y = w[t - 2];
      w[t] = w[t - 16] + (std::rotr(x, 7) ^ std::rotr(x, 18) ^ x >> 3) + w[t - 7] +
             (std::rotr(y, 17) ^ std::rotr(y, 19) ^ y >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t t = 0; t < 64; ++t) {
      const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                             ((e & f) ^ (~e & g)) + round[t] + w[t];
      const uint32_t second =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + first;
      d = c, c = b, b = a, a = first + second;
    }
    const std::array<uint32_t, 8> added{a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < added.size(); ++i) state[i] += added[i];
  };
  return digest<std::endian::big>(kStart, bytes, compress);
}

std::string md5(std::string_view bytes) {
  constexpr std::array<uint32_t, 4> kStart{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  constexpr int kTurn[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  static const Table kRound = sines();
  const auto compress = [&, &sine = kRound](std::array<uint32_t, 4>& state, const Block& block) {
    auto [a, b, c, d] = state;
    for (size_t t = 0; t < 64; ++t) {
      const size_t round = t / 16;
      const uint32_t mixed[] = {(b & c) | (~b & d), (d & b) | (~d & c), b ^ c ^ d, c ^ (b | ~d)};
      const size_t word[] = {t, 5 * t + 1, 3 * t + 5, 7 * t};
      const uint32_t sum = a + mixed[round] + sine[t] + block[word[round] % 16];
      a = d, d = c, c = b, b += std::rotl(sum, kTurn[round][t % 4]);
    }
    const std::array<uint32_t, 4> added{a, b, c, d};
    for (size_t i = 0; i < added.size(); ++i) state[i] += added[i];
  };
  return digest<std::endian::little>(kStart, bytes, compress);
}

}  // namespace crais
