#include "strategies/restore.h"

#include <algorithm>
#include <string>

#include "models/base/errors.h"

namespace syncopate {
namespace {

void check_block(const Tensor& source, const Tensor& target, std::string_view what) {
  if (source.shape() == target.shape()) return;
  throw ShapeError("restore: " + std::string(what) + " has shape " + to_string(source.shape()) +
                   ", expected " + to_string(target.shape()));
}

void copy_block(const Tensor& source, const Tensor& target) {
  std::ranges::copy(source.f32(), target.f32().begin());
}

}  // namespace

void check_snapshot(const Snapshot& saved, const Snapshot& live) {
  check_block(saved.values, live.values, "values");
  check_block(saved.state, live.state, "state");
  if (saved.slots.size() != live.slots.size()) {
    throw ShapeError("restore: " + std::to_string(saved.slots.size()) +
                     " optimizer slots, expected " + std::to_string(live.slots.size()));
  }
  for (std::size_t i = 0; i < live.slots.size(); ++i) {
    if (saved.slots[i].name != live.slots[i].name) {
      throw ShapeError("restore: optimizer slot " + saved.slots[i].name + ", expected " +
                       live.slots[i].name);
    }
    check_block(saved.slots[i].values, live.slots[i].values, live.slots[i].name);
  }
}

void copy_snapshot(const Snapshot& saved, const Snapshot& live) {
  copy_block(saved.values, live.values);
  copy_block(saved.state, live.state);
  for (std::size_t i = 0; i < live.slots.size(); ++i) {
    copy_block(saved.slots[i].values, live.slots[i].values);
  }
}

}  // namespace syncopate
