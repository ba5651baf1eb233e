// cuDNN's backend descriptors, each owned once: attributes are set, then it is finalized, then it
// may be used by others. A thin layer; what a graph means is decided by who builds it.
// Source: cuDNN 9 documentation, "Backend API".
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/unique_handle.h"

namespace syncopate::cuda {

// One thread only. Throws DeviceError.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t kind);

  void set(cudnnBackendAttributeName_t name, std::int64_t value);
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  void set(cudnnBackendAttributeName_t name, float value);
  void set(cudnnBackendAttributeName_t name, bool value);
  void set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  void set(cudnnBackendAttributeName_t name, cudnnConvolutionMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnBackendHeurMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnGenStatsMode_t value);
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  // Which must last as long as this one.
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);
  void set(cudnnBackendAttributeName_t name, std::span<void* const> pointers);
  void set_text(cudnnBackendAttributeName_t name, std::string_view text);

  void finalize();
  // Nothing where cuDNN takes it, else why not.
  std::optional<std::string> try_finalize();

  std::int64_t get_int(cudnnBackendAttributeName_t name) const;
  cudnnBackendKnobType_t get_knob_type() const;  // of a knob's choice
  // Of enumerations: as many as there are.
  std::vector<cudnnBackendNumericalNote_t> numerical_notes() const;
  std::vector<cudnnBackendBehaviorNote_t> behavior_notes() const;
  std::string get_text(cudnnBackendAttributeName_t name) const;
  // Into descriptors that exist; as many as cuDNN has, at most that.
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

  UniqueHandle<Traits> handle_;
};

}  // namespace syncopate::cuda
