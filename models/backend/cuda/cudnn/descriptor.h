// Owns cuDNN's backend descriptors. The caller sets the attributes of a descriptor and finalizes
// it; then other descriptors may refer to it. This class knows nothing about the meaning of the
// attributes. Source: cuDNN 9 documentation, "Backend API".
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/errors.h"
#include "models/base/unique_handle.h"

namespace syncopate::cuda {

// Throws DeviceError with cuDNN's text for the status `code`, unless the status is success.
void check_cudnn(cudnnStatus_t code, SourceLocation where = SourceLocation::current());

// A backend descriptor of cuDNN. Used by one thread only. The functions throw DeviceError.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t kind);

  void set(cudnnBackendAttributeName_t name, std::int64_t value) {
    set_raw(name, CUDNN_TYPE_INT64, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  void set(cudnnBackendAttributeName_t name, float value) {
    set_raw(name, CUDNN_TYPE_FLOAT, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, bool value) {
    set_raw(name, CUDNN_TYPE_BOOLEAN, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    set_raw(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value) {
    set_raw(name, CUDNN_TYPE_CONVOLUTION_MODE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value) {
    set_raw(name, CUDNN_TYPE_HEUR_MODE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, cudnnGenStatsMode_t value) {
    set_raw(name, CUDNN_TYPE_GENSTATS_MODE, 1, &value);
  }
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
    set_raw(name, CUDNN_TYPE_HANDLE, 1, &value);
  }
  // Sets the descriptor `value` as an attribute. `value` must live as long as this descriptor.
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);
  void set(cudnnBackendAttributeName_t name, std::span<void* const> pointers);
  void set_text(cudnnBackendAttributeName_t name, std::string_view text);

  void finalize();
  // Finalizes the descriptor. Returns nullopt if cuDNN accepts the descriptor, otherwise cuDNN's
  // reason.
  std::optional<std::string> try_finalize();

  std::int64_t get_int(cudnnBackendAttributeName_t name) const;
  cudnnBackendKnobType_t get_knob_type() const;  // for a knob choice: the type of its knob
  // Return the notes of an engine. A note is an attribute with a list of enumerators.
  std::vector<cudnnBackendNumericalNote_t> numerical_notes() const;
  std::vector<cudnnBackendBehaviorNote_t> behavior_notes() const;
  std::string get_text(cudnnBackendAttributeName_t name) const;
  // Fills `into` with the descriptors of an attribute, at most into.size(), and returns their
  // number.
  int get(cudnnBackendAttributeName_t name, std::span<Descriptor> into) const;

  cudnnBackendDescriptor_t get() const noexcept { return handle_.get(); }

 private:
  struct Traits {
    using Type = cudnnBackendDescriptor_t;
    static Type none() { return nullptr; }
    static void close(Type descriptor) noexcept { cudnnBackendDestroyDescriptor(descriptor); }
  };
  void set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               std::int64_t count, const void* values);
  template <typename Note>
  std::vector<Note> notes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                          std::size_t most) const;

  UniqueHandle<Traits> handle_;
};

}  // namespace syncopate::cuda
