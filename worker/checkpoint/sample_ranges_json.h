// Ranges of samples as JSON text, "[[epoch, begin, end], ...]": how a checkpoint's metadata, which
// are strings, hold what of the data was passed over.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ps/coordinator/data_position.h"

namespace syncopate {

std::string to_json(std::span<const ps::SampleRange> ranges);

// Nothing for text that is no such list, or has a number below 0 or an empty range.
std::optional<std::vector<ps::SampleRange>> parse_sample_ranges(std::string_view text);

}  // namespace syncopate
