#include "io/torch_pickle.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "io/json.h"
#include "util/error.h"

namespace crais {
namespace {

using Kind = PickleValue::Kind;
using Values = std::vector<PickleValue>;

/// Meanings of the global names in a pickle.
enum class Allowed { kOrderedDict, kTensor, kParameter, kSize, kDevice, kEncode, kDtype, kStorage };

struct AllowedGlobal {
  std::string name;
  Allowed what;
  at::ScalarType dtype = at::kFloat;  // kStorage only
};

const std::vector<AllowedGlobal>& allowed_globals() {
  struct Type {
    std::string name, storage;
    at::ScalarType dtype;
  };
  static const std::vector<AllowedGlobal> kAll = [] {
    std::vector<AllowedGlobal> all = {
        {"collections.OrderedDict", Allowed::kOrderedDict},
        {"torch._utils._rebuild_tensor_v2", Allowed::kTensor},
        {"torch._utils._rebuild_parameter", Allowed::kParameter},
        {"torch.Size", Allowed::kSize},
        {"torch.device", Allowed::kDevice},
        {"_codecs.encode", Allowed::kEncode}};  // protocol 2 writes bytes with this function
    for (const Type& type : std::vector<Type>{{"float32", "Float", at::kFloat},
                                              {"float64", "Double", at::kDouble},
                                              {"float16", "Half", at::kHalf},
                                              {"int64", "Long", at::kLong},
                                              {"bfloat16", "BFloat16", at::kBFloat16},
                                              {"int32", "Int", at::kInt},
                                              {"int16", "Short", at::kShort},
                                              {"int8", "Char", at::kChar},
                                              {"uint8", "Byte", at::kByte},
                                              {"bool", "Bool", at::kBool}}) {
      all.push_back({"torch." + type.name, Allowed::kDtype});
      all.push_back({"torch." + type.storage + "Storage", Allowed::kStorage, type.dtype});
    }
    return all;
  }();
  return kAll;
}

class PickleMachine {
 public:
  PickleMachine(std::string_view bytes, std::string where) : where_(std::move(where)) {
    pickle_.bytes = bytes;
  }

  TorchPickle run() {
    if (byte() != 0x80 || byte() != 2)
      throw wrong("it is no pickle of protocol 2, which torch.save writes by default");
    while (step(byte())) {
    }
    if (position_ != pickle_.bytes.size()) throw wrong("something follows its end");
    pickle_.root = pop();
    if (!stack_.empty() || !marks_.empty()) throw wrong("values are left over at its end");
    return std::move(pickle_);
  }

 private:
  Error wrong(const std::string& what) const {
    return data_error(where_ + ": not a pickle of torch.save: byte " + std::to_string(position_) +
                      ": " + what);
  }
  Error runs_code(const std::string& name) const {
    return data_error(where_ + ": loading it would run code: " + quoted(name) +
                      "; save the state_dict instead: torch.save(model.state_dict(), ...)");
  }

  /// True for names of tensor types that this reader does not read.
  static bool is_of_tensors(const std::string& name) {
    constexpr std::string_view kRebuild = "torch._utils._rebuild_", kTorch = "torch.";
    if (name.rfind(kRebuild, 0) == 0) return true;
    if (name.rfind(kTorch, 0) != 0 || name.find('.', kTorch.size()) != std::string::npos)
      return false;
    const std::string own = name.substr(kTorch.size());
    const size_t word = std::min(own.find_first_of("0123456789"), own.size());
    for (const char* kind : {"complex", "float", "bfloat", "uint", "int", "quint", "qint", "bits"})
      if (word < own.size() && own.substr(0, word) == kind) return true;
    return own == "Size" || own == "device" ||
           (own.size() > 7 && own.substr(own.size() - 7) == "Storage");
  }
  Error unread(const std::string& name) const {
    if (!is_of_tensors(name)) return runs_code(name);
    return data_error(where_ + ": holds a tensor of a kind that is not read, " + quoted(name) +
                      "; save plain tensors of float64 to bfloat16, int64 to uint8 or bool");
  }

  // --- bytes ---

  std::string_view take(uint64_t count) {
    if (count > pickle_.bytes.size() - position_) throw wrong("it is truncated");
    const std::string_view taken = pickle_.bytes.substr(position_, count);
    position_ += count;
    return taken;
  }
  uint8_t byte() { return static_cast<uint8_t>(take(1)[0]); }
  uint64_t little_endian(size_t count) {
    uint64_t number = 0;
    for (size_t i = 0; i < count; ++i) number |= uint64_t{byte()} << 8 * i;
    return number;
  }
  std::string line() {
    const size_t end = pickle_.bytes.find('\n', position_);
    if (end == std::string_view::npos) throw wrong("it is truncated");
    const std::string_view text = take(end - position_);
    take(1);
    return std::string(text);
  }

  // --- the stack ---

