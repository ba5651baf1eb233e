#include "bench/compare/train_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string_view>

#include "deploy/cli/command_line.h"
#include "deploy/cli/names.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

// What compare does with a flag of train that a user gives for its runs.
enum class Use : std::uint8_t {
  kSetByCompare,  // compare sets it for each run itself
  kRefused,       // compare does not take it
  kTrains,        // every run trains with it, whatever the clock
  kOpensData,     // opens the data, which all virtual runs share
  kNeutral,       // can change neither the weights nor the time of a virtual run
  kRealOnly,      // the virtual clock refuses it
};

struct FlagRow {
  using Condition = bool (*)(const TrainOptions& options, int workers);

  std::string_view flag;
  Use use;
  std::string_view text = "";   // what to do instead, of a flag that is refused
  Condition refused = nullptr;  // whether the virtual clock refuses the value; null: any value
};

constexpr std::string_view kVariants = "give it in --strategies, as in parameter-server:ssp:2";
constexpr std::string_view kWorkers = "compare starts the workers: give --workers before the --";
constexpr std::string_view kEvaluations = "give --evaluations before the --";
constexpr std::string_view kToTheEnd =
    "compare trains every variant to the end of its budget, and evaluates then";
constexpr std::string_view kFolder = "each run keeps its files in the folder of --report";
constexpr std::string_view kBefore = "give it before the --";
constexpr std::string_view kSeeTrain = "see syncopate train --help";
constexpr std::string_view kOneProcess =
    "the virtual clock trains all workers on the CPU; leave it out, or compare with "
    "--clock real";
constexpr std::string_view kPractice = "leave it out, or compare with --clock real";
constexpr std::string_view kOneRun =
    "every run would write to it; leave it out (the folder of --report has the curves), or train a "
    "single run with syncopate train";

// The flags of train that plan has itself.
constexpr std::array<std::string_view, 10> kOfPlan = {
    "--model",      "--data",     "--batch-size-per-replica", "--epochs",
    "--seed",       "--servers",  "--service-time",           "--slow",
    "--link-delay", "--link-rate"};

bool has_gpu(const TrainOptions& o, int /*workers*/) {
  const auto is_gpu = [](const Device& device) { return device.kind != DeviceKind::kCpu; };
  return o.takes_own_gpus || std::ranges::any_of(o.strategy.devices, is_gpu);
}
// The sums of `local`, `ring` and servers have the same bits, and these are the ones computed.
bool sums_otherwise(const TrainOptions& o, int /*workers*/) {
  return o.strategy.collective == "mpi" || o.strategy.collective == "nccl";
}
bool shares_statistics(const TrainOptions& o, int workers) {
  return o.strategy.batch_norm == BatchNormStatistics::kSync && workers > 1;
}

