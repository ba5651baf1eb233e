#include "models/backend/cuda/cudnn/descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/backend/cuda/device.h"

namespace syncopate::cuda {

void check_cudnn(cudnnStatus_t code, SourceLocation where) {
  if (code == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> more{};
  cudnnGetLastErrorString(more.data(), more.size());
  throw DeviceError(fmt::format("cuDNN error {} ({}{}{}) at {}", static_cast<int>(code),
                                cudnnGetErrorString(code), more.front() == '\0' ? "" : ": ",
                                more.data(), describe(where)));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t kind) {
  cudnnBackendDescriptor_t made = nullptr;
  check_cudnn(cudnnBackendCreateDescriptor(kind, &made));
  handle_.reset(made);
}

void Descriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         std::int64_t count, const void* values) {
  check_cudnn(cudnnBackendSetAttribute(handle_.get(), name, type, count, values));
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  set_raw(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
}

void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  const cudnnBackendDescriptor_t descriptor = value.get();
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor);
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> descriptors;
  for (const Descriptor& value : values) descriptors.push_back(value.get());
  set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(descriptors.size()),
          descriptors.data());
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<void* const> pointers) {
  set_raw(name, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(pointers.size()), pointers.data());
}

void Descriptor::set_text(cudnnBackendAttributeName_t name, std::string_view text) {
  set_raw(name, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(text.size()), text.data());
}

void Descriptor::finalize() { check_cudnn(cudnnBackendFinalize(handle_.get())); }

std::optional<std::string> Descriptor::try_finalize() {
  const cudnnStatus_t status = cudnnBackendFinalize(handle_.get());
  if (status == CUDNN_STATUS_SUCCESS) return std::nullopt;
  return cudnnGetErrorString(status);
}

std::int64_t Descriptor::get_int(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(handle_.get(), name, CUDNN_TYPE_INT64, 1, &count, &value));
  return value;
}

cudnnBackendKnobType_t Descriptor::get_knob_type() const {
  cudnnBackendKnobType_t type{};
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(handle_.get(), CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                       CUDNN_TYPE_KNOB_TYPE, 1, &count, &type));
  return type;
}

template <typename Note>
std::vector<Note> Descriptor::notes(cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, std::size_t most) const {
  std::vector<Note> notes(most);
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(handle_.get(), name, type, static_cast<std::int64_t>(most),
                                       &count, notes.data()));
  notes.resize(std::min(most, static_cast<std::size_t>(count)));
  return notes;
}

std::vector<cudnnBackendNumericalNote_t> Descriptor::numerical_notes() const {
  return notes<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
}

std::vector<cudnnBackendBehaviorNote_t> Descriptor::behavior_notes() const {
  return notes<cudnnBackendBehaviorNote_t>(
      CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
}

std::string Descriptor::get_text(cudnnBackendAttributeName_t name) const {
  std::int64_t length = 0;
  check_cudnn(cudnnBackendGetAttribute(handle_.get(), name, CUDNN_TYPE_CHAR, 0, &length, nullptr));
  std::string text(static_cast<std::size_t>(length), '\0');
  check_cudnn(
      cudnnBackendGetAttribute(handle_.get(), name, CUDNN_TYPE_CHAR, length, &length, text.data()));
  return text;
}

int Descriptor::get(cudnnBackendAttributeName_t name, std::span<Descriptor> into) const {
  std::vector<cudnnBackendDescriptor_t> handles;
  for (const Descriptor& descriptor : into) handles.push_back(descriptor.get());
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(handle_.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                       static_cast<std::int64_t>(handles.size()), &count,
                                       handles.data()));
  // cuDNN may report more descriptors than it was given room for.
  return static_cast<int>(std::min(count, static_cast<std::int64_t>(into.size())));
}

}  // namespace syncopate::cuda
