#include "worker/run/flags/train_flag.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <variant>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "worker/run/exit_codes.h"

namespace syncopate {
namespace {

const TrainFlag& train_flag_named(std::string_view name) {
  const TrainFlag* const flag = find_train_flag(name);
  check(flag != nullptr && flag->field != nullptr, "the name of a flag of train");
  return *flag;
}

std::string text_or_absent(const TrainFlag& flag, const FlagText& text) {
  return text.value_or(flag.is_switch() ? "off" : "absent");
}

// Calls `use` with each flag that has a field.
template <typename Use>
void for_each_flag(const Use& use) {
  for (const TrainFlag& flag : train_flags()) {
    if (flag.field != nullptr) use(flag);
  }
}

}  // namespace

const std::vector<TrainFlag>& train_flags() {
  static const std::vector<TrainFlag> kFlags = [] {
    std::vector<TrainFlag> all;
    const auto add = [&](std::string_view group, std::vector<TrainFlag> flags) {
      for (TrainFlag& flag : flags) {
        flag.group = group;
        all.push_back(std::move(flag));
      }
    };
    add("Model and data", data_flags());
    add("Strategy and devices", strategy_flags());
    add("Optimizer and schedule", schedule_flags());
    add("Training practice", practice_flags());
    add("Local updates", local_update_flags());
    add("Cluster", cluster_flags());
    add("Servers and staleness", consistency_flags());
    add("Checkpoints and output", output_flags());
    add("Fault injection", fault_flags());
    return all;
  }();
  return kFlags;
}

const TrainFlag* find_train_flag(std::string_view name) {
  const auto flag = std::ranges::find(train_flags(), name, &TrainFlag::name);
  return flag == train_flags().end() ? nullptr : &*flag;
}

bool TrainFlag::applies_to(const TrainOptions& options) const {
  return std::ranges::all_of(needs, [&](const Need& need) { return need.holds(options); });
}

FlagText TrainFlag::text_of(const TrainOptions& options) const {
  if (text != nullptr) return text(options);
  TrainOptions copy = options;  // a field can be changed
  const FlagText value = syncopate::text_of(field(copy));
  return is_unset_at_zero && value == "0" ? std::nullopt : value;
}

bool TrainFlag::is_switch() const {
  TrainOptions any;
  return field != nullptr && std::holds_alternative<bool*>(field(any));
}

std::string text_of(const TrainOptions& options, std::string_view name) {
  const TrainFlag& flag = train_flag_named(name);
  return text_or_absent(flag, flag.text_of(options));
}

std::vector<std::string> command_line_of(const TrainOptions& options) {
  std::vector<std::string> words;
  for_each_flag([&](const TrainFlag& flag) {
    const FlagText text = flag.text_of(options);
    if (!text || !flag.applies_to(options)) return;
    if (flag.is_switch()) {
      words.push_back(flag.name);
    } else if (!flag.rules.repeats) {
      words.insert(words.end(), {flag.name, *text});
    } else {
      std::istringstream values(*text);
      for (std::string value; values >> value;) words.insert(words.end(), {flag.name, value});
    }
  });
  return words;
}

std::string update_flags(const TrainOptions& options) {
  std::string flags;
  for_each_flag([&](const TrainFlag& flag) {
    const bool decides = flag.decides_updates ||
                         (flag.sets_length && options.schedule.kind == ScheduleKind::kCosine);
    if (!decides || !flag.applies_to(options)) return;
    flags += fmt::format("{}{} {}", flags.empty() ? "" : " ", flag.name,
                         text_or_absent(flag, flag.text_of(options)));
  });
  return flags;
}

std::vector<Agreement> agreements_of(const TrainOptions& options) {
  std::vector<Agreement> all = {{"program version", std::string(program_version())},
                                {"instruction set", std::string(name(detect_isa())), false}};
  for_each_flag([&](const TrainFlag& flag) {
    if (flag.agreement == TrainFlag::Agreement::kNone) return;
    const FlagText text = flag.compared != nullptr ? flag.compared(options) : flag.text_of(options);
    all.push_back(
        {flag.name, text_or_absent(flag, text), flag.agreement == TrainFlag::Agreement::kRequired});
  });
  return all;
}

bool writes_checkpoints(const TrainOptions& options) {
  return !options.loop.checkpoint_dir.empty();
}

bool has_links(const TrainOptions& options) {
  return strategy_of(options).needs_other_tasks() ||
         (has_stages(options) && options.cluster.world_size > 1);
}

}  // namespace syncopate
