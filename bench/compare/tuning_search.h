// Searches good hyperparameters of one variant with a fixed number of runs. The search follows only
// from the results so far, so a search that was interrupted continues with the same runs.
#pragma once

#include <array>
#include <compare>
#include <span>
#include <vector>

namespace syncopate::bench {

// Positions on the axes of a search. 0 is the value that the run would have without tuning, except
// for the momentum and for the steps of a round.
struct TuningPoint {
  // The learning rate divided by (1 - momentum) is 2^rate times the value without tuning, because
  // this quotient is the size of a step in a constant direction.
  int rate = 0;
  int momentum = 0;  // index in kTunedMomenta; without effect if the momentum is not tuned
  int batch = 0;     // the batch is 2^batch times the batch without tuning
  // The learning rate of the outer step is 2^outer_rate times the one without tuning.
  int outer_rate = 0;
  int sync_every = 0;  // index in TuneOptions::sync_every; without effect if it is not tuned

  auto operator<=>(const TuningPoint&) const = default;
};

// 1 / (1 - momentum) about doubles from each value to the next, but for the step from 0.5 to 0.9.
inline constexpr std::array kTunedMomenta = {0.0, 0.5, 0.9, 0.95, 0.975};

// The positions of one axis: first .. last at the beginning, and up to least .. most if the best
// point is at a border.
struct TuningRange {
  int first = 0;
  int last = 0;
  int least = first;
  int most = last;
  // Whether there are values beyond `least` and `most`, although the search does not try them.
  bool has_less = false;
  bool has_more = false;
};

struct TuningSpace {
  TuningRange rate{.first = -2, .last = 2, .least = -12, .most = 12};
  TuningRange momentum;
  TuningRange batch;
  TuningRange outer_rate;
  TuningRange sync_every;
  // The number of runs, if it is not the one of this grid: all variants have as many runs as the
  // variant with the most points.
  int runs = 0;
};

struct TuningRun {
  TuningPoint point;
  int seed = 0;  // 0 for the first run of a point, then 1, 2, ...
};

// The result of a run of the search.
struct TuningTrial {
  TuningPoint point;
  bool has_reached = false;  // whether the run reached the target accuracy
  double seconds = 0.0;      // time to the target, if it was reached
  double accuracy = 0.0;     // final accuracy, a fraction; NaN if training diverged
};

struct TuningChoice {
  TuningPoint point;
  int runs = 0;               // the runs of this point
  bool is_at_border = false;  // a point beyond those that were tried may be better
};

// Returns whether the point is one of those that a search tries first.
bool is_in_first_grid(const TuningSpace& space, const TuningPoint& point);

// Returns the number of runs of a search: twice the points of the first grid, and two, unless the
// space has another number.
int runs_of_search(const TuningSpace& space);

// Returns the runs that come next; none if the search has ended. The first runs are the grid. While
// the best point is at a border, the next point beyond the border is tried, with all seeds of the
// best point. The other runs repeat the better half of the points with another seed, then the
// better half of these, at least two (sequential halving: Karnin et al. 2013).
std::vector<TuningRun> next_runs(const TuningSpace& space, std::span<const TuningTrial> trials);

// Returns the best point, of those that were repeated most. A point is better if more of its runs
// reached the target; then, if their mean time to the target is shorter; if no run reached it, if
// the mean accuracy is higher. There must be at least one trial.
TuningChoice choice_of(const TuningSpace& space, std::span<const TuningTrial> trials);

}  // namespace syncopate::bench