// Every flag of train.
constexpr std::array kFlags = {
    FlagRow{"--model", Use::kSetByCompare, kBefore},
    FlagRow{"--data", Use::kSetByCompare, kBefore},
    FlagRow{"--split", Use::kRefused, "variants are compared on the splits that the data have"},
    FlagRow{"--batch-size-per-replica", Use::kSetByCompare, kBefore},
    FlagRow{"--accumulate", Use::kRefused, "give a larger --batch-size-per-replica before the --"},
    FlagRow{"--batch-size", Use::kSetByCompare, "give --batch-size-per-replica before the --"},
    FlagRow{"--epochs", Use::kSetByCompare, kBefore},
    FlagRow{"--steps", Use::kSetByCompare, "give --budget updates --updates N before the --"},
    FlagRow{"--max-seconds", Use::kSetByCompare, "give --budget seconds --seconds S before the --"},
    FlagRow{"--seed", Use::kSetByCompare, "give --seeds N and --first-seed S before the --"},
    FlagRow{"--strategy", Use::kSetByCompare, "name it in --strategies"},
    FlagRow{"--consistency", Use::kSetByCompare, kVariants},
    FlagRow{"--max-staleness", Use::kSetByCompare, kVariants},
    FlagRow{"--backup-workers", Use::kSetByCompare,
            "give it in --strategies, as in parameter-server:sync+backup:1"},
    FlagRow{"--staleness-rule", Use::kSetByCompare,
            "give it in --strategies, as in parameter-server:async+inverse"},
    FlagRow{"--replicas", Use::kSetByCompare, kWorkers},
    FlagRow{"--rank", Use::kSetByCompare, kWorkers},
    FlagRow{"--world-size", Use::kSetByCompare, kWorkers},
    FlagRow{"--rendezvous", Use::kSetByCompare, kWorkers},
    FlagRow{"--nonce", Use::kSetByCompare, kWorkers},
    FlagRow{"--role", Use::kSetByCompare, kWorkers},
    FlagRow{"--servers", Use::kSetByCompare, kBefore},
    FlagRow{"--service-time", Use::kSetByCompare, kBefore},
    FlagRow{"--slow", Use::kSetByCompare, kBefore},
    FlagRow{"--pause", Use::kSetByCompare, kBefore},
    FlagRow{"--link-delay", Use::kSetByCompare, kBefore},
    FlagRow{"--link-rate", Use::kSetByCompare, kBefore},
    FlagRow{"--eval-every", Use::kSetByCompare, kEvaluations},
    FlagRow{"--eval-every-steps", Use::kSetByCompare, kEvaluations},
    FlagRow{"--eval-when", Use::kSetByCompare,
            "compare evaluates after training, so that evaluations take no time from it"},
    FlagRow{"--stop-at", Use::kRefused, kToTheEnd},
    FlagRow{"--early-stop", Use::kRefused, kToTheEnd},
    FlagRow{"--reduce-on-plateau", Use::kRefused, kToTheEnd},
    FlagRow{"--keep-best", Use::kRefused, kToTheEnd},
    FlagRow{"--log-every", Use::kSetByCompare, kEvaluations},
    FlagRow{"--metrics", Use::kSetByCompare, kFolder},
    FlagRow{"--checkpoint-dir", Use::kSetByCompare, kFolder},
    FlagRow{"--checkpoint-every", Use::kSetByCompare, kFolder},
    FlagRow{"--keep-checkpoints", Use::kSetByCompare, kFolder},
    FlagRow{"--snapshot-every", Use::kSetByCompare, kFolder},
    FlagRow{"--resume", Use::kRefused, "compare with the same --report continues by itself"},
    FlagRow{"--record", Use::kRefused,
            "every run would write to it; record a single run with syncopate launch"},
    FlagRow{"--tensorboard", Use::kRefused, kOneRun},
    FlagRow{"--trace", Use::kRefused, kOneRun},
    FlagRow{"--config", Use::kRefused, "give its flags themselves"},
    FlagRow{"--help", Use::kRefused, kSeeTrain},
    FlagRow{"-h", Use::kRefused, kSeeTrain},
    FlagRow{"--stages", Use::kSetByCompare,
            "the workers of a pipeline are its stages: give --workers before the --"},
    FlagRow{"--head", Use::kTrains},
    FlagRow{"--normalize", Use::kTrains},
    FlagRow{"--augment", Use::kTrains},
    FlagRow{"--threads", Use::kTrains},
    FlagRow{"--cut", Use::kTrains},
    FlagRow{"--optimizer", Use::kTrains},
    FlagRow{"--learning-rate", Use::kTrains},
    FlagRow{"--momentum", Use::kTrains},
    FlagRow{"--nesterov", Use::kTrains},
    FlagRow{"--weight-decay", Use::kTrains},
    FlagRow{"--beta1", Use::kTrains},
    FlagRow{"--beta2", Use::kTrains},
    FlagRow{"--epsilon", Use::kTrains},
    FlagRow{"--lr-schedule", Use::kTrains},
    FlagRow{"--lr-milestones", Use::kTrains},
    FlagRow{"--lr-factor", Use::kTrains},
    FlagRow{"--warmup-epochs", Use::kTrains},
    FlagRow{"--learning-rate-scale", Use::kTrains},
    FlagRow{"--reference-batch-size", Use::kTrains},
    FlagRow{"--label-smoothing", Use::kTrains},
    FlagRow{"--compress", Use::kTrains},
    FlagRow{"--partition", Use::kTrains},
    FlagRow{"--init-from", Use::kTrains},
    FlagRow{"--image-size", Use::kOpensData},
    FlagRow{"--exif", Use::kOpensData},
    FlagRow{"--skip-bad-records", Use::kOpensData},
    FlagRow{"--image-feature", Use::kOpensData},
    FlagRow{"--label-feature", Use::kOpensData},
    FlagRow{"--raw-shape", Use::kOpensData},
    FlagRow{"--cache-dir", Use::kNeutral},
    FlagRow{"--cache-mb", Use::kNeutral},
    FlagRow{"--input-threads", Use::kNeutral},
    FlagRow{"--prefetch", Use::kNeutral},
    FlagRow{"--share-devices", Use::kNeutral},
    FlagRow{"--deterministic", Use::kNeutral},
    FlagRow{"--transport", Use::kNeutral},
    FlagRow{"--bucket-mb", Use::kNeutral},
    FlagRow{"--rendezvous-timeout", Use::kNeutral},
    FlagRow{"--peer-timeout", Use::kNeutral},
    FlagRow{"--no-progress", Use::kNeutral},
    FlagRow{"--precision", Use::kNeutral},  // f32; train refuses others without --devices cuda
    FlagRow{"--devices", Use::kRealOnly, kOneProcess, has_gpu},
    FlagRow{
        "--collective", Use::kRealOnly,
        "the virtual clock adds as local and ring do; leave it out, or compare with --clock real",
        sums_otherwise},
    FlagRow{"--batch-norm", Use::kRealOnly,
            "workers compute one after the other under the virtual clock; leave it out, or compare "
            "with "
            "--clock real",
            shares_statistics},
    FlagRow{"--clip-norm", Use::kRealOnly, kPractice},
    FlagRow{"--ema", Use::kRealOnly, kPractice}};

