// Makes lines that say whose they are out of the bytes that a role writes: "[worker 0] step 20".
// Bytes come in any portions; only whole lines go out, so that two roles never share one.
#pragma once

#include <string>
#include <string_view>

namespace syncopate {

// One thread only.
class OutputPrefixer {
 public:
  explicit OutputPrefixer(std::string_view name) : prefix_("[" + std::string(name) + "] ") {}

  // The lines that these bytes complete, each with prefix and newline. A line longer than
  // kLongestLine is broken.
  std::string add(std::string_view bytes);
  // What stands behind the last newline, as a line; "" when nothing does.
  std::string finish();

  static constexpr std::size_t kLongestLine = 64 << 10;

 private:
  std::string prefix_;
  std::string unfinished_;
};

}  // namespace syncopate
