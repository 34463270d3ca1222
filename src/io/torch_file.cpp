#include "io/torch_file.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "io/json.h"
#include "io/tensor_bytes.h"
#include "io/torch_pickle.h"
#include "io/zip.h"
#include "util/error.h"

namespace crais {
namespace {

using Kind = PickleValue::Kind;

constexpr uint64_t kMaxPickle = uint64_t{16}
                                << 20;  // about 60,000 tensors; their values are stored elsewhere
constexpr size_t kMaxViewDims = 16;
constexpr size_t kMaxDepth = 64;
constexpr size_t kMaxName = 1024;

/// The magic number of the format before PyTorch 1.6, as a pickle of protocol 2.
constexpr std::string_view kLegacyMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
                                        14);
constexpr std::string_view kPickleName = "data.pkl";

bool ends_with_entry(const std::string& name, std::string_view entry) {
  return name.size() > entry.size() &&
         name.compare(name.size() - entry.size(), entry.size(), entry) == 0 &&
         name[name.size() - entry.size() - 1] == '/';
}

/// The folder in the archive that holds everything, with its slash.
std::optional<std::string> root_of(const ZipArchive& archive) {
  for (const std::string& name : archive.names())
    if (ends_with_entry(name, kPickleName)) return name.substr(0, name.size() - kPickleName.size());
  return {};
}

bool is_torch_script(const ZipArchive& archive) {
  return std::any_of(archive.names().begin(), archive.names().end(), [](const std::string& name) {
    return ends_with_entry(name, "constants.pkl") || name.find("/code/") != std::string::npos;
  });
}

/// The storages of an archive. Each is read when a tensor first asks for it.
class Storages {
 public:
  Storages(ZipArchive& archive, std::string root, std::string where)
      : archive_(archive), root_(std::move(root)), where_(std::move(where)) {}

  /// The whole storage, as a tensor of one dimension.
  const at::Tensor& get(const PickledStorage& described) {
    const std::string entry = root_ + "data/" + std::string(described.key);
    at::Tensor& memory = memories_[entry];
    if (!memory.defined()) memory = load(described, entry);
    if (memory.scalar_type() != described.dtype || memory.numel() != described.count)
      throw data_error(where_ + ": entry " + quoted(entry) + " is described in two ways");
    return memory;
  }

 private:
  at::Tensor load(const PickledStorage& described, const std::string& entry) {
    const uint64_t element = c10::elementSize(described.dtype);
    uint64_t expected = 0;
    if (described.count < 0 ||
        __builtin_mul_overflow(static_cast<uint64_t>(described.count), element, &expected) ||
        archive_.size(entry) != expected)
      throw data_error(where_ + ": entry " + quoted(entry) + " holds " +
                       std::to_string(archive_.size(entry)) + " bytes, the pickle says " +
                       std::to_string(described.count) + " values of " + std::to_string(element) +
                       " bytes");
    return tensor_of_bytes(archive_.read(entry), {described.count}, described.dtype);
  }

  ZipArchive& archive_;
  std::string root_, where_;
  std::map<std::string, at::Tensor> memories_;
};

/// Walks through the values of a pickle and collects the tensors under their names.
class TensorWalk {
 public:
  TensorWalk(const TorchPickle& pickle, Storages storages, std::string where)
      : pickle_(pickle),
        storages_(std::move(storages)),
        where_(std::move(where)),
        room_(16 * pickle.bytes.size() + (size_t{64} << 10)) {}

  NamedTensors run() {
    visit(pickle_.root, "", 0);
    if (found_.empty()) throw data_error(where_ + ": holds no tensor");
    return std::move(found_);
  }

 private:
  Error wrong(const std::string& name, const std::string& what) const {
    return data_error(where_ + ": tensor " + quoted(name) + ": " + what);
  }

  /// Counts output against a limit. A pickle may name one value in many places, and so on
  /// recursively: the output must stay in proportion to the pickle.
  void spend(size_t amount) {
    if (amount > room_)
      throw data_error(where_ + ": its pickle unfolds to more names than its " +
                       std::to_string(pickle_.bytes.size()) + " bytes could write");
    room_ -= amount;
  }

  void visit(const PickleValue& value, const std::string& name, size_t depth) {
    if (depth > kMaxDepth || name.size() > kMaxName)
      throw data_error(where_ + ": " + quoted(name) + " lies deeper than " +
                       std::to_string(kMaxDepth) + " dictionaries, or its name is longer than " +
                       std::to_string(kMaxName) + " bytes");
    if (value.kind == Kind::kTensor) return add(name, value);
    if (value.kind == Kind::kDict) return visit_dictionary(value, name, depth);
    if (value.kind == Kind::kList || value.kind == Kind::kTuple) visit_list(value, name, depth);
  }

  static bool holds_tensors(const PickleValue& value) {
    return value.kind == Kind::kTensor || value.kind == Kind::kDict || value.kind == Kind::kList ||
           value.kind == Kind::kTuple;
  }

  void visit_dictionary(const PickleValue& value, const std::string& name, size_t depth) {
    const auto& items = pickle_.items(value);
    spend(items.size() + 1);
    for (size_t i = 0; i + 1 < items.size(); i += 2)
      if (holds_tensors(items[i + 1]))
        visit(items[i + 1], joined(name, key_of(items[i], name)), depth + 1);
  }

