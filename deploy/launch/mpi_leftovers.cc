#include "deploy/launch/mpi_leftovers.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

namespace syncopate {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    entries.push_back(entry->path());
  }
  std::ranges::sort(entries);
  return entries;
}

// Whether the user owns this folder, which is no link: others may write into /tmp, too.
bool is_own_folder(const fs::path& folder, uid_t user) {
  struct stat found {};
  return lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == user;
}

bool is_number(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool is_of_host(const std::string& name, const std::string& host) {
  return name == host || name == host.substr(0, host.find('.'));
}

// Returns whether a process has this pid, here or in a container that shows its processes here.
// Source: proc(5), NSpid: the pid in each PID namespace, the innermost last.
bool runs(const std::string& pid, const fs::path& proc) {
  std::error_code error;
  if (fs::exists(proc / pid, error) || error) return true;
  return std::ranges::any_of(entries_of(proc), [&](const fs::path& process) {
    if (!is_number(process.filename())) return false;
    std::ifstream status(process / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("NSpid:")) return line.ends_with("\t" + pid);
    }
    return false;
  });
}

// Returns what the numbers of a session's jobs have in common.
std::optional<std::uint32_t> job_family(const fs::path& session) {
  std::ifstream contact(session / "contact.txt");
  std::uint32_t job = 0;
  if (!(contact >> job)) return std::nullopt;
  return job >> 16;
}

// Returns the segments of the jobs of this family. `owner` is HOST.UID.
std::vector<fs::path> segments_of(std::uint32_t family, const std::string& owner,
                                  const fs::path& shared_memory) {
  const std::string prefix = "vader_segment." + owner + ".";
  std::vector<fs::path> segments;
  for (const fs::path& file : entries_of(shared_memory)) {
    const std::string name = file.filename();
    if (!name.starts_with(prefix)) continue;
    std::istringstream digits(name.substr(prefix.size()));
    std::uint32_t job = 0;
    if (digits >> std::hex >> job && job >> 16 == family) segments.push_back(file);
  }
  return segments;
}

bool is_mapped(const std::string& file, const fs::path& proc) {
  return std::ranges::any_of(entries_of(proc), [&](const fs::path& process) {
    if (!is_number(process.filename())) return false;
    std::ifstream maps(process / "maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find(file) != std::string::npos) return true;
    }
    return false;
  });
}

}  // namespace

std::vector<std::string> remove_mpi_leftovers(const MpiFolders& folders, uid_t user) {
  std::vector<std::string> removed;
  std::error_code error;
  // Without /proc every mpirun would seem to have ended.
  if (!fs::exists(folders.proc / "self", error)) return removed;
  for (const fs::path& host : entries_of(folders.sessions)) {
    const std::string name = host.filename();
    const std::string suffix = fmt::format(".{}", user);
    if (!name.starts_with("ompi.") || !name.ends_with(suffix)) continue;
    // Where hosts share the folder, the processes of another host are not seen here.
    const std::string owner = name.substr(5);
    if (!is_of_host(owner.substr(0, owner.size() - std::min(owner.size(), suffix.size())),
                    folders.host)) {
      continue;
    }
    if (!is_own_folder(host, user)) continue;
    for (const fs::path& session : entries_of(host)) {
      const std::string pid = session.filename().string();
      if (!pid.starts_with("pid.") || !is_number(pid.substr(4)) || !is_own_folder(session, user)) {
        continue;
      }
      if (runs(pid.substr(4), folders.proc)) continue;
      const auto family = job_family(session);
      if (!family) continue;
      const auto segments = segments_of(*family, owner, folders.shared_memory);
      const auto is_in_use = [&](const fs::path& file) {
        return is_mapped(file.filename(), folders.proc);
      };
      if (std::ranges::any_of(segments, is_in_use)) continue;  // ranks that have not ended yet
      error.clear();
      for (const fs::path& file : segments) {
        if (!error) fs::remove(file, error);
      }
      // Without the session, the segments that are left could not be found again.
      if (!error) fs::remove_all(session, error);
      if (!error) removed.push_back(session);
    }
  }
  return removed;
}

}  // namespace syncopate
