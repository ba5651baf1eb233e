// Reads tables in memory, and the commands that the messages about them give.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/worker/input/packed_files.h"
#include "worker/input/array/csv_table.h"

namespace syncopate {

using Features = std::vector<float>;
using Labels = std::vector<std::int32_t>;

CsvTable read_table(std::string_view text, const CsvOptions& options = {},
                    const std::string& path = "t.csv");
// Returns the message of the error that the table causes.
std::string table_error(std::string_view text, const CsvOptions& options = {},
                        const std::string& path = "t.csv");

// Returns what a shell command prints.
std::string output_of(const std::string& command);
// Returns the command between two texts of a message.
std::string command_in(const std::string& message, const std::string& before,
                       const std::string& behind);

// Twelve samples of a label that is 0 or 1 and four features between -1 and 1 in no order.
std::string mixed_rows(bool with_label = true);

}  // namespace syncopate
