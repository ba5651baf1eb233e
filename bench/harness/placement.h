// Where the host has put our two virtual cores. They may share a last-level cache or not, and
// change without notice; the same program then differs by up to two times. Not visible from inside,
// so we measure it: how fast one core hands 1 MB messages to another through a ring in shared
// memory (copied in and copied out).
#pragma once

#include <optional>
#include <string_view>

namespace syncopate::bench {

// GB/s of payload, the best of a few short tries; about 50 ms. nullopt on a machine with one core.
std::optional<double> measure_core_ring();

// "near" (one last-level cache) or "far". The border lies between the two modes seen on a Zen 4
// guest, 13.7 and 2.2 GB/s; other processors have other numbers, so reports give the number too.
std::string_view placement_name(double ring_gb_per_s) noexcept;

}  // namespace syncopate::bench
