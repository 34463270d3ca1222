#include "device/mock_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/rng.h"

namespace crais::testing {
namespace {

constexpr auto kType = c10::DeviceType::PrivateUse1;
constexpr uintptr_t kElsewhere = uintptr_t{0x5a} << 56;  // no address of a host is so large

int64_t waits = 0;
bool draws_counted = false;  // see CountedNumbers

void* moved(void* address) {
  const auto elsewhere = reinterpret_cast<uintptr_t>(address) ^ kElsewhere;
  return reinterpret_cast<void*>(elsewhere);  // NOLINT(performance-no-int-to-ptr)
}

struct MockAllocator : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* address = moved(std::aligned_alloc(64, (bytes / 64 + 1) * 64));
    return {address, address, &release, mock_device()};
  }
  static void release(void* address) { std::free(moved(address)); }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(moved(to), moved(const_cast<void*>(from)), bytes);
  }
};
MockAllocator allocator;

bool is_mock(const at::Tensor& x) { return x.device().type() == kType; }

/// A CPU tensor with the memory of `x`.
at::Tensor on_host(const at::Tensor& x) {
  if (!is_mock(x)) return x;
  const at::TensorOptions options = at::TensorOptions().dtype(x.dtype());
  if (x.numel() == 0) return at::empty_strided(x.sizes(), x.strides(), options);
  return at::from_blob(moved(x.data_ptr()), x.sizes(), x.strides(), options);
}

at::Tensor empty_like_on_device(const at::Tensor& x) {
  return at::empty_strided(x.sizes(), x.strides(), x.options().device(mock_device()));
}

at::Tensor to_device(const at::Tensor& x) {
  at::Tensor copy = empty_like_on_device(x);
  on_host(copy).copy_(x);
  return copy;
}

// --- random numbers -----------------------------------------------------------------------------

struct MockGenerator : c10::GeneratorImpl {
  explicit MockGenerator(at::Generator of)
      : c10::GeneratorImpl(mock_device(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host(std::move(of)) {}
  void set_current_seed(uint64_t seed) override { host.set_current_seed(seed); }
  void set_offset(uint64_t offset) override { host.set_offset(offset); }
  uint64_t get_offset() const override { return host.get_offset(); }
  uint64_t current_seed() const override { return host.current_seed(); }
  uint64_t seed() override { return at::Generator(host).seed(); }
  void set_state(const c10::TensorImpl& state) override {
    static_cast<at::CPUGeneratorImpl*>(host.unsafeGetGeneratorImpl())->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host.unsafeGetGeneratorImpl()->get_state();
  }
  MockGenerator* clone_impl() const override { return new MockGenerator(host.clone()); }

  at::Generator host;
};

at::Generator host_of(const at::Generator& generator, const std::string& operation) {
  TORCH_CHECK(generator.device().type() == kType, "mock device: ", operation,
              " with a generator of the CPU");
  return static_cast<MockGenerator*>(generator.unsafeGetGeneratorImpl())->host;
}

struct Hooks : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const at::Generator kGenerator =
        at::make_generator<MockGenerator>(make_counting_generator(0));
    return kGenerator;
  }
};

// --- operations ---------------------------------------------------------------------------------

/// Operations since a recording began, to be run again.
std::vector<std::function<void()>>* recording = nullptr;

/// Arguments of one call, seen from the host.
class Call {
 public:
  Call(const c10::OperatorHandle& op, std::vector<c10::IValue> arguments)
      : op_(op), arguments_(std::move(arguments)) {}

