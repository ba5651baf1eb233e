// A job script of this folder with lines of it filled in, as its user would with an editor. The
// scripts themselves are in the program, so that one file is enough on a cluster.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

struct JobScriptRow {
  std::string_view name;  // "multi_node": of multi_node.sbatch
  std::string_view text;
};
std::span<const JobScriptRow> job_scripts();

class JobScript {
 public:
  explicit JobScript(std::string_view text);

  // Of a heterogeneous job; 1 otherwise.
  int components() const;
  // "#SBATCH --name=value" in that component, from 0 on. A line that two # leave out counts from
  // then on. False when there is none.
  bool set_option(int component, std::string_view name, std::string_view value);
  // The line that begins with "name=" becomes "name=" and `shell_text` as it is. False when there
  // is none.
  bool set_variable(std::string_view name, std::string_view shell_text);
  // The same for an array in one line, which gets more words at its end.
  bool extend_array(std::string_view name, std::span<const std::string> words);
  std::string text() const;

 private:
  std::vector<std::string> lines_;
};

// As one word of a shell, quoted where it has to be.
std::string shell_word(std::string_view text);
// "(a 'b c')"
std::string shell_array(std::span<const std::string> words);

}  // namespace syncopate