  void visit_list(const PickleValue& value, const std::string& name, size_t depth) {
    const auto& items = pickle_.items(value);
    spend(items.size() + 1);
    for (size_t i = 0; i < items.size(); ++i)
      if (holds_tensors(items[i])) visit(items[i], joined(name, std::to_string(i)), depth + 1);
  }

  std::string key_of(const PickleValue& key, const std::string& name) const {
    if (key.kind == Kind::kText) return std::string(pickle_.text(key).substr(0, kMaxName + 1));
    if (key.kind == Kind::kInteger) return std::to_string(key.at);
    throw data_error(where_ + ": a key of the dictionary " + quoted(name) +
                     " is neither a text nor a whole number");
  }
  std::string joined(const std::string& name, const std::string& key) {
    std::string whole = name.empty() ? key : name + "." + key;
    spend(whole.size() + 32);
    return whole;
  }

  void add(const std::string& name, const PickleValue& value) {
    spend(512);  // memory of a tensor besides its values
    if (!names_.insert(name).second)
      throw data_error(where_ + ": two tensors are called " + quoted(name));
    found_.emplace_back(name, view(pickle_.tensors[static_cast<size_t>(value.at)], name));
  }

  std::vector<int64_t> numbers(int64_t sequence, const std::string& name) const {
    const auto& items = pickle_.sequences[static_cast<size_t>(sequence)];
    if (items.size() > kMaxViewDims)
      throw wrong(name, "has over " + std::to_string(kMaxViewDims) + " dimensions");
    std::vector<int64_t> numbers;
    numbers.reserve(items.size());
    for (const PickleValue& item : items) {
      if (item.at < 0) throw wrong(name, "a size or stride is negative");
      numbers.push_back(item.at);
    }
    return numbers;
  }

  at::Tensor view(const PickledTensor& described, const std::string& name) {
    const auto sizes = numbers(described.sizes, name), strides = numbers(described.strides, name);
    if (sizes.size() != strides.size()) throw wrong(name, "has not as many strides as sizes");
    const at::Tensor& memory =
        storages_.get(pickle_.storages[static_cast<size_t>(described.storage)]);
    check_view(sizes, strides, described.offset, memory.numel(), name);
    return at::as_strided(memory, sizes, strides, described.offset);
  }

  void check_view(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                  int64_t offset, int64_t available, const std::string& name) const {
    int64_t count = 1, extent = 1, last = offset;
    bool overflow = false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      int64_t reach = 0;
      count *= std::min<int64_t>(sizes[i], 1);
      overflow |= __builtin_mul_overflow(extent, std::max<int64_t>(sizes[i], 1), &extent);
      overflow |= __builtin_mul_overflow(std::max<int64_t>(sizes[i] - 1, 0), strides[i], &reach);
      overflow |= __builtin_add_overflow(last, reach, &last);
    }
    const bool empty = count == 0;
    if (overflow || offset < 0 || (empty ? offset > available : last >= available))
      throw wrong(name, "sizes, strides and offset reach beyond the " + std::to_string(available) +
                            " values of its memory");
    if (!empty && extent > available)
      throw wrong(name, "is an expanded view of " + std::to_string(available) +
                            " values; save its contiguous()");
  }

  const TorchPickle& pickle_;
  Storages storages_;
  std::string where_;
  size_t room_;
  std::set<std::string> names_;
  NamedTensors found_;
};

void check_byte_order(ZipArchive& archive, const std::string& root, const std::string& where) {
  if (!archive.has(root + "byteorder")) return;  // PyTorch before 2.1 wrote no byte order
  if (archive.size(root + "byteorder") > 16 || archive.read(root + "byteorder") != "little")
    throw data_error(where + ": its values are not little-endian; save it on such a machine");
}

}  // namespace

bool is_torch_file(std::string_view bytes, const std::string& where) {
  if (bytes.substr(0, kLegacyMagic.size()) == kLegacyMagic) return true;
  if (!is_zip(bytes)) return false;
  const ZipArchive archive(bytes, where);
  return root_of(archive) || is_torch_script(archive);
}

NamedTensors parse_torch_file(std::string_view bytes, const std::string& where) {
  if (bytes.substr(0, kLegacyMagic.size()) == kLegacyMagic)
    throw data_error(where + ": the format of PyTorch before 1.6; write it anew in Python: " +
                     "torch.save(torch.load(FILE, map_location='cpu', weights_only=True), FILE)");
  ZipArchive archive(bytes, where);
  if (is_torch_script(archive))
    throw data_error(where + ": a TorchScript archive; save its tensors alone in Python: " +
                     "torch.save(torch.jit.load(FILE).state_dict(), NEW)");
  const auto root = root_of(archive);
  if (!root) throw data_error(where + ": not a file of torch.save (no data.pkl in it)");
  check_byte_order(archive, *root, where);
  const std::string entry = *root + std::string(kPickleName);
  const uint64_t limit = std::min<uint64_t>(kMaxPickle, bytes.size());
  if (archive.size(entry) > limit)
    throw data_error(where + ": its pickle of " + std::to_string(archive.size(entry)) +
                     " bytes is compressed or larger than 16 MiB, which torch.save's of tensors " +
                     "are not; save the state_dict alone");
  const std::string pickle = archive.read(entry);
  const TorchPickle parsed = parse_torch_pickle(pickle, where);
  return TensorWalk(parsed, Storages(archive, *root, where), where).run();
}

}  // namespace crais
