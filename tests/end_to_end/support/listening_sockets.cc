#include "tests/end_to_end/support/listening_sockets.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace syncopate::test {
namespace {

std::set<std::string> socket_inodes(pid_t process) {
  std::set<std::string> inodes;
  const std::string folder = "/proc/" + std::to_string(process) + "/fd";
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) inodes.insert(target.substr(8, target.size() - 9));
  }
  return inodes;
}

}  // namespace

std::vector<ListeningSocket> listening_sockets(pid_t process) {
  constexpr int kHexadecimal = 16;
  const std::set<std::string> inodes = socket_inodes(process);
  std::vector<ListeningSocket> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream text(line);
      std::vector<std::string> words;
      for (std::string word; text >> word;) words.push_back(word);
      const bool is_listening = words.size() > 9 && words[3] == "0A";
      if (!is_listening || !inodes.contains(words[9])) continue;
      const std::size_t colon = words[1].find(':');
      sockets.push_back(
          {words[1].substr(0, colon), static_cast<std::uint16_t>(std::stoi(
                                          words[1].substr(colon + 1), nullptr, kHexadecimal))});
    }
  }
  return sockets;
}

bool is_every_interface(const ListeningSocket& socket) {
  return std::ranges::all_of(socket.address, [](char digit) { return digit == '0'; });
}

}  // namespace syncopate::test
