#include "worker/input/validation_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "models/base/random.h"

namespace syncopate {

double parse_split(const std::string& text) {
  constexpr std::string_view kPrefix = "val=";
  const double fraction = text.starts_with(kPrefix)
                              ? parse_number<double>(text.substr(kPrefix.size())).value_or(0.0)
                              : 0.0;
  if (fraction > 0.0 && fraction < 1.0) return fraction;
  throw UsageError(fmt::format(
      "--split {}: expected val=FRACTION with a fraction between 0 and 1, such as val=0.1", text));
}

HeldOutSamples hold_out(std::int64_t samples, const std::string& text, std::uint64_t seed) {
  const auto validation = std::llround(parse_split(text) * static_cast<double>(samples));
  if (validation < 1 || validation >= samples ||
      samples > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(fmt::format(
        "--split {}: {} training samples would give {} for validation; expected 1 to {}", text,
        samples, validation, samples - 1));
  }
  HeldOutSamples parts{.train = random_permutation(static_cast<std::uint32_t>(samples), seed,
                                                   hash_name("validation split")),
                       .validation = {}};
  parts.validation.assign(parts.train.end() - validation, parts.train.end());
  parts.train.resize(parts.train.size() - parts.validation.size());
  // In the order of the data set, which files on a disk are read fastest in.
  std::ranges::sort(parts.train);
  std::ranges::sort(parts.validation);
  return parts;
}

}  // namespace syncopate
