#include "tests/end_to_end/support/full_pipe.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "tests/end_to_end/support/run_program.h"

namespace syncopate::test {

FullPipe::FullPipe(std::filesystem::path path) : path_(std::move(path)) {
  if (mkfifo(path_.c_str(), 0600) != 0) throw std::runtime_error("test set-up: mkfifo failed");
  both_ends_ = open(path_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (both_ends_ < 0) throw std::runtime_error("test set-up: open failed");
  fcntl(both_ends_, F_SETPIPE_SZ, 4096);
  while (write(both_ends_, "x", 1) == 1) continue;
}

FullPipe::~FullPipe() { close(both_ends_); }

std::vector<std::string> FullPipe::receiving(const std::string& redirections,
                                             const std::vector<std::string>& command) const {
  const std::string script = "P=$0; exec \"$@\" " + redirections;
  return std::vector<std::string>{"/bin/sh", "-c", script, path_} + command;
}

std::string FullPipe::read_all() {
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = read(both_ends_, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  text.erase(0, text.find_first_not_of('x'));
  return text;
}

}  // namespace syncopate::test
