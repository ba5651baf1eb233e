// Requests to end a job early, by number. The numbers are those of whoever asks, but for one.
#pragma once

namespace syncopate::ps {

// The job was to take so long, and is complete: what it has come to is evaluated, as at any other
// end. Whoever stops a job for another reason is in a hurry.
inline constexpr int kTimeIsUp = 4;

}  // namespace syncopate::ps
