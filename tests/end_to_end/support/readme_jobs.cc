#include "tests/end_to_end/support/readme_jobs.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace syncopate::test {

std::vector<Arguments> jobs_in_readme() {
  std::vector<Arguments> jobs;
  std::ifstream file(SYNCOPATE_DEPLOY_README);
  for (std::string line; std::getline(file, line);) {
    std::istringstream text(line);
    Arguments words;
    for (std::string word; text >> word;) words.push_back(word);
    if (words.size() < 2 || words[0] != "syncopate" || words[1] != "sbatch") continue;
    words.erase(words.begin());
    jobs.push_back(std::move(words));
  }
  return jobs;
}

Arguments job_in_readme(const std::string& model,
                        const std::vector<std::pair<std::string, std::string>>& changes) {
  for (const Arguments& job : jobs_in_readme()) {
    Arguments flags(std::ranges::find(job, "--"), job.end());
    // Returns the place of a flag's value. The first word of `flags` is "--".
    const auto value_of = [&](const std::string& flag) {
      const auto at = std::ranges::find(flags, flag);
      return at == flags.end() ? at : at + 1;
    };
    const auto named = value_of("--model");
    if (named == flags.end() || *named != model) continue;
    const auto devices = value_of("--devices");
    if (devices != flags.end()) flags.erase(devices - 1, devices + 1);
    for (const auto& [flag, value] : changes) {
      const auto place = value_of(flag);
      if (place == flags.end())
        throw std::runtime_error("the job in deploy/README.md lacks " + flag);
      *place = value;
    }
    flags.erase(flags.begin());
    return flags;
  }
  throw std::runtime_error("deploy/README.md has no job with --model " + model);
}

}  // namespace syncopate::test