  void push(Kind kind, int64_t at = 0) { stack_.push_back({kind, 0, at}); }
  void push_sequence(Kind kind, Values items) {
    push(kind, static_cast<int64_t>(pickle_.sequences.size()));
    pickle_.sequences.push_back(std::move(items));
  }
  PickleValue& top() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) throw wrong("no value is there");
    return stack_.back();
  }
  PickleValue pop() {
    const PickleValue value = top();
    stack_.pop_back();
    return value;
  }
  Values pop_last(size_t count) {
    Values values(count);
    for (size_t i = count; i-- > 0;) values[i] = pop();
    return values;
  }
  Values pop_to_mark() {
    if (marks_.empty()) throw wrong("no mark is there");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    Values values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }
  PickleValue pop_of(Kind kind, const char* expected) { return of(pop(), kind, expected); }
  PickleValue of(const PickleValue& value, Kind kind, const char* expected) const {
    if (value.kind != kind) throw wrong(std::string(expected) + " was expected");
    return value;
  }
  Values& items(const PickleValue& value) {
    return pickle_.sequences[static_cast<size_t>(value.at)];
  }

  // --- opcodes, with the names of Python's pickletools ---

  /// All opcodes but STOP.
  static const std::map<uint8_t, void (*)(PickleMachine&)>& opcodes() {
    using M = PickleMachine;
    static const std::map<uint8_t, void (*)(M&)> kAll = {
        {'(', [](M& m) { m.marks_.push_back(m.stack_.size()); }},
        {'}', [](M& m) { m.push_sequence(Kind::kDict, {}); }},
        {']', [](M& m) { m.push_sequence(Kind::kList, {}); }},
        {')', [](M& m) { m.push_sequence(Kind::kTuple, {}); }},
        {'t', [](M& m) { m.push_sequence(Kind::kTuple, m.pop_to_mark()); }},
        {0x85, [](M& m) { m.push_sequence(Kind::kTuple, m.pop_last(1)); }},  // TUPLE1, 2, 3
        {0x86, [](M& m) { m.push_sequence(Kind::kTuple, m.pop_last(2)); }},
        {0x87, [](M& m) { m.push_sequence(Kind::kTuple, m.pop_last(3)); }},
        {'a', [](M& m) { m.append(m.pop_last(1), Kind::kList, "a list"); }},
        {'e', [](M& m) { m.append(m.pop_to_mark(), Kind::kList, "a list"); }},
        {'s', [](M& m) { m.append(m.pop_last(2), Kind::kDict, "a dictionary"); }},
        {'u', [](M& m) { m.append(m.pop_to_mark(), Kind::kDict, "a dictionary"); }},
        {'q', [](M& m) { m.remember(m.little_endian(1)); }},
        {'r', [](M& m) { m.remember(m.little_endian(4)); }},
        {'h', [](M& m) { m.recall(m.little_endian(1)); }},
        {'j', [](M& m) { m.recall(m.little_endian(4)); }},
        {'c', [](M& m) { m.global(); }},
        {'Q', [](M& m) { m.storage(); }},
        {'R', [](M& m) { m.reduce(); }},
        {'b', [](M& m) { m.build(); }},
        {'N', [](M& m) { m.opaque(0); }},   // NONE
        {0x88, [](M& m) { m.opaque(0); }},  // NEWTRUE
        {0x89, [](M& m) { m.opaque(0); }},  // NEWFALSE
        {'G', [](M& m) { m.opaque(8); }},   // BINFLOAT
        {'K', [](M& m) { m.push(Kind::kInteger, static_cast<int64_t>(m.little_endian(1))); }},
        {'M', [](M& m) { m.push(Kind::kInteger, static_cast<int64_t>(m.little_endian(2))); }},
        {'J', [](M& m) { m.push(Kind::kInteger, static_cast<int32_t>(m.little_endian(4))); }},
        {0x8a, [](M& m) { m.long_integer(m.little_endian(1)); }},
        {0x8b, [](M& m) { m.long_integer(m.little_endian(4)); }},
        {'X', [](M& m) { m.text(m.little_endian(4)); }}};
    return kAll;
  }

  /// Runs one opcode. Returns false at STOP.
  bool step(uint8_t opcode) {
    if (opcode == '.') return false;
    const auto entry = opcodes().find(opcode);
    if (entry == opcodes().end())
      throw wrong("opcode " + hex_byte(opcode) + " is none that torch.save needs" +
                  (runs(opcode) ? ", and could run code; save the state_dict instead" : ""));
    entry->second(*this);
    return true;
  }

  static std::string hex_byte(uint8_t value) {
    std::array<char, 8> digits{};
    std::snprintf(digits.data(), digits.size(), "0x%02x", unsigned{value});
    return digits.data();
  }
  /// True for the opcodes that run code: INST, OBJ, NEWOBJ, NEWOBJ_EX, STACK_GLOBAL, EXT1, EXT2,
  /// EXT4.
  static bool runs(uint8_t opcode) {
    return std::string_view("io\x81\x92\x93\x82\x83\x84").find(static_cast<char>(opcode)) !=
           std::string_view::npos;
  }

  void opaque(uint64_t num_bytes) {
    take(num_bytes);
    push(Kind::kOpaque);
  }

