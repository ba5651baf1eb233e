// Whether two workers mean the same job, and in what they differ if not.
#pragma once

#include <optional>
#include <string>

#include "ps/wire/message.h"

namespace syncopate::ps {

// "worker 2 has --model mlp, the job has mnist-cnn (worker 0's)": the first difference that must
// not be; nothing when there is none. `worker` is who declares `found`, `by` who declared the
// job's. Differences in agreements that need not hold are logged as warnings.
std::optional<std::string> find_difference(const wire::DeclarationT& job, int by,
                                           const wire::DeclarationT& found, int worker);

}  // namespace syncopate::ps
