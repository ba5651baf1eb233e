#include "tests/worker/input/array/csv_case.h"

#include <fmt/format.h>

#include <cstdio>

#include "models/base/errors.h"
#include "tests/support/thrown.h"
#include "tests/worker/input/array/memory_stream.h"

namespace syncopate {

CsvTable read_table(std::string_view text, const CsvOptions& options, const std::string& path) {
  MemoryStream stream(text);
  return read_csv(stream, path, options);
}

std::string table_error(std::string_view text, const CsvOptions& options, const std::string& path) {
  return message_of<Error>([&] { read_table(text, options, path); });
}

std::string output_of(const std::string& command) {
  std::string text;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  for (int letter = pipe == nullptr ? EOF : std::fgetc(pipe); letter != EOF;
       letter = std::fgetc(pipe)) {
    text += static_cast<char>(letter);
  }
  if (pipe != nullptr) ::pclose(pipe);
  return text;
}

std::string command_in(const std::string& message, const std::string& before,
                       const std::string& behind) {
  const std::size_t begin = message.find(before) + before.size();
  return message.substr(begin, message.find(behind, begin) - begin);
}

std::string mixed_rows(bool with_label) {
  std::string text;
  for (int i = 0; i < 12; ++i) {
    text += fmt::format("0.{},-0.{},0.5{},-0.{}{}\n", i % 7, i % 5, i % 3, i % 2,
                        with_label ? fmt::format(",{}", i % 2) : "");
  }
  return text;
}

}  // namespace syncopate
