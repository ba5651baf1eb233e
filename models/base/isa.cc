#include "models/base/isa.h"

namespace syncopate {

Isa detect_isa() noexcept {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  if (!v3) return Isa::kV2;
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? Isa::kV4 : Isa::kV3;
}

std::string_view name(Isa isa) noexcept {
  switch (isa) {
    case Isa::kV2:
      return "x86-64-v2";
    case Isa::kV3:
      return "x86-64-v3";
    case Isa::kV4:
      return "x86-64-v4";
  }
  return "x86-64";
}

}  // namespace syncopate