  /// Its results as tensors of the host; what it writes to has been written.
  std::vector<c10::IValue> run() const {
    torch::jit::Stack stack;
    std::vector<std::pair<at::Tensor, at::Tensor>> written;  // on the device, on the host
    const auto& schema = op_.schema().arguments();
    for (size_t i = 0; i < arguments_.size(); ++i) {
      stack.push_back(host_value(arguments_[i]));
      const bool is_written = schema[i].alias_info() && schema[i].alias_info()->isWrite();
      if (is_written && arguments_[i].isTensor() && arguments_[i].toTensor().defined())
        written.emplace_back(arguments_[i].toTensor(), stack.back().toTensor());
    }
    op_.callBoxed(&stack);
    for (const auto& [device, host] : written) settle(device, host);
    return {stack.begin(), stack.end()};
  }

  /// A result that is one of the arguments, written to.
  std::optional<c10::IValue> written(size_t result) const {
    const auto* alias = op_.schema().returns()[result].alias_info();
    if (!alias) return {};
    TORCH_CHECK(alias->isWrite(), "mock device: ", op_.schema().name(), " makes a view");
    const auto& schema = op_.schema().arguments();
    for (size_t i = 0; i < schema.size(); ++i)
      if (schema[i].alias_info() && *schema[i].alias_info() == *alias) return arguments_[i];
    return {};
  }

 private:
  c10::IValue host_value(const c10::IValue& value) const {
    if (value.isTensor()) {
      const at::Tensor& x = value.toTensor();
      if (!x.defined()) return value;
      TORCH_CHECK(is_mock(x) || x.dim() == 0, "mock device: ", op_.schema().name(),
                  " of tensors on the device and on the CPU");
      return on_host(x);
    }
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& x : value.toTensorVector()) list.push_back(host_value(x).toTensor());
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const c10::IValue& x : value.toListRef())
        list.push_back(x.isNone() ? std::optional<at::Tensor>() : host_value(x).toTensor());
      return list;
    }
    if (value.isDevice()) return c10::IValue(at::Device(at::kCPU));
    if (value.isGenerator()) return c10::IValue(host_of(value.toGenerator(), op_.schema().name()));
    return value;
  }

  /// An output that came in empty has been given a size.
  static void settle(const at::Tensor& device, const at::Tensor& host) {
    if (device.numel() > 0 && device.sizes() == host.sizes()) return;
    const at::Tensor fresh = to_device(host);
    c10::TensorImpl* impl = device.unsafeGetTensorImpl();
    impl->set_storage_keep_dtype(fresh.storage());
    impl->set_sizes_and_strides(fresh.sizes(), fresh.strides(), fresh.storage_offset());
  }

  c10::OperatorHandle op_;
  std::vector<c10::IValue> arguments_;
};

/// Results go where they belong; run again, into the same memory.
void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const size_t count = op.schema().arguments().size();
  const Call call(op, {stack->end() - static_cast<int64_t>(count), stack->end()});
  torch::jit::drop(*stack, count);
  const std::vector<c10::IValue> found = call.run();
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < found.size(); ++i) {
    if (const auto argument = call.written(i)) {
      results.emplace_back();
      stack->push_back(*argument);
      continue;
    }
    TORCH_CHECK(found[i].isTensor() || !recording, "mock device: ", op.schema().name(),
                " asks the device while recording");
    if (found[i].isTensor() && found[i].toTensor().defined()) {
      results.push_back(to_device(found[i].toTensor()));
      stack->push_back(results.back());
    } else if (found[i].isTensorList()) {
      TORCH_CHECK(!recording, "mock device: lists are not recorded");
      c10::List<at::Tensor> list;
      for (const at::Tensor& x : found[i].toTensorVector()) list.push_back(to_device(x));
      stack->push_back(list);
    } else {
      results.emplace_back();
      stack->push_back(found[i]);
    }
  }
  if (!recording) return;
  recording->push_back([call, results] {
    const std::vector<c10::IValue> again = call.run();
    for (size_t i = 0; i < results.size(); ++i)
      if (results[i].defined()) on_host(results[i]).copy_(again[i].toTensor());
  });
}

at::Tensor empty(c10::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &allocator,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   dtype.value_or(at::kFloat), format);
}

