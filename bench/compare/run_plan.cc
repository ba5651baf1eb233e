#include "bench/compare/run_plan.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "bench/compare/report/text.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr std::int64_t kNoEnd = 1'000'000;  // epochs, where seconds decide

std::int64_t samples_per_update(const CompareOptions& options, const Variant& variant) {
  if (!variant.keeps_step) return options.batch_size_per_replica;
  return options.batch_size_per_replica * (variant.workers - variant.backup_workers);
}

int places_in(const CompareOptions& options, const Variant& variant) {
  return places_of(variant.workers, options.trouble.joins);
}

bool is_of_links(const std::string& flag) {
  return flag == "--link-delay" || flag == "--link-rate";
}

// Trouble of workers and links that a variant has not is none of its.
std::vector<std::string> trouble_words_of(const CompareOptions& options, const Variant& variant) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i + 1 < options.trouble_words.size(); i += 2) {
    const std::string& flag = options.trouble_words[i];
    const std::string& word = options.trouble_words[i + 1];
    if (is_of_links(flag) && !variant.has_tasks()) continue;
    if (worker_of_trouble(flag, word).value_or(0) >= places_in(options, variant)) continue;
    words.insert(words.end(), {flag, word});
  }
  return words;
}

Trouble trouble_of(const CompareOptions& options, const Variant& variant) {
  Trouble trouble = options.trouble;
  const auto is_absent = [&](const auto& one) { return one.worker >= places_in(options, variant); };
  std::erase_if(trouble.slow, is_absent);
  std::erase_if(trouble.pauses, is_absent);
  std::erase_if(trouble.kills, is_absent);
  if (!variant.has_tasks()) trouble.link = {};
  return trouble;
}

// What train makes itself; under the virtual clock links are made by it.
std::vector<std::string> trouble_flags_of(const CompareOptions& options, const Variant& variant) {
  const std::vector<std::string> words = trouble_words_of(options, variant);
  std::vector<std::string> flags;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::string& flag = words[i];
    if (flag == "--kill" || flag == "--join") continue;
    if (is_of_links(flag) && options.clock == Clock::kVirtual) continue;
    flags.insert(flags.end(), {flag, words[i + 1]});
  }
  return flags;
}

bool has_flag(const std::vector<std::string>& flags, const std::string& flag) {
  return std::ranges::any_of(
      flags, [&](const std::string& word) { return word == flag || word.starts_with(flag + "="); });
}

// The flags ask for a rate that grows with the batch of all workers, which a variant without a
// common step has not; nor is said which other batch the rate was chosen for.
bool has_no_batch_to_scale_by(const CompareOptions& options, const Variant& variant) {
  const bool keeps_step = variant.keeps_step && variant.backup_workers == 0;
  const std::vector<std::string>& flags = options.train_flags;
  const std::string scale = "--learning-rate-scale";
  if (keeps_step || has_flag(flags, "--reference-batch-size")) return false;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    for (const std::string rule : {"linear", "sqrt"}) {
      if (flags[i] == scale + "=" + rule) return true;
      if (flags[i] == scale && i + 1 < flags.size() && flags[i + 1] == rule) return true;
    }
  }
  return false;
}

std::vector<std::string> flags_of(const CompareOptions& options, const Variant& variant,
                                  std::uint64_t seed, std::int64_t updates) {
  std::vector<std::string> flags = {"--model",
                                    options.model,
                                    "--data",
                                    options.data,
                                    "--batch-size-per-replica",
                                    std::to_string(options.batch_size_per_replica),
                                    "--threads",
                                    "1",
                                    "--no-progress"};
  const auto add = [&](const std::vector<std::string>& more) {
    flags.insert(flags.end(), more.begin(), more.end());
  };
  add(options.train_flags);
  if (has_no_batch_to_scale_by(options, variant)) {
    add({"--reference-batch-size", std::to_string(options.batch_size_per_replica)});  // times 1
  }
  add(trouble_flags_of(options, variant));
  add(variant.flags);
  const bool in_one_process =
      variant.strategy == "mirrored" || variant.strategy == "central-storage";
  if (in_one_process) add({"--replicas", std::to_string(variant.workers), "--share-devices"});
  switch (options.budget) {
    case Budget::kSamples:
      add({"--epochs", std::to_string(options.epochs)});
      break;
    case Budget::kUpdates:
      add({"--steps", std::to_string(updates)});
      break;
    case Budget::kSeconds:
      add({"--max-seconds", exact_text(options.seconds), "--epochs", std::to_string(kNoEnd)});
      break;
  }
  const std::int64_t every = std::max<std::int64_t>(1, updates / options.evaluations);
  add({"--eval-every-steps", std::to_string(every), "--log-every", std::to_string(every), "--seed",
       std::to_string(seed)});
  // Else a worker that evaluates would be missing from the training of some variants alone.
  if (options.clock == Clock::kReal) add({"--eval-when", "end"});
  return flags;
}

std::vector<std::string> notes_of(const CompareOptions& options, const Variant& variant) {
  if (!has_no_batch_to_scale_by(options, variant)) return {};
  return {
      "--learning-rate-scale left its rate as it was: without a common step there is no batch of "
      "all workers"};
}

}  // namespace

int threads_per_worker(const CompareOptions& options) {
  std::string last = "1";
  const std::string flag = "--threads";
  const std::vector<std::string>& words = options.train_flags;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(flag + "=")) last = words[i].substr(flag.size() + 1);
    if (words[i] == flag && i + 1 < words.size()) last = words[i + 1];
  }
  int threads = 0;
  std::from_chars(last.data(), last.data() + last.size(), threads);
  return threads;
}

std::int64_t updates_of(const CompareOptions& options, const Variant& variant,
                        std::int64_t train_samples) {
  if (options.budget == Budget::kUpdates) return options.updates;
  const std::int64_t per_epoch = train_samples / samples_per_update(options, variant);
  if (per_epoch == 0) {
    throw UsageError(variant.label + ": " + std::to_string(train_samples) +
                     " samples are less than one step of all its workers; give a smaller "
                     "--batch-size-per-replica");
  }
  return options.epochs * per_epoch;
}

std::vector<RunSpec> plan_runs(const CompareOptions& options, std::int64_t train_samples) {
  std::set<std::string> labels;
  for (const Variant& variant : options.variants) {
    if (variant.backup_workers >= variant.workers) {
      throw UsageError(variant.label + ": of " + std::to_string(variant.workers) +
                       (variant.workers == 1 ? " worker" : " workers") +
                       " at least one must be waited for; give --workers " +
                       std::to_string(variant.backup_workers + 1) +
                       " or more, or leave it out of --strategies");
    }
    if (!labels.insert(variant.label).second) {
      throw UsageError(variant.label + " is named twice; name each variant once");
    }
  }
  std::vector<RunSpec> runs;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    for (const Variant& variant : options.variants) {
      const auto number = static_cast<std::uint64_t>(seed);
      runs.push_back(
          {.variant = variant,
           .seed = number,
           .flags = flags_of(options, variant, number, updates_of(options, variant, train_samples)),
           .trouble = trouble_of(options, variant),
           .trouble_words = trouble_words_of(options, variant),
           .notes = notes_of(options, variant)});
    }
  }
  return runs;
}

}  // namespace syncopate::bench
