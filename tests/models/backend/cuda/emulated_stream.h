// Work on an emulated stream: done at once, or kept while the stream is captured, to be done again
// whenever the graph is launched.
#pragma once

#include <functional>
#include <vector>

namespace syncopate::cuda {

// What the calling thread captures; null: nothing.
using RecordedWork = std::vector<std::function<void()>>;
RecordedWork*& recorded_work() noexcept;

void do_or_record(std::function<void()> work);

}  // namespace syncopate::cuda
