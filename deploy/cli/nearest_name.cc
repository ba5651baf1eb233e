#include "deploy/cli/nearest_name.h"

#include <algorithm>
#include <numeric>

namespace syncopate {
namespace {

std::size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string_view> nearest_name(std::string_view typed,
                                             const std::vector<std::string_view>& names) {
  std::optional<std::string_view> best;
  // Two letters swapped are two edits; in a name of three letters that would be nearly anything.
  std::size_t fewest = (typed.size() <= 3 ? 1 : typed.size() <= 8 ? 2 : 3) + 1;
  for (const std::string_view name : names) {
    const std::size_t count = edits(typed, name);
    if (count < fewest) {
      fewest = count;
      best = name;
    }
  }
  return best;
}

std::string suggest(std::string_view typed, const std::vector<std::string_view>& names) {
  std::string text;
  if (const auto meant = nearest_name(typed, names)) {
    text = "; did you mean '" + std::string(*meant) + "'? Choose one of ";
  } else {
    text = "; choose one of ";
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::string(names[i]);
  return text;
}

}  // namespace syncopate
