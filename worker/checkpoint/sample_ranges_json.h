// Sample ranges as JSON text, "[[epoch, begin, end], ...]". The metadata of a checkpoint are
// strings and hold the skipped samples in this form.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ps/coordinator/data_position.h"

namespace syncopate {

std::string to_json(std::span<const ps::SampleRange> ranges);

// Returns nothing for text in another form, negative numbers and empty ranges.
std::optional<std::vector<ps::SampleRange>> parse_sample_ranges(std::string_view text);

}  // namespace syncopate
