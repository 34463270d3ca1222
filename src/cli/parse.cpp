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

#include "cli/process_rank.h"
#include "core/spec.h"
#include "util/error.h"

namespace crais {
namespace {

std::string devices_at_hand(int64_t gpus) {
  if (gpus == 0) return "there is no CUDA device that this LibTorch can use; use cpu or auto";
  return gpus == 1 ? "there is only cuda:0"
                   : "there are only cuda:0 to cuda:" + std::to_string(gpus - 1);
}

/// "xpu:1": a device of another kind, which this LibTorch has or which a library beside it
/// registers.
std::optional<c10::Device> other_device(const std::string& text) {
  try {
    const c10::Device device(text);
    if (device.is_cpu() || device.is_meta()) return {};
    const auto type = static_cast<size_t>(device.type());
    const auto* guard = c10::impl::device_guard_impl_registry[type].load();
    const auto index = std::max<c10::DeviceIndex>(device.index(), 0);
    if (guard && index < guard->deviceCount()) return c10::Device(device.type(), index);
  } catch (const std::exception&) {  // no name of a device
  }
  return {};
}

int64_t bounded(const std::string& text, const std::string& what, int64_t least) {
  const int64_t value = parse_integer(text, what);
  if (value < least)
    throw argument_error(what + ": must be at least " + std::to_string(least) + ", not " + text);
  return value;
}

}  // namespace

c10::Device parse_device(const std::string& text) {
  const std::string what = "--device " + text;
  if (text == "cpu") return c10::Device(c10::kCPU);
  // An int8_t of newer LibTorch, never negative.
  const auto gpus =
      static_cast<int64_t>(torch::cuda::device_count());  // NOLINT(bugprone-signed-char-misuse)
  if (text == "auto") return gpus > 0 ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
  if (text != "cuda" && text.rfind("cuda:", 0) != 0) {
    if (const auto other = other_device(text)) return *other;
    throw argument_error(what + ": unknown device; choose from auto, cpu, cuda, cuda:N");
  }
  const int64_t index = text == "cuda" ? 0 : bounded(text.substr(5), what, 0);
  if (index >= gpus) throw Error(ErrorKind::kNoDevice, what + ": " + devices_at_hand(gpus));
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

c10::ScalarType parse_dtype(const std::string& text) {
  if (text == "float32") return c10::ScalarType::Float;
  if (text == "float64") return c10::ScalarType::Double;
  throw argument_error("--dtype " + text + ": choose from float32, float64");
}

IndexRange parse_range(const std::string& text, const std::string& what) {
  const auto colon = text.find(':');
  if (colon == std::string::npos || text.size() == 1)
    throw argument_error(what + ": '" + text +
                         "' is not a range; write A:B, A: or :B, as in 0:100");
  const std::string first = text.substr(0, colon), last = text.substr(colon + 1);
  IndexRange range;
  if (!first.empty()) range.begin = bounded(first, what, 0);
  if (!last.empty()) range.end = bounded(last, what, 0);
  if (range.begin >= range.end)
    throw argument_error(what + ": '" + text + "' is empty; B of A:B is not included");
  return range;
}

IndexRange IndexRange::within(int64_t size, const std::string& what,
                              const std::string& things) const {
  const IndexRange closed{begin, end == kOpenEnd ? size : end};
  if (closed.end > size || closed.begin >= closed.end)
    throw argument_error(what + ": reaches beyond the " + std::to_string(size) + " " + things);
  return closed;
}

Shard parse_shard(const std::string& text, const std::string& what) {
  if (text == "auto") {
    const ProcessRank rank = process_rank(what + " auto");
    return {rank.index + 1, rank.count};
  }
  const auto slash = text.find('/');
  if (slash == std::string::npos)
    throw argument_error(what + ": '" + text + "' is not a shard; write i/N, as in 1/4, or auto");
  Shard shard;
  shard.index = bounded(text.substr(0, slash), what, 1);
  shard.count = bounded(text.substr(slash + 1), what, 1);
  if (shard.index > shard.count)
    throw argument_error(what + ": '" + text + "': i of i/N runs from 1 to N");
  return shard;
}

int64_t parse_size(const std::string& text, const std::string& what) {
  const std::string units = "KMGT";
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + end, number);
  const bool is_number = error == std::errc() && stop == text.data() + end;
  double scale = 1;
  std::string rest = text.substr(end);
  if (const size_t unit = rest.empty() ? std::string::npos : units.find(rest[0]);
      unit != std::string::npos) {
    scale = std::pow(1024.0, static_cast<double>(unit + 1));
    rest = rest.substr(1);
    if (!rest.empty() && rest[0] == 'i') rest = rest.substr(1);
  }
  if (rest == "B") rest.clear();
  const double bytes = number * scale;
  if (!is_number || !rest.empty() || !(bytes >= 1 && bytes < 1e18))
    throw argument_error(what + ": '" + text + "' is not a size; write 512M, 1.5G or bytes");
  return static_cast<int64_t>(bytes);
}

namespace {

/// A number at the front of `text`, of at most nine digits, which it loses; nothing where there is
/// none.
std::optional<int64_t> take_number(std::string_view& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  int64_t number = 0;
  if (end == 0 || end > 9) return {};
  std::from_chars(text.data(), text.data() + end, number);
  text.remove_prefix(end);
  return number;
}

/// The same where `ending` follows, which goes too; else `text` stays.
std::optional<int64_t> take_number(std::string_view& text, char ending) {
  std::string_view rest = text;
  const auto number = take_number(rest);
  if (!number || rest.empty() || rest.front() != ending) return {};
  text = rest.substr(1);
  return number;
}

/// "1d2h3m4s", each at most once and in this order. Nothing for anything else.
std::optional<int64_t> seconds_of_units(std::string_view text) {
  int64_t seconds = 0;
  for (const auto& [unit, length] : {std::pair{'d', 86'400}, {'h', 3'600}, {'m', 60}, {'s', 1}})
    seconds += length * take_number(text, unit).value_or(0);
  return text.empty() ? std::optional(seconds) : std::nullopt;
}

/// "[D-]HH:MM:SS", as Slurm writes it. Nothing for anything else.
std::optional<int64_t> seconds_of_clock(std::string_view text) {
  const int64_t days = take_number(text, '-').value_or(0);
  const auto hours = take_number(text, ':');
  const auto in_sixty = [](std::string_view two, int64_t& value) {
    const auto number = two.size() == 2 ? take_number(two) : std::nullopt;
    value = number.value_or(60);
    return two.empty() && value < 60;
  };
  int64_t minutes = 0, seconds = 0;
  if (!hours || text.size() != 5 || text[2] != ':' || !in_sixty(text.substr(0, 2), minutes) ||
      !in_sixty(text.substr(3), seconds))
    return {};
  return ((days * 24 + *hours) * 60 + minutes) * 60 + seconds;
}

}  // namespace

int64_t parse_duration(const std::string& text, const std::string& what) {
  constexpr int64_t kMost = int64_t{1'000} * 86'400;
  auto seconds = seconds_of_units(text);
  if (!seconds) seconds = seconds_of_clock(text);
  if (!seconds || *seconds < 1 || *seconds > kMost)
    throw argument_error(what + ": '" + text +
                         "' is not a time of at least 1s and at most 1000d; write 55m, 2h, 1h30m, "
                         "HH:MM:SS or D-HH:MM:SS");
  return *seconds;
}

}  // namespace crais
