// Emulates the part of the CUDA runtime that the backend calls, on the CPU's memory and with
// emulated streams. New memory is full of NaNs, so that reads of unwritten memory show.
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "tests/models/backend/cuda/emulated_journal.h"
#include "tests/models/backend/cuda/emulated_stream.h"

namespace {

constexpr int kPoison = 0xFF;  // the byte of new memory; gives NaN in every type

cudaError_t allocate(void** memory, size_t size) {
  constexpr std::size_t kAlignment = 256;
  *memory = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, kPoison, size);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaSetDevice(int /*device*/) { return cudaSuccess; }
cudaError_t cudaMalloc(void** memory, size_t size) { return allocate(memory, size); }
cudaError_t cudaFree(void* memory) {
  syncopate::cuda::finish_all_streams();
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** memory, size_t size) { return allocate(memory, size); }
cudaError_t cudaFreeHost(void* memory) {
  syncopate::cuda::finish_all_streams();
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* /*memory*/, size_t /*size*/, unsigned int /*flags*/) {
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* /*memory*/) { return cudaSuccess; }
cudaError_t cudaMemset(void* memory, int value, size_t count) {
  std::memset(memory, value, count);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t count, cudaStream_t stream) {
  syncopate::cuda::do_or_record(stream, [=] { std::memset(memory, value, count); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* into, const void* from, size_t count, cudaMemcpyKind /*kind*/) {
  std::memmove(into, from, count);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* into, const void* from, size_t count, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  syncopate::cuda::do_or_record(stream, [=] { std::memmove(into, from, count); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* into, size_t into_row, const void* from, size_t from_row,
                              size_t width, size_t height, cudaMemcpyKind /*kind*/,
                              cudaStream_t stream) {
  syncopate::cuda::do_or_record(stream, [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memmove(static_cast<char*>(into) + row * into_row,
                   static_cast<const char*>(from) + row * from_row, width);
    }
  });
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t /*stream*/, cudaStreamCaptureMode /*mode*/) {
  syncopate::cuda::recorded_work() = new syncopate::cuda::RecordedWork;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t /*stream*/, cudaGraph_t* graph) {
  *graph = reinterpret_cast<cudaGraph_t>(std::exchange(syncopate::cuda::recorded_work(), nullptr));
  return cudaSuccess;
}
// The executable is a copy of the graph, because the caller destroys the graph after this call.
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long /*flags*/) {  // NOLINT(google-runtime-int)
  *executable = reinterpret_cast<cudaGraphExec_t>(
      new syncopate::cuda::RecordedWork(*reinterpret_cast<syncopate::cuda::RecordedWork*>(graph)));
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete reinterpret_cast<syncopate::cuda::RecordedWork*>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete reinterpret_cast<syncopate::cuda::RecordedWork*>(executable);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  for (const auto& work : *reinterpret_cast<syncopate::cuda::RecordedWork*>(executable)) {
    syncopate::cuda::do_or_record(stream, work);
  }
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int /*flags*/) {
  *stream = syncopate::cuda::create_stream();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags,
                                         int /*priority*/) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  syncopate::cuda::destroy_stream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  syncopate::cuda::finish_stream(stream);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int /*flags*/) {
  syncopate::cuda::note_call({.what = "wait", .stream = stream, .event = event});
  syncopate::cuda::let_stream_wait(stream, event);
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int /*flags*/) {
  *event = syncopate::cuda::create_event();
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  syncopate::cuda::destroy_event(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  syncopate::cuda::note_call({.what = "record", .stream = stream, .event = event});
  syncopate::cuda::record_event(event, stream);
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  syncopate::cuda::finish_event(event);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t /*begun*/,
                                 cudaEvent_t /*ended*/) {
  *milliseconds = 1.0F;  // an emulated device has no clock: any two events are as far apart
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return syncopate::cuda::emulated_device_is_stuck() || !syncopate::cuda::has_passed(event)
             ? cudaErrorNotReady
             : cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int /*device*/) {
  *properties = {};
  std::strncpy(properties->name, "an emulated GPU", sizeof properties->name - 1);
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t /*code*/) { return "emulated"; }
const char* cudaGetErrorString(cudaError_t /*code*/) { return "emulated"; }

}  // extern "C"