std::string name_in(const std::string& word) { return word.substr(0, word.find('=')); }

// Returns the row of a flag, such as "--epochs"; null for a word that is no flag of train.
const FlagRow* find_row(std::string_view flag) {
  const auto* const row = std::ranges::find(kFlags, flag, &FlagRow::flag);
  return row == kFlags.end() ? nullptr : row;
}

bool is_given_elsewhere(const FlagRow& row) {
  return row.use == Use::kSetByCompare || row.use == Use::kRefused;
}

// Whether the values of the flag that the virtual clock takes change nothing there.
bool is_neutral(const FlagRow& row) {
  return row.use == Use::kNeutral || row.flag == "--collective";
}

// Returns what to type in place of a flag that compare sets or refuses.
std::string instead_of(const FlagRow& row, SharedBy command) {
  if (command == SharedBy::kCompare) {
    return fmt::format(
        "{}; {}",
        row.use == Use::kRefused ? "compare does not take it" : "compare sets it for each run",
        row.text);
  }
  if (std::ranges::find(kOfPlan, row.flag) != kOfPlan.end()) {
    return "plan has this flag itself; give it before the --";
  }
  if (row.text == kWorkers) return "plan has rows for each number of --workers, before the --";
  const bool is_of_variants = row.text.find("in --strategies") != std::string_view::npos;
  if (is_of_variants || row.text == kSeeTrain) return std::string(row.text);
  return "plan trains its rows once, to --target-accuracy; leave it out";
}

// Throws UsageError unless `name`, without dashes, is a flag of train that a variant may have.
void require_flag_of_variant(const std::string& name, SharedBy command) {
  const std::string flag = "--" + name;
  const FlagRow* const row = find_row(flag);
  if (row != nullptr && is_given_elsewhere(*row)) {
    throw UsageError(fmt::format("{}: {}", row->flag, instead_of(*row, command)));
  }
  if (row != nullptr) return;
  std::vector<std::string_view> known;
  for (const FlagRow& other : kFlags) {
    if (!is_given_elsewhere(other)) known.push_back(other.flag);
  }
  const auto meant =
      flag_meant_by("--" + name.substr(std::min(name.find_first_not_of('-'), name.size())), known);
  const std::string text(meant.value_or(""));
  throw UsageError(fmt::format(
      "train has no flag \"{}\"; {}", name,
      meant ? fmt::format("did you mean {}?", text.substr(text.starts_with("--") ? 2 : 0))
            : "syncopate train --help lists its flags"));
}

}  // namespace

bool SharedTrainFlags::has(const std::string& flag) const {
  return std::ranges::find(given, flag) != given.end();
}

std::vector<std::string> parse_flags_in_braces(const std::string& text, SharedBy command) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    begin = end + 1;
    const bool has_digit = !part.empty() && std::isdigit(static_cast<unsigned char>(part[0])) != 0;
    if (has_digit && !words.empty() && words.back().find('=') != std::string::npos) {
      words.back() += "," + part;
      continue;
    }
    if (part.empty() || part.front() == '=') {
      throw UsageError("expected flags of train in the braces, as in {learning-rate=0.1}");
    }
    const std::string name = name_in(part);
    require_flag_of_variant(name, command);
    const auto is_same = [&](const std::string& word) { return name_in(word) == "--" + name; };
    if (std::ranges::any_of(words, is_same)) {
      throw UsageError(name + " is given twice; give it once");
    }
    words.push_back("--" + part);
  }
  return words;
}

