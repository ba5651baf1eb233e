// Wrappers for oneDNN: the engine, and primitives that are bound to their memory once. Included by
// .cc files of this folder only, because the header of oneDNN is large.
#pragma once

#include <dnnl.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/errors.h"
#include "models/base/process_limits.h"

namespace syncopate {

// Returns the description of an f32 tensor with these dimensions in a format that oneDNN will
// choose.
inline dnnl::memory::desc any_format(const dnnl::memory::dims& dims) {
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

// Calls make(), which calls oneDNN. Throws DeviceError or OutOfMemoryError, naming `what`, in place
// of a dnnl::error.
template <typename Make>
auto onednn_call(std::string_view what, const Make& make) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) {
      throw OutOfMemoryError("oneDNN: " + std::string(what) +
                             ": out of memory: " + memory_advice());
    }
    throw DeviceError("oneDNN: " + std::string(what) + ": " + error.message + " (status " +
                      std::to_string(static_cast<int>(error.status)) + ")");
  }
}

// A oneDNN primitive and its arguments. run() itself allocates no memory, but oneDNN may.
class BoundPrimitive {
 public:
  struct Argument {
    int kind;  // oneDNN's number of the argument, such as DNNL_ARG_SRC
    dnnl::memory::desc format;
    void* data;
  };

  BoundPrimitive() = default;
  BoundPrimitive(const dnnl::engine& engine, dnnl::primitive primitive,
                 const std::vector<Argument>& arguments)
      : stream_(engine), primitive_(std::move(primitive)) {
    for (const Argument& argument : arguments) {
      memories_.emplace_back(argument.format, engine, argument.data);
      arguments_.push_back({argument.kind, memories_.back().get()});
    }
  }

  explicit operator bool() const noexcept { return !arguments_.empty(); }

  // Executes the primitive on the calling thread. Throws DeviceError.
  void run() const {
    const dnnl_status_t status = dnnl_primitive_execute(
        primitive_.get(), stream_.get(), static_cast<int>(arguments_.size()), arguments_.data());
    if (status == dnnl_out_of_memory) {
      throw OutOfMemoryError("oneDNN: execute: out of memory: " + memory_advice());
    }
    if (status != dnnl_success) {
      throw DeviceError("oneDNN: execute: status " + std::to_string(static_cast<int>(status)));
    }
  }

 private:
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// The oneDNN engine of a backend and of all models that the backend compiles. Primitives refer to
// the engine, which must outlive them.
struct OneDnn {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
};

}  // namespace syncopate
