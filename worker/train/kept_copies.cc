#include "worker/train/kept_copies.h"

#include <algorithm>
#include <utility>

namespace syncopate {

KeptCopies::KeptCopies(KeptCopiesOptions options) : options_(std::move(options)) {
  // Better now than at the first evaluation; a run's folder is looked at with its checkpoints.
  if (!options_.is_of_run) CopiesFile::create_nameless(options_.folder);
}

void KeptCopies::forget_earlier_run() {
  if (!options_.is_of_run) return;
  for (const auto& path : CopiesFile::in_folder(options_.folder)) {
    if (auto left = CopiesFile::take_over(path)) left->remove();
  }
}

void KeptCopies::keep(const EvalMetrics& moment, const Snapshot& copy) {
  if (!own_) {
    own_.emplace(options_.is_of_run ? CopiesFile::create(options_.folder)
                                    : CopiesFile::create_nameless(options_.folder));
  }
  own_->append(moment, copy);
}

void KeptCopies::take_over() {
  if (!options_.is_of_run) return;
  for (const auto& path : CopiesFile::in_folder(options_.folder)) {
    if (own_ && own_->path() == path) continue;
    if (auto left = CopiesFile::take_over(path)) of_others_.push_back(std::move(*left));
  }
}

std::int64_t KeptCopies::size() const noexcept {
  std::size_t count = own_ ? own_->entries().size() : 0;
  for (const CopiesFile& file : of_others_) count += file.entries().size();
  return static_cast<std::int64_t>(count);
}

void KeptCopies::evaluate(
    const std::function<bool(const EvalMetrics&, const Snapshot&)>& evaluate) {
  std::vector<std::pair<CopiesFile*, CopiesFile::Entry>> all;
  const auto add = [&](CopiesFile& file) {
    for (const CopiesFile::Entry& entry : file.entries()) all.emplace_back(&file, entry);
    if (file.entries().empty()) file.remove();
  };
  if (own_) add(*own_);
  std::ranges::for_each(of_others_, add);
  std::ranges::stable_sort(all, {}, [](const auto& each) { return each.second.moment.step; });
  for (const auto& [file, entry] : all) {
    if (!evaluate(entry.moment, file->read(entry))) return;
    file->done(entry);
  }
  own_.reset();
  of_others_.clear();
}

std::string KeptCopies::describe_rest() const {
  const std::string count = std::to_string(size()) +
                            (size() == 1 ? " evaluation" : " evaluations") +
                            " put off till the end";
  return options_.is_of_run
             ? count + ": copies stay in " + options_.folder.string() +
                   ", and --resume makes them at its end"
             : count + " will not be made: the job was stopped, and has no --checkpoint-dir";
}

}  // namespace syncopate