SharedTrainFlags add_flags(const SharedTrainFlags& shared, const std::vector<std::string>& words,
                           const std::string& label) {
  if (words.empty()) return shared;
  std::vector<std::string> all = shared.words;
  all.insert(all.end(), words.begin(), words.end());
  try {
    return parse_shared_train_flags(all, shared.command);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", label, error.what()));
  }
}

std::vector<RestFlag> shared_rest_flags(SharedBy command) {
  std::vector<RestFlag> flags = train_rest_flags();
  for (RestFlag& flag : flags) {
    const FlagRow* const row = find_row(flag.name);
    if (row != nullptr && is_given_elsewhere(*row)) flag.instead = instead_of(*row, command);
  }
  return flags;
}

SharedTrainFlags parse_shared_train_flags(const std::vector<std::string>& words, SharedBy command) {
  SharedTrainFlags shared;
  shared.command = command;
  shared.words = words;
  for (const std::string& word : words) {
    const std::string flag = name_in(word);
    const FlagRow* const row = find_row(flag);
    if (row != nullptr && is_given_elsewhere(*row)) {
      throw UsageError(fmt::format("{} after --: {}", flag, instead_of(*row, command)));
    }
    if (flag.starts_with("--")) shared.given.push_back(flag);
  }
  shared.options = parse_shared_train(words);
  return shared;
}

std::string ignored_flag(const SharedTrainFlags& shared, const TrainOptions& run,
                         const std::string& label, bool is_virtual) {
  for (const TrainOptionRow& row : train_option_rows()) {
    if (!shared.has(std::string(row.name)) || row.applies_to(run)) continue;
    if (const FlagRow* const flag = find_row(row.name);
        is_virtual && flag != nullptr && is_neutral(*flag)) {
      continue;
    }
    return fmt::format("{} {}: not applicable to {}; leave out the flag or the variant", row.name,
                       text_of(run, row.name), label);
  }
  return "";
}

void require_virtual(const SharedTrainFlags& shared, const Variant& variant) {
  const SharedTrainFlags flags = add_flags(shared, variant.flags, variant.label);
  for (const std::string& flag : flags.given) {
    const FlagRow* const row = find_row(flag);
    check(row != nullptr, "the table has every flag of train");
    const bool is_refused =
        row->use == Use::kRealOnly &&
        (row->refused == nullptr || row->refused(flags.options, variant.workers));
    if (is_refused) {
      throw UsageError(fmt::format("{} {}: not available under the virtual clock: {}", flag,
                                   text_of(flags.options, flag), row->text));
    }
    if (row->use == Use::kOpensData && variant.has_flag(flag)) {
      throw UsageError(
          fmt::format("{}: under the virtual clock all variants read one data set; give {} after "
                      "--, for all of them",
                      variant.label, flag));
    }
  }
}

void require_flags_of_replay(const SharedTrainFlags& shared) {
  constexpr std::array<std::string_view, 3> kOfReading = {"--cache-dir", "--cache-mb",
                                                          "--no-progress"};
  for (const std::string& flag : shared.given) {
    const FlagRow* const row = find_row(flag);
    check(row != nullptr, "the table has every flag of train");
    if (row->use == Use::kOpensData || std::ranges::find(kOfReading, flag) != kOfReading.end()) {
      continue;
    }
    throw UsageError(fmt::format(
        "{} after --: --replay computes what the job of the record computed; leave it out", flag));
  }
}

bool has_own_data(const Variant& variant) {
  return std::ranges::any_of(kFlags, [&](const FlagRow& row) {
    return row.use == Use::kOpensData && variant.has_flag(std::string(row.flag));
  });
}

DataOptions data_options(const SharedTrainFlags& shared, const std::filesystem::path& cache_dir) {
  const std::filesystem::path& given = shared.options.cache_dir;
  DataOptions options{
      .cache_dir = given.empty() ? cache_dir : given, .seed = 1, .image = shared.options.image};
  options.image.cache_dir = given;
  return options;
}

std::string neutral_flags_note(const SharedTrainFlags& shared,
                               const std::vector<Variant>& variants) {
  std::vector<std::string_view> given;
  for (const FlagRow& row : kFlags) {
    const std::string flag(row.flag);
    const auto has = [&](const Variant& variant) { return variant.has_flag(flag); };
    const bool is_given = shared.has(flag) || std::ranges::any_of(variants, has);
    // Values that the virtual clock refuses are refused before, so the given ones change nothing.
    if (is_given && is_neutral(row)) given.push_back(row.flag);
  }
  if (given.empty()) return "";
  return fmt::format("{} {} neither weights nor times under the virtual clock",
                     fmt::join(given, ", "), given.size() == 1 ? "changes" : "change");
}

}  // namespace syncopate::bench
