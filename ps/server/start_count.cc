#include "ps/server/start_count.h"

#include <fstream>
#include <iterator>
#include <span>

#include "models/base/replacing_file.h"

namespace syncopate::ps {
namespace {

std::filesystem::path path_in(const std::filesystem::path& dir) { return dir / "server-0-starts"; }

}  // namespace

int count_starts(const std::filesystem::path& dir, const std::string& nonce) {
  if (dir.empty() || nonce.empty()) return 0;
  int starts = 0;
  std::ifstream before(path_in(dir), std::ios::binary);
  before >> starts;
  // All the rest: a nonce may be of several words.
  const std::string rest{std::istreambuf_iterator<char>(before), std::istreambuf_iterator<char>()};
  const std::string job = " " + nonce + "\n";
  if (!before || rest != job) starts = 0;
  const std::string text = std::to_string(starts + 1) + job;
  ReplacingFile file(path_in(dir));
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  return starts;
}

void forget_starts(const std::filesystem::path& dir) {
  if (!dir.empty()) std::filesystem::remove(path_in(dir));
}

}  // namespace syncopate::ps
