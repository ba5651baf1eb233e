#include "ps/server/start_count.h"

#include <fstream>
#include <span>

#include "models/base/replacing_file.h"

namespace syncopate::ps {
namespace {

std::filesystem::path path_in(const std::filesystem::path& dir) { return dir / "server-0-starts"; }

}  // namespace

int count_starts(const std::filesystem::path& dir, const std::string& nonce) {
  if (dir.empty() || nonce.empty()) return 0;
  std::string job;
  int starts = 0;
  std::ifstream before(path_in(dir));
  if (!(before >> starts >> job) || job != nonce) starts = 0;
  const std::string text = std::to_string(starts + 1) + " " + nonce + "\n";
  ReplacingFile file(path_in(dir));
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  return starts;
}

void forget_starts(const std::filesystem::path& dir) {
  if (!dir.empty()) std::filesystem::remove(path_in(dir));
}

}  // namespace syncopate::ps
