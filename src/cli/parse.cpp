#include "cli/parse.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/cuda.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/limits.h"
#include "core/spec.h"
#include "util/error.h"

namespace crais {
namespace {

std::string devices_at_hand(int64_t gpus) {
  if (gpus == 0) return "there is no CUDA device that this LibTorch can use; use cpu or auto";
  return gpus == 1 ? "there is only cuda:0"
                   : "there are only cuda:0 to cuda:" + std::to_string(gpus - 1);
}

/// A device of another kind, such as "xpu:1", of this LibTorch or registered by another library.
std::optional<c10::Device> other_device(const std::string& text) {
  try {
    const c10::Device device(text);
    if (device.is_cpu() || device.is_meta()) return {};
    const auto type = static_cast<size_t>(device.type());
    const auto* guard = c10::impl::device_guard_impl_registry[type].load();
    const auto index = std::max<c10::DeviceIndex>(device.index(), 0);
    if (guard && index < guard->deviceCount()) return c10::Device(device.type(), index);
  } catch (const std::exception&) {  // not the name of a device
  }
  return {};
}

int64_t bounded(const std::string& text, const std::string& what, int64_t least) {
  const int64_t value = parse_integer(text, what);
  check_range(Range::at_least(static_cast<double>(least)), value, what);
  return value;
}

}  // namespace

c10::Device parse_device(const std::string& text) {
  const std::string what = "--device " + text;
  if (text == "cpu") return c10::Device(c10::kCPU);
  // Newer LibTorch returns an int8_t, which is never negative.
  const auto gpus =
      static_cast<int64_t>(torch::cuda::device_count());  // NOLINT(bugprone-signed-char-misuse)
  if (text == "auto") return gpus > 0 ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
  if (text != "cuda" && text.rfind("cuda:", 0) != 0) {
    if (const auto other = other_device(text)) return *other;
    throw argument_error(what, ": unknown device; choose from auto, cpu, cuda, cuda:N");
  }
  const int64_t index = text == "cuda" ? 0 : bounded(text.substr(5), what, 0);
  if (index >= gpus) throw Error(ErrorKind::kNoDevice, what, ": ", devices_at_hand(gpus));
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

IndexRange parse_range(const std::string& text, const std::string& what) {
  const auto colon = text.find(':');
  if (colon == std::string::npos || text.size() == 1)
    throw argument_error(what, ": '", text, "' is not a range; write A:B, A: or :B, as in 0:100");
  const std::string first = text.substr(0, colon), last = text.substr(colon + 1);
  IndexRange range;
  if (!first.empty()) range.begin = bounded(first, what, 0);
  if (!last.empty()) range.end = bounded(last, what, 0);
  if (range.begin >= range.end)
    throw argument_error(what, ": '", text, "' is empty; A:B does not include B");
  return range;
}

IndexRange IndexRange::within(int64_t size, const std::string& what,
                              const std::string& things) const {
  const IndexRange closed{begin, end == kOpenEnd ? size : end};
  if (closed.end > size || closed.begin >= closed.end)
    throw argument_error(what, ": reaches beyond the ", size, " ", things);
  return closed;
}

Shard parse_shard(const std::string& text, const std::string& what) {
  const auto slash = text.find('/');
  if (slash == std::string::npos)
    throw argument_error(what, ": '", text, "' is not a shard; write i/N, as in 1/4");
  Shard shard{.index = bounded(text.substr(0, slash), what, 1),
              .count = bounded(text.substr(slash + 1), what, 1)};
  if (shard.index > shard.count)
    throw argument_error(what, ": '", text, "': i of i/N runs from 1 to N");
  return shard;
}

namespace {

/// The seconds of "1d2h3m4s" or "D-HH:MM:SS". Each number stands before its mark, in this order,
/// and may be missing if `may_lack`. Returns nothing for any other text.
std::optional<int64_t> seconds_of(std::string_view text, const std::string& marks, bool may_lack) {
  constexpr int64_t kLengths[] = {86'400, 3'600, 60, 1};
  int64_t seconds = 0;
  for (size_t i = 0; i < marks.size(); ++i) {
    const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    const bool is_there = end > 0 && end < 10 && end < text.size() && text[end] == marks[i];
    if (!is_there && !may_lack && i > 0) return {};
    if (!is_there) continue;
    const bool is_in_sixty = may_lack || i < 2 || (end == 2 && text[0] < '6');
    if (!is_in_sixty) return {};
    int64_t number = 0;
    std::from_chars(text.data(), text.data() + end, number);
    seconds += number * kLengths[i];
    text.remove_prefix(end + 1);
  }
  return text.empty() ? std::optional(seconds) : std::nullopt;
}

}  // namespace

int64_t parse_duration(const std::string& text, const std::string& what) {
  constexpr int64_t kMost = int64_t{1'000} * 86'400;
  auto seconds = seconds_of(text, "dhms", /*may_lack=*/true);
  if (!seconds) seconds = seconds_of(text + "!", "-::!", /*may_lack=*/false);  // Slurm's format
  if (!seconds || *seconds < 1 || *seconds > kMost)
    throw argument_error(what, ": '", text,
                         "' is not a time of at least 1s and at most 1000d; write 55m, 2h, 1h30m, "
                         "HH:MM:SS or D-HH:MM:SS");
  return *seconds;
}

}  // namespace crais
