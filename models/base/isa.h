// Which instruction set the kernels run with. Chosen once, from cpuid; part of every bit-equality.
#pragma once

#include <string_view>

namespace syncopate {

// The levels of the x86-64 psABI: v2 = SSE4.2, v3 = AVX2 + FMA, v4 = AVX-512 F/BW/CD/DQ/VL.
enum class Isa { kV2, kV3, kV4 };

// The best level this machine supports.
Isa detect_isa() noexcept;

// "x86-64-v4"
std::string_view name(Isa isa) noexcept;

}  // namespace syncopate