at::Tensor empty_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, &allocator,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           dtype.value_or(at::kFloat));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool /*non_blocking*/) {
  const bool within = is_mock(from) && is_mock(to);
  if (!is_mock(to)) ++waits;
  TORCH_CHECK(within || !recording, "mock device: copies to and from the host are not recorded");
  const auto run = [from, to] { on_host(to).copy_(on_host(from)); };
  run();
  if (recording) recording->push_back(run);
  return to;
}

at::Scalar item(const at::Tensor& x) {
  TORCH_CHECK(!recording, "mock device: the host waits for a number while recording");
  ++waits;
  return on_host(x).item();
}

/// Writes into place, which a recording must find there.
at::Tensor& written(at::Tensor& x, const std::function<void()>& write) {
  write();
  if (recording) recording->push_back(write);
  return x;
}

at::Tensor& fill(at::Tensor& x, const at::Scalar& value) {
  return written(x, [x, value] { on_host(x).fill_(value); });
}

at::Tensor& zero(at::Tensor& x) { return fill(x, 0); }

at::Tensor& normal(at::Tensor& x, double mean, double sd, std::optional<at::Generator> rng) {
  at::Generator host = host_of(rng.value_or(Hooks().getDefaultGenerator(0)), "normal_");
  return written(x, [x, mean, sd, host]() mutable {
    if (draws_counted && mean == 0 && sd == 1)
      fill_normal(on_host(x), host);
    else
      on_host(x).normal_(mean, sd, host);
  });
}

at::Tensor& uniform(at::Tensor& x, double low, double high, std::optional<at::Generator> rng) {
  at::Generator host = host_of(rng.value_or(Hooks().getDefaultGenerator(0)), "uniform_");
  return written(x, [x, low, high, host]() mutable {
    if (draws_counted)
      fill_uniform(on_host(x), host, low, high);
    else
      on_host(x).uniform_(low, high, host);
  });
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("unfold", &at::native::unfold);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("_copy_from", &copy_from);
  m.impl("_local_scalar_dense", &item);
  m.impl("fill_.Scalar", &fill);
  m.impl("zero_", &zero);
  m.impl("normal_", &normal);
  m.impl("uniform_", &uniform);
}

/// One device with one stream, on which everything is done at once: events say nothing.
struct MockGuard : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  c10::Device exchangeDevice(c10::Device) const override { return mock_device(); }
  c10::Device getDevice() const override { return mock_device(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return the_stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return the_stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return the_stream(); }
  void record(void**, const c10::Stream&, const c10::DeviceIndex,
              const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}

 private:
  static c10::Stream the_stream() { return c10::Stream(c10::Stream::DEFAULT, mock_device()); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, MockGuard);

class MockRecorder : public Recorder {
 public:
  explicit MockRecorder(at::Generator& rng) : rng_(rng) {}
  void record(const std::function<void()>& work) override {
    const at::Tensor state = rng_.get_state();
    recording = &operations_;
    try {
      work();
    } catch (...) {
      recording = nullptr;
      throw;
    }
    recording = nullptr;
    rng_.set_state(state);
  }
  void replay() override {
    for (const auto& operation : operations_) operation();
  }

 private:
  at::Generator& rng_;
  std::vector<std::function<void()>> operations_;
};

}  // namespace

void make_mock_device() {
  [[maybe_unused]] static const bool kMade = [] {
    static Hooks hooks;
    c10::register_privateuse1_backend("mock");
    c10::SetAllocator(kType, &allocator);
    at::RegisterPrivateUse1HooksInterface(&hooks);
    return true;
  }();
}

at::Device mock_device() { return {kType, 0}; }

CountedNumbers::CountedNumbers() { draws_counted = true; }
CountedNumbers::~CountedNumbers() { draws_counted = false; }

int64_t num_waits() { return waits; }

std::unique_ptr<Recorder> make_mock_recorder(at::Generator& rng) {
  return std::make_unique<MockRecorder>(rng);
}

}  // namespace crais::testing