  void long_integer(uint64_t count) {
    if (count > 8) return opaque(count);  // too large for a size, so no tensor uses it
    uint64_t bits = little_endian(count);
    const bool negative = count > 0 && (bits >> (8 * count - 1) & 1) != 0;
    if (negative && count < 8) bits |= ~uint64_t{0} << 8 * count;
    push(Kind::kInteger, static_cast<int64_t>(bits));
  }

  void text(uint64_t length) {
    const auto begin = static_cast<int64_t>(position_);
    take(length);
    stack_.push_back({Kind::kText, static_cast<uint32_t>(length), begin});
  }

  void append(const Values& values, Kind kind, const char* expected) {
    if (kind == Kind::kDict && values.size() % 2 != 0) throw wrong("a key has no value");
    Values& target = items(of(top(), kind, expected));
    target.insert(target.end(), values.begin(), values.end());
  }

  /// Stores the last value in the memo. Python numbers the memo from 0.
  void remember(uint64_t index) {
    const PickleValue value = top();
    if (index > memo_.size()) throw wrong("it remembers values out of their order");
    if (index == memo_.size()) memo_.emplace_back();
    memo_[index] = value;
  }
  void recall(uint64_t index) {
    if (index >= memo_.size()) throw wrong("it recalls a value that it never had");
    stack_.push_back(memo_[index]);
  }

  // --- global names and calls ---

  void global() {
    const std::string module = line();
    const std::string name = module + "." + line();
    const auto& all = allowed_globals();
    const auto allowed_global =
        std::find_if(all.begin(), all.end(),
                     [&](const AllowedGlobal& candidate) { return name == candidate.name; });
    if (allowed_global == all.end()) throw unread(name);
    push(Kind::kGlobal, allowed_global - all.begin());
  }
  static const AllowedGlobal& allowed(const PickleValue& global) {
    return allowed_globals()[static_cast<size_t>(global.at)];
  }

  /// ("storage", torch.FloatStorage, key, device, number of elements). The device is ignored: every
  /// tensor is read to the CPU.
  void storage() {
    const Values parts = items(pop_of(Kind::kTuple, "a tuple"));
    if (parts.size() != 5 || parts[0].kind != Kind::kText || pickle_.text(parts[0]) != "storage" ||
        parts[1].kind != Kind::kGlobal || allowed(parts[1]).what != Allowed::kStorage ||
        parts[2].kind != Kind::kText || parts[4].kind != Kind::kInteger)
      throw wrong("a storage is not described as (\"storage\", type, key, device, count)");
    push(Kind::kStorage, static_cast<int64_t>(pickle_.storages.size()));
    pickle_.storages.push_back({pickle_.text(parts[2]), allowed(parts[1]).dtype, parts[4].at});
  }

  void reduce() {
    const PickleValue arguments = pop_of(Kind::kTuple, "a tuple of arguments");
    const PickleValue callee = pop_of(Kind::kGlobal, "a function");
    const Values& values = items(arguments);
    switch (allowed(callee).what) {
      case Allowed::kOrderedDict:
        if (!values.empty()) break;
        return push_sequence(Kind::kDict, {});
      case Allowed::kTensor:
        return tensor(values);
      case Allowed::kParameter:
        if (values.size() != 3 || values[0].kind != Kind::kTensor) break;
        return push(Kind::kTensor, values[0].at);
      case Allowed::kSize:
        if (values.size() != 1 || values[0].kind != Kind::kTuple) break;
        return push(Kind::kTuple, values[0].at);
      case Allowed::kDevice:
      case Allowed::kEncode:
        return push(Kind::kOpaque);
      case Allowed::kDtype:
      case Allowed::kStorage:
        break;
    }
    throw wrong(allowed(callee).name + " is not called as torch.save does");
  }

  /// (storage, offset, sizes, strides, requires_grad, hooks). The last two are ignored.
  void tensor(const Values& values) {
    if (values.size() < 6 || values.size() > 7 || values[0].kind != Kind::kStorage ||
        values[1].kind != Kind::kInteger || !are_sizes(values[2]) || !are_sizes(values[3]))
      throw wrong("a tensor is not described as (storage, offset, sizes, strides, ...)");
    const PickledTensor described{values[0].at, values[1].at, values[2].at, values[3].at};
    push(Kind::kTensor, static_cast<int64_t>(pickle_.tensors.size()));
    pickle_.tensors.push_back(described);
  }
  bool are_sizes(const PickleValue& value) {
    if (value.kind != Kind::kTuple) return false;
    const Values& sizes = items(value);
    return std::all_of(sizes.begin(), sizes.end(),
                       [](const PickleValue& size) { return size.kind == Kind::kInteger; });
  }

  /// Skips the attributes of a dictionary (a state_dict has `_metadata`), which nothing here needs.
  void build() {
    pop();
    of(top(), Kind::kDict, "a dictionary");
  }

  TorchPickle pickle_;
  std::string where_;
  size_t position_ = 0;
  Values stack_;
  std::vector<size_t> marks_;
  Values memo_;
};

}  // namespace

TorchPickle parse_torch_pickle(std::string_view bytes, const std::string& where) {
  return PickleMachine(bytes, where).run();
}

}  // namespace crais
