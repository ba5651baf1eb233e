// Prints a GPU's properties as cuDNN describes them, in one line of JSON. This program wrote
// h200.json, so that plans can be made for an absent GPU. It is installed beside the tests that
// need a GPU.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <exception>

#include "models/backend/cuda/cudnn/descriptor.h"
#include "models/backend/cuda/device.h"

int main() {
  using namespace syncopate::cuda;
  try {
    check_cuda(cudaSetDevice(0));
    cudnnHandle_t handle = nullptr;
    check_cudnn(cudnnCreate(&handle));
    Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    properties.set(CUDNN_ATTR_DEVICEPROP_HANDLE, handle);
    properties.finalize();
    std::printf("%s\n", properties.get_text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).c_str());
    cudnnDestroy(handle);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_properties: %s\n", error.what());
    return 1;
  }
  return 0;
}
