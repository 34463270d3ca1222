#include "io/torch_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "io/torch_pickle.h"
#include "support/expect_error.h"
#include "support/zip_writer.h"
#include "util/files.h"

namespace crais {
namespace {

using testing::little_endian;
using testing::zip_of;

// --- files that PyTorch wrote (tests/io/data/make_torch_files.py) ---

std::string fixture(const std::string& name) {
  return std::string(CRAIS_SOURCE) + "/tests/io/data/" + name;
}

NamedTensors read_fixture(const std::string& name) {
  return parse_torch_file(read_file(fixture(name)), fixture(name));
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

at::Tensor named(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [known, tensor] : tensors)
    if (known == name) return tensor;
  ADD_FAILURE() << "no tensor " << name;
  return at::zeros({});
}

at::Tensor counted(const std::vector<int64_t>& shape) {
  return at::arange(c10::multiply_integers(shape), at::kFloat).view(shape);
}

/// Expects equal type, shape and values.
void expect_tensor(const at::Tensor& tensor, const at::Tensor& expected) {
  EXPECT_EQ(tensor.scalar_type(), expected.scalar_type());
  EXPECT_EQ(tensor.sizes(), expected.sizes());
  EXPECT_TRUE(at::equal(tensor, expected)) << tensor << expected;
}

TEST(TorchFile, ATensorAlone) {
  const NamedTensors tensors = read_fixture("tensor.pt");
  ASSERT_EQ(names_of(tensors), std::vector<std::string>{""});
  expect_tensor(tensors[0].second, counted({2, 3}));
}

TEST(TorchFile, AStateDictKeepsItsOrder) {
  const NamedTensors tensors = read_fixture("state_dict.pt");
  EXPECT_EQ(names_of(tensors),
            (std::vector<std::string>{"fc1.weight", "fc1.bias", "norm.weight", "norm.bias",
                                      "norm.running_mean", "norm.running_var",
                                      "norm.num_batches_tracked"}));
  expect_tensor(named(tensors, "fc1.weight"), counted({3, 2}));
  expect_tensor(named(tensors, "fc1.bias"), counted({3}));
  expect_tensor(named(tensors, "norm.running_var"), at::ones({3}));
  expect_tensor(named(tensors, "norm.num_batches_tracked"), at::zeros({}, at::kLong));
}

TEST(TorchFile, ACheckpointIsFlattenedAndWhatIsNoTensorPassedOver) {
  const NamedTensors tensors = read_fixture("checkpoint.pt");
  EXPECT_EQ(tensors.size(), 7U + 4 * 3U);
  expect_tensor(named(tensors, "model.fc1.weight"), counted({3, 2}));
  expect_tensor(named(tensors, "optimizer.state.0.step"), at::ones({}));
  EXPECT_EQ(named(tensors, "optimizer.state.0.exp_avg").sizes(), (std::vector<int64_t>{3, 2}));
}

TEST(TorchFile, ATupleIsNumbered) {
  const NamedTensors tensors = read_fixture("tuple.pt");
  ASSERT_EQ(names_of(tensors), (std::vector<std::string>{"0", "1"}));
  expect_tensor(tensors[0].second, counted({2, 2}).to(at::kByte));
  expect_tensor(tensors[1].second, at::tensor({7, 8}, at::kLong));
}

TEST(TorchFile, ViewsKeepTheirStridesAndShareTheirMemory) {
  const NamedTensors tensors = read_fixture("views.pt");
  const at::Tensor base = counted({3, 4});
  expect_tensor(named(tensors, "base"), base);
  expect_tensor(named(tensors, "transposed"), base.t());
  expect_tensor(named(tensors, "row"), base[1]);
  expect_tensor(named(tensors, "corner"), base.slice(0, 1).slice(1, 2));
  expect_tensor(named(tensors, "scalar"), at::full({}, 2.5F));
  expect_tensor(named(tensors, "empty"), at::empty({0, 5}));
  EXPECT_TRUE(named(tensors, "corner").is_alias_of(named(tensors, "base")));
}

TEST(TorchFile, EveryType) {
  const NamedTensors tensors = read_fixture("dtypes.pt");
  EXPECT_EQ(tensors.size(), 10U);
  const at::Tensor numbers = at::arange(3);
  for (const auto& [name, type] :
       std::vector<std::pair<std::string, at::ScalarType>>{{"float64", at::kDouble},
                                                           {"float32", at::kFloat},
                                                           {"float16", at::kHalf},
                                                           {"bfloat16", at::kBFloat16},
                                                           {"int64", at::kLong},
                                                           {"int32", at::kInt},
                                                           {"int16", at::kShort},
                                                           {"int8", at::kChar},
                                                           {"uint8", at::kByte},
                                                           {"bool", at::kBool}})
    expect_tensor(named(tensors, name), numbers.to(type));
}

TEST(TorchFile, AParameterIsItsTensor) {
  expect_tensor(named(read_fixture("parameter.pt"), "weight"), counted({3, 2}));
}

TEST(TorchFile, RecognisesWhatPyTorchWrote) {
  for (const char* name : {"tensor.pt", "checkpoint.pt", "legacy.pt", "script.pt", "module.pt"})
    EXPECT_TRUE(is_torch_file(read_file(fixture(name)), "FILE")) << name;
  EXPECT_FALSE(is_torch_file("", "FILE"));
  EXPECT_FALSE(is_torch_file("\x93NUMPY", "FILE"));
  EXPECT_FALSE(is_torch_file(zip_of({{"x.npy", ""}}), "FILE"));
}

TEST(TorchFile, RefusesOtherFilesOfPyTorchAndSaysWhatToDo) {
  const auto expect_no_load = [](const std::string& name, std::vector<std::string> words) {
    words.push_back(fixture(name));
    expect_error(ErrorKind::kData, words, [&] { read_fixture(name); });
  };
  expect_no_load("module.pt", {"run code", "\"torch.nn.modules.linear.Linear\"",
                               "torch.save(model.state_dict()"});
  expect_no_load("legacy.pt",
                 {"before 1.6", "torch.load(FILE, map_location='cpu', weights_only=True)"});
  expect_no_load("script.pt", {"TorchScript", "torch.jit.load(FILE).state_dict()"});
  expect_no_load("protocol4.pt", {"protocol 2"});
  expect_no_load("no_tensor.pt", {"holds no tensor"});
  expect_no_load("expanded.pt", {"expanded view of 12 values", "contiguous()"});
}

// --- pickles made by hand ---

std::string text(const std::string& value) { return "X" + little_endian(value.size(), 4) + value; }
std::string integer(int64_t value) {
  return "\x8a\x08" + little_endian(static_cast<uint64_t>(value), 8);
}
std::string tuple(const std::vector<int64_t>& values) {
  std::string opcodes = "(";
  for (const int64_t value : values) opcodes += integer(value);
  return opcodes + "t";
}
std::string pickle(const std::string& opcodes) { return "\x80\x02" + opcodes + "."; }

struct Described {
  std::string storage = "FloatStorage";
  std::string key = "0";
  int64_t count = 6;
  int64_t offset = 0;
  std::vector<int64_t> sizes = {2, 3};
  std::vector<int64_t> strides = {3, 1};
};

std::string tensor(const Described& t) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\n" + t.storage + "\n" +
         text(t.key) + text("cpu") + integer(t.count) + "tQ" + integer(t.offset) + tuple(t.sizes) +
         tuple(t.strides) + "\x89}tR";
}

/// A file with this pickle and one storage of six floats, 0 to 5, as PyTorch 1.6 laid it out.
std::string file_of(const std::string& pickle) {
  const at::Tensor values = at::arange(6, at::kFloat);
  return zip_of({{"archive/data.pkl", pickle},
                 {"archive/data/0", {static_cast<const char*>(values.data_ptr()), 24}},
                 {"archive/version", "3\n"}});
}

void expect_no_load(const std::string& opcodes, const std::vector<std::string>& words) {
  const std::string file = file_of(pickle(opcodes));
  expect_error(ErrorKind::kData, {"FILE: "}, [&] { parse_torch_file(file, "FILE"); });
  expect_error(ErrorKind::kData, words, [&] { parse_torch_file(file, "FILE"); });
}

TEST(TorchFileByHand, IsReadLikeOthers) {
  const NamedTensors tensors =
      parse_torch_file(file_of(pickle("}(" + text("a") + tensor({}) + text("b") +
                                      tensor({.offset = 1, .sizes = {2}, .strides = {4}}) + "u")),
                       "FILE");
  ASSERT_EQ(names_of(tensors), (std::vector<std::string>{"a", "b"}));
  expect_tensor(tensors[0].second, counted({2, 3}));
  expect_tensor(tensors[1].second, at::tensor({1.0F, 5.0F}));
}

TEST(TorchFileByHand, TruthValuesOfOtherBytesAreTrue) {
  const std::string file = zip_of(
      {{"x/data.pkl",
        pickle(tensor({.storage = "BoolStorage", .count = 3, .sizes = {3}, .strides = {1}}))},
       {"x/data/0", std::string("\x00\x01\xff", 3)}});
  expect_tensor(parse_torch_file(file, "FILE")[0].second, at::tensor({0, 1, 1}).to(at::kBool));
}

TEST(TorchFileByHand, CodeIsRefusedAndNamed) {
  for (const std::string name :
       {"builtins.eval", "posix.system", "os.system", "subprocess.Popen", "torch.load",
        "torch.nn.modules.linear.Linear", "collections.OrderedDict2", "torch.integrate",
        "torch.serialization.float", "__builtin__.getattr", "numpy.core.multiarray.scalar"}) {
    const size_t dot = name.rfind('.');
    const std::string opcodes =
        "c" + name.substr(0, dot) + "\n" + name.substr(dot + 1) + "\n(" + text("print(1)") + "tR";
    expect_no_load(opcodes, {"would run code", "\"" + name + "\"", "save the state_dict"});
    // Also where nothing calls it, or where a tensor stands beside.
    expect_no_load("c" + name.substr(0, dot) + "\n" + name.substr(dot + 1) + "\n", {name});
    expect_no_load("(" + tensor({}) + opcodes + "t", {name});
  }
}

TEST(TorchFileByHand, TensorsOfOtherKindsAreSaidToBeSo) {
  for (const std::string name :
       {"torch._utils._rebuild_device_tensor_from_numpy", "torch._utils._rebuild_sparse_tensor",
        "torch._utils._rebuild_qtensor", "torch.UntypedStorage", "torch.ComplexFloatStorage",
        "torch.complex64", "torch.float8_e4m3fn", "torch.uint16", "torch.quint8"}) {
    const size_t dot = name.rfind('.');
    expect_no_load(
        "c" + name.substr(0, dot) + "\n" + name.substr(dot + 1) + "\n(" + tensor({}) + "tR",
        {"a kind that is not read", "\"" + name + "\""});
  }
}

TEST(TorchFileByHand, OtherOpcodesAreRefused) {
  for (const char* opcode : {"i", "o", "\x81", "\x92", "\x93", "\x82", "\x83", "\x84"})
    expect_no_load(
        "c"
        "collections\nOrderedDict\n)" +
            std::string(opcode),
        {"0x", "run code"});
  for (int opcode = 0; opcode < 256; ++opcode)
    if (std::string_view(".(}])t\x85\x86\x87"
                         "aesuqrhjcQRbN\x88\x89GKMJ\x8a\x8bX")
            .find(static_cast<char>(opcode)) == std::string_view::npos)
      expect_no_load(std::string(1, static_cast<char>(opcode)), {"opcode 0x", "byte 3"});
}

TEST(TorchFileByHand, AllowedNamesAreCalledAsTorchSaveDoesOrNotAtAll) {
  expect_no_load("ccollections\nOrderedDict\n(" + tensor({}) + "tR", {"OrderedDict", "not called"});
  expect_no_load("ctorch\nFloatStorage\n" + integer(1) + "\x85R", {"FloatStorage", "not called"});
  expect_no_load("ctorch\nfloat32\n)R", {"torch.float32", "not called"});
  expect_no_load("ctorch\nSize\n)R", {"torch.Size"});
  expect_no_load("ctorch._utils\n_rebuild_parameter\n)R", {"_rebuild_parameter"});
  expect_no_load("ctorch._utils\n_rebuild_tensor_v2\n)R", {"a tensor is not described"});
  expect_no_load(text("eval") + ")R", {"a function was expected"});
  expect_no_load("ccollections\nOrderedDict\n]R", {"a tuple of arguments was expected"});
  expect_no_load("(tQ", {"a storage is not described"});
  expect_no_load(integer(1) + "Q", {"a tuple was expected"});
  expect_no_load(integer(1) + integer(2) + "b", {"a dictionary was expected"});
}

TEST(TorchFileByHand, StacksThatRunDryAreRefused) {
  for (const char* opcodes : {"", "t", "u", "e", "s", "a", "R", "b", "Q", "\x85", "\x87", "q\x01",
                              "(s", "}(a", "}s", "}]a", "](u", "NN", "(N"})
    expect_no_load(opcodes, {"not a pickle of torch.save", "byte"});
  expect_no_load("}(Nu", {"a key has no value"});
  expect_no_load("h" + little_endian(0, 1), {"never had"});
  expect_no_load("Nr" + little_endian(0xffffffff, 4), {"out of their order"});
  expect_no_load("N.N", {"something follows"});
}

TEST(TorchFileByHand, CountsBeyondTheFileAreRefused) {
  expect_no_load("X" + little_endian(0xffffffff, 4) + "x", {"truncated"});
  expect_no_load("\x8b" + little_endian(0xffffffff, 4) + "x", {"truncated"});
  expect_no_load("ccollections", {"truncated"});
  for (const int64_t count : {int64_t{-1}, int64_t{5}, int64_t{7}, INT64_MAX, INT64_MIN})
    expect_no_load(tensor({.count = count}), {"archive/data/0", "24 bytes", std::to_string(count)});
  // 2^62 floats: their bytes are 2^64, which wraps to 0.
  expect_no_load(tensor({.count = int64_t{1} << 62}), {"24 bytes"});
  expect_no_load(tensor({.storage = "DoubleStorage"}), {"24 bytes", "6 values of 8"});
  expect_no_load(tensor({.key = "1"}), {"archive/data/1", "not in the archive"});
  expect_no_load(tensor({.key = "../version"}), {"not in the archive"});
}

TEST(TorchFileByHand, ViewsOutsideTheirMemoryAreRefused) {
  const auto outside = [](const Described& t) {
    expect_no_load(tensor(t), {"tensor \"\"", "beyond the 6 values"});
  };
  outside({.offset = 1});
  outside({.offset = -1});
  outside({.offset = INT64_MAX});
  outside({.sizes = {3, 3}});
  outside({.strides = {4, 1}});
  outside({.strides = {INT64_MAX, INT64_MAX}});
  outside({.sizes = {INT64_MAX, INT64_MAX}});
  outside({.sizes = {INT64_MAX, 0, INT64_MAX}, .strides = {1, 1, 1}});
  outside({.offset = 7, .sizes = {0, 3}});
  expect_no_load(tensor({.sizes = {-1, 3}}), {"negative"});
  expect_no_load(tensor({.strides = {-3, 1}}), {"negative"});
  expect_no_load(tensor({.strides = {1}}), {"not as many strides"});
  expect_no_load(tensor({.sizes = std::vector<int64_t>(17, 1)}), {"over 16 dimensions"});
  // No allocation justifies what an expanded view would become.
  expect_no_load(tensor({.sizes = {INT64_MAX}, .strides = {0}}), {"expanded view"});
  expect_no_load(tensor({.sizes = {7}, .strides = {0}}), {"expanded view"});
}

TEST(TorchFileByHand, OneMemoryHasOneDescription) {
  const std::string integers = tensor({.storage = "IntStorage"});
  expect_no_load("(" + tensor({}) + integers + "t", {"archive/data/0", "two ways"});
}

TEST(TorchFileByHand, TwoTensorsHaveTwoNames) {
  const std::string a = text("a"), b = text("b"), both = text("a.b");
  expect_no_load("}(" + a + tensor({}) + a + tensor({}) + "u", {"two tensors", "\"a\""});
  expect_no_load("}(" + a + "}" + b + tensor({}) + "s" + both + tensor({}) + "u", {"\"a.b\""});
  expect_no_load("}" + a + "\x85" + tensor({}) + "s", {"neither a text nor a whole number"});
}

TEST(TorchFileByHand, DepthIsBounded) {
  expect_no_load(std::string(1'000'000, ']') + std::string(999'999, 'a'), {"lies deeper than 64"});
  // A list that holds itself.
  expect_no_load("]q" + little_endian(0, 1) + "h" + little_endian(0, 1) + "a", {"deeper than 64"});
  EXPECT_EQ(names_of(parse_torch_file(file_of(pickle("]]]" + tensor({}) + "aaa")), "FILE"))[0],
            "0.0.0");
}

TEST(TorchFileByHand, ValuesInManyPlacesAreBounded) {
  // Each list holds the one before ten times: 10^30 tensors.
  std::string laughs = tensor({}) + "q" + little_endian(0, 1);
  for (uint64_t i = 0; i < 30; ++i) {
    laughs += "](";
    for (int j = 0; j < 10; ++j) laughs += "h" + little_endian(i, 1);
    laughs += "eq" + little_endian(i + 1, 1);
  }
  // The lists stay on the stack but for the last; a tuple gathers them.
  expect_no_load("(" + laughs + "t", {"unfolds to more names"});
  expect_no_load("}" + text(std::string(2000, 'x')) + tensor({}) + "s", {"longer than 1024"});
}

TEST(TorchFileByHand, OneTensorUnderTwoNamesIsTwo) {
  const NamedTensors tensors =
      parse_torch_file(file_of(pickle("(" + tensor({}) + "q" + little_endian(0, 1) + "h" +
                                      little_endian(0, 1) + "t")),
                       "FILE");
  ASSERT_EQ(names_of(tensors), (std::vector<std::string>{"0", "1"}));
  EXPECT_TRUE(tensors[0].second.is_alias_of(tensors[1].second));
}

TEST(TorchFileByHand, ACompressedPickleIsRefused) {
  const std::string zeros = pickle("X" + little_endian(100'000, 4) + std::string(100'000, 'x'));
  const std::string file = zip_of({{"archive/data.pkl", zeros, true}});
  expect_error(ErrorKind::kData, {"FILE: its pickle of 100008 bytes"},
               [&] { parse_torch_file(file, "FILE"); });
}

TEST(TorchFileByHand, OtherArchivesAreRefused) {
  const auto refused = [](const std::string& bytes, const std::vector<std::string>& words) {
    expect_error(ErrorKind::kData, words, [&] { parse_torch_file(bytes, "FILE"); });
  };
  refused("", {"FILE", "not a zip archive"});
  refused(zip_of({{"x.npy", ""}}), {"FILE", "no data.pkl"});
  refused(zip_of({{"data.pkl", pickle("N")}}), {"FILE", "no data.pkl"});
  refused(zip_of({{"a/data.pkl", pickle(tensor({}))}, {"a/byteorder", "big"}}), {"little-endian"});
}

TEST(TorchFile, HostileNamesStayOnOneShortLine) {
  const std::string name = "a\n\x1b[31m" + std::string(900, 'x');
  const std::string file = file_of(pickle("}" + text(name) + tensor({.sizes = {3, 3}}) + "s"));
  try {
    parse_torch_file(file, "FILE");
    FAIL() << "no error was thrown";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find_first_of("\n\x1b"), std::string::npos);
    EXPECT_LT(message.size(), 300U);
  }
}

TEST(TorchFile, EveryTruncationIsRefused) {
  const std::string bytes = read_file(fixture("state_dict.pt"));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(parse_torch_file(bytes.substr(0, size), "FILE"), Error) << size;
}

TEST(TorchFile, EveryTruncationOfThePickleIsRefused) {
  const std::string whole = pickle("}(" + text("a") + tensor({}) + text("n") + integer(3) + "u");
  EXPECT_EQ(parse_torch_file(file_of(whole), "FILE").size(), 1U);
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(parse_torch_pickle(whole.substr(0, size), "FILE"), Error) << size;
}

/// Reads it, or throws Error: nothing else may happen.
void read_or_refuse(const std::string& bytes) {
  try {
    for (const auto& [name, tensor] : parse_torch_file(bytes, "FILE"))
      EXPECT_LE(tensor.numel(), static_cast<int64_t>(bytes.size()));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData) << error.what();
  }
}

TEST(TorchFile, EveryDamagedByteIsReadOrRefused) {
  const std::string bytes = read_file(fixture("views.pt"));
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {1, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      read_or_refuse(damaged);
    }
  }
}

TEST(TorchFile, DamagedPicklesUnderTrueChecksumsAreReadOrRefused) {
  const std::string whole =
      pickle("}(" + text("a") + tensor({}) + text("b") +
             tensor({.offset = 1, .sizes = {2}, .strides = {4}}) + text("n") + integer(3) + "u");
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(value);
      read_or_refuse(file_of(damaged));
    }
  }
  // Several bytes at once, and pieces that stand elsewhere.
  std::mt19937_64 random(1);
  for (int round = 0; round < 50'000; ++round) {
    std::string damaged = whole;
    for (uint64_t edits = 1 + random() % 6; edits > 0; --edits) {
      const size_t place = random() % damaged.size(), other = random() % damaged.size();
      if (random() % 2)
        damaged[place] = static_cast<char>(random() % 256);
      else
        damaged.insert(place, damaged.substr(other, random() % 24));
    }
    read_or_refuse(file_of(damaged));
  }
}

}  // namespace
}  // namespace crais
