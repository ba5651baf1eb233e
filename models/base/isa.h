// The instruction set that the CPU kernels use. It is chosen once, from cpuid. Results are
// bit-equal only between replicas with the same instruction set, unless a kernel promises more.
#pragma once

#include <string_view>

namespace syncopate {

// The SIMD levels of the x86-64 psABI. v2 has SSE4.2; v3 has AVX2 and FMA; v4 has AVX-512 F, BW,
// CD, DQ and VL.
enum class Isa { kV2, kV3, kV4 };

// Returns the highest SIMD level that this machine supports.
Isa detect_isa() noexcept;

// Returns the name of a SIMD level, such as "x86-64-v4".
std::string_view name(Isa isa) noexcept;

}  // namespace syncopate
