// Measures where the host has placed two of our virtual cores. The two may share a last-level cache
// or not, and the host changes this without notice; the speed of the same program then differs by
// up to a factor of two. The placement is not visible from inside a guest, so this code measures
// how fast one core passes 1 MB messages to another through a ring in shared memory (copied in and
// copied out).
#pragma once

#include <optional>
#include <string_view>

namespace syncopate::bench {

// Returns the best of a few short tries, in GB/s of payload; takes about 50 ms. Returns nullopt on
// a machine with one core.
std::optional<double> measure_core_ring();

// Returns "near" (the cores share a last-level cache) or "far". The threshold lies between the two
// values seen on a Zen 4 guest, 13.7 and 2.2 GB/s. Other processors have other values, so reports
// print the number too.
std::string_view placement_name(double ring_gb_per_s) noexcept;

}  // namespace syncopate::bench
