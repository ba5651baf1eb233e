#include "bench/compare/tuning_search.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

// The runs that are kept for repetitions, so that a search at a border still repeats its best
// points.
constexpr int kRepetitions = 4;
constexpr int kFinalists = 2;

// A point with the results of its runs.
struct Tried {
  TuningPoint point;
  int runs = 0;
  int reached = 0;
  double log_seconds = 0.0;  // sum over the runs that reached the target
  double accuracy = 0.0;     // sum over all runs

  // Orders points, the best one first. Of equal points, the one nearer to the values without tuning
  // is better.
  auto rank() const {
    const double share = static_cast<double>(reached) / runs;
    const double value = reached > 0 ? log_seconds / reached : -accuracy / runs;
    return std::tuple(-share, value, std::abs(point.rate), std::abs(point.batch),
                      std::abs(point.outer_rate), point);
  }
};

std::vector<Tried> best_first(std::span<const TuningTrial> trials) {
  std::map<TuningPoint, Tried> points;
  for (const TuningTrial& trial : trials) {
    Tried& tried = points[trial.point];
    tried.point = trial.point;
    ++tried.runs;
    if (trial.has_reached) {
      ++tried.reached;
      tried.log_seconds += std::log(trial.seconds);
    }
    if (std::isfinite(trial.accuracy)) tried.accuracy += trial.accuracy;
  }
  std::vector<Tried> all;
  for (const auto& [point, tried] : points) all.push_back(tried);
  std::ranges::sort(all, {}, &Tried::rank);
  return all;
}

constexpr std::array kAxes = {std::pair(&TuningPoint::rate, &TuningSpace::rate),
                              std::pair(&TuningPoint::momentum, &TuningSpace::momentum),
                              std::pair(&TuningPoint::batch, &TuningSpace::batch),
                              std::pair(&TuningPoint::outer_rate, &TuningSpace::outer_rate),
                              std::pair(&TuningPoint::sync_every, &TuningSpace::sync_every)};

// Returns the nearest point beyond the tried ones next to this point; nullopt if the point is at no
// border that may be crossed.
std::optional<TuningPoint> beyond(const TuningSpace& space, const std::vector<Tried>& tried,
                                  const TuningPoint& point) {
  for (const auto& [axis, range] : kAxes) {
    const auto position = [axis = axis](const Tried& one) { return one.point.*axis; };
    const auto [least, most] = std::ranges::minmax(tried, {}, position);
    TuningPoint next = point;
    if (point.*axis == most.point.*axis && point.*axis < (space.*range).most) {
      ++(next.*axis);
      return next;
    }
    if (point.*axis == least.point.*axis && point.*axis > (space.*range).least) {
      --(next.*axis);
      return next;
    }
  }
  return std::nullopt;
}

// Returns whether the point has the least or the most value of an axis that has values beyond it.
bool is_at_limit(const TuningSpace& space, const TuningPoint& point) {
  return std::ranges::any_of(kAxes, [&](const auto& axis) {
    const TuningRange& range = space.*axis.second;
    const int position = point.*axis.first;
    return (range.has_less && position == range.least) ||
           (range.has_more && position == range.most);
  });
}

int size_of(const TuningRange& range) { return range.last - range.first + 1; }

// The first axis changes from point to point, the last axis last.
std::vector<TuningRun> grid_of(const TuningSpace& space) {
  std::vector<TuningRun> runs(1);
  for (auto axis = kAxes.rbegin(); axis != kAxes.rend(); ++axis) {
    const TuningRange& range = space.*axis->second;
    std::vector<TuningRun> more;
    for (const TuningRun& run : runs) {
      for (int position = range.first; position <= range.last; ++position) {
        more.push_back(run);
        more.back().point.*axis->first = position;
      }
    }
    runs = std::move(more);
  }
  return runs;
}

}  // namespace

bool is_in_first_grid(const TuningSpace& space, const TuningPoint& point) {
  return std::ranges::all_of(kAxes, [&](const auto& axis) {
    const TuningRange& range = space.*axis.second;
    const int position = point.*axis.first;
    return range.first <= position && position <= range.last;
  });
}

int runs_of_search(const TuningSpace& space) {
  if (space.runs > 0) return space.runs;
  int points = 1;
  for (const auto& axis : kAxes) points *= size_of(space.*axis.second);
  return 2 * points + 2;
}

std::vector<TuningRun> next_runs(const TuningSpace& space, std::span<const TuningTrial> trials) {
  if (trials.empty()) return grid_of(space);
  const int left = runs_of_search(space) - static_cast<int>(trials.size());
  if (left <= 0) return {};
  const std::vector<Tried> all = best_first(trials);
  const int most = std::ranges::max(all, {}, &Tried::runs).runs;
  std::vector<Tried> tried = all;
  std::erase_if(tried, [&](const Tried& one) { return one.runs < most; });
  const std::optional<TuningPoint> next = beyond(space, all, tried.front().point);
  std::vector<TuningRun> runs;
  if (next && left >= most + (most == 1 ? kRepetitions : 0)) {
    // A new point has as many runs as the best ones, with the same seeds.
    for (int seed = 0; seed < most; ++seed) runs.push_back({.point = *next, .seed = seed});
    return runs;
  }
  const auto half = static_cast<int>((tried.size() + 1) / 2);
  const int repeated = std::min({std::max(kFinalists, half), static_cast<int>(tried.size()), left});
  for (int i = 0; i < repeated; ++i) {
    runs.push_back({.point = tried[static_cast<std::size_t>(i)].point, .seed = most});
  }
  return runs;
}

TuningChoice choice_of(const TuningSpace& space, std::span<const TuningTrial> trials) {
  check(!trials.empty(), "a search has trials before it has a choice");
  const std::vector<Tried> tried = best_first(trials);
  const int most = std::ranges::max(tried, {}, &Tried::runs).runs;
  // The last repetitions may have ended before the second of two finalists had its run.
  const int enough = std::max(most - 1, std::min(most, 2));
  const auto best =
      std::ranges::find_if(tried, [&](const Tried& one) { return one.runs >= enough; });
  return {.point = best->point,
          .runs = best->runs,
          .is_at_border = beyond(space, tried, best->point) || is_at_limit(space, best->point)};
}

}  // namespace syncopate::bench
