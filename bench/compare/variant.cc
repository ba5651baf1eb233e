#include "bench/compare/variant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "bench/compare/train_flags.h"
#include "bench/plots/text.h"
#include "deploy/cli/flag.h"
#include "deploy/cli/names.h"
#include "models/base/errors.h"
#include "ps/shard/stale_gradients.h"
#include "strategies/strategy.h"
#include "worker/run/flags/train_flag.h"

namespace syncopate::bench {
namespace {

constexpr std::string_view kTunedRounds = "tuned";  // in place of the number of steps in a round

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

std::vector<std::string> strategies_with_consistency() {
  std::vector<std::string> found;
  for (const StrategyRow& row : strategies()) {
    if (row.shares_variables()) found.emplace_back(row.name);
  }
  return found;
}

constexpr std::string_view kDisplacement = name(PushKind::kDisplacement);

// Returns the parts of a variant that follow a "+".
std::vector<std::string> additions() {
  std::vector<std::string> found = {"backup:K", fmt::format("{}:OUTER:N", kDisplacement)};
  for (const ps::StalenessRule rule : kAllValues<ps::StalenessRule>) {
    if (rule == ps::StalenessRule::kNone) continue;
    found.push_back(fmt::format("{}{}", name(rule), ps::has_number(rule) ? ":N" : ""));
  }
  return found;
}

class WordParser {
 public:
  WordParser(const std::string& word, int workers, int servers, SharedBy command)
      : word_(word), command_(command) {
    variant_.label = word;
    variant_.word = word.substr(0, word.find('{'));
    variant_.workers = workers;
    variant_.servers = servers;
  }

  Variant parse() {
    const std::size_t brace = word_.find('{');
    if (brace != std::string::npos) parse_flags(word_.substr(brace));
    std::vector<std::string> parts = split(word_.substr(0, brace), '+');
    parse_strategy(split(parts.front(), ':'));
    for (std::size_t i = 1; i < parts.size(); ++i) parse_addition(parts[i]);
    const bool merges = variant_.consistency.consistency == ps::Consistency::kQuorum;
    if (merges && !variant_.pushes_displacements) {
      refuse("quorum merges displacements; add one, such as +displacement:diloco:8");
    }
    return std::move(variant_);
  }

 private:
  // Moves the value of a batch from the flags, because compare sets the batch of each run.
  void take_batch(const std::string& name, std::optional<std::int64_t>& batch) {
    const auto found = std::ranges::find_if(
        variant_.flags, [&](const std::string& flag) { return flag.starts_with(name + "="); });
    if (found == variant_.flags.end()) return;
    if (variant_.worker_batch) {
      throw UsageError("--batch-size-per-replica and --batch-size exclude each other");
    }
    store_value({.name = name,
                 .target = &batch,
                 .help = "",
                 .rules = find_train_flag(name)->rules,
                 .words = {found->substr(name.size() + 1)}});
    variant_.flags.erase(found);
  }

  // Parses the end of the word, "{learning-rate=0.1}".
  void parse_flags(const std::string& text) {
    const std::size_t end = text.find('}');
    if (end == std::string::npos) refuse("expected } at the end");
    if (end + 1 != text.size()) {
      refuse(fmt::format("expected the end after }}, found \"{}\"; flags in braces come last",
                         text.substr(end + 1)));
    }
    try {
      variant_.flags = parse_flags_in_braces(text.substr(1, end - 1), command_);
      take_batch("--batch-size-per-replica", variant_.worker_batch);
      take_batch("--batch-size", variant_.update_batch);
    } catch (const UsageError& error) {
      refuse(error.what());
    }
  }

  void parse_strategy(const std::vector<std::string>& words) {
    variant_.strategy = words.front();
    if (find_strategy(variant_.strategy) == nullptr) {
      refuse("no such strategy" +
             suggest_value("--strategy", variant_.strategy, names_of(strategies())));
    }
    if (variant_.has_rounds()) {
      variant_.servers = 0;
      return parse_rounds(words);
    }
    if (variant_.has_stages()) return parse_micro_batches(words);
    const StrategyRow& strategy = variant_.row();
    if (strategy.is_alone()) variant_.workers = 1;
    if (!strategy.has_servers()) variant_.servers = 0;
    if (words.size() > 1) {
      parse_consistency(words);
    } else if (strategy.consistency != ps::Consistency::kSync) {
      parse_consistency({words[0], std::string(name(strategy.consistency))});
    }
  }

  // A step of a pipeline has by default as many samples as one of as many replicas.
  void parse_micro_batches(const std::vector<std::string>& words) {
    variant_.servers = 0;
    variant_.micro_batches =
        words.size() > 1 ? number(words[1], 1, kMostMicroBatches) : variant_.workers;
    if (words.size() > 2) refuse("expected one number of micro-batches, such as pipeline:8");
  }

  // Parses the outer step, with its number if it has one, and the number of steps behind the first
  // word. The number of steps has no default, because each number has a price.
  void parse_rounds(const std::vector<std::string>& words) {
    std::vector<std::string> known;
    for (const OuterRuleRow& row : outer_rules()) {
      if (row.has_number && !variant_.pushes_displacements) continue;  // for single displacements
      known.emplace_back(row.name);
    }
    variant_.outer = words.size() > 1 ? words[1] : known.front();
    if (std::ranges::find(known, variant_.outer) == known.end()) {
      refuse(fmt::format("expected {}, found \"{}\"", listed(known, "or"), variant_.outer));
    }
    std::size_t at = 2;
    if (const auto row = std::ranges::find(outer_rules(), variant_.outer, &OuterRuleRow::name);
        row->has_number && words.size() > at) {
      variant_.outer += fmt::format(":{}", number(words[at++], 1));
    }
    if (words.size() != at + 1) {
      refuse(
          fmt::format("expected the number of steps between two exchanges, such as {}:{}:8; a "
                      "larger number sends less, and the workers' models drift further apart",
                      words.front(), variant_.outer));
    }
    variant_.tunes_rounds = command_ == SharedBy::kCompare && words[at] == kTunedRounds;
    variant_.sync_every = variant_.tunes_rounds ? 1 : number(words[at], 1);
  }

  void parse_consistency(const std::vector<std::string>& words) {
    if (!variant_.row().shares_variables()) {
      refuse(fmt::format("only {} have a consistency to choose",
                         listed(strategies_with_consistency())));
    }
    const auto consistency = value_named<ps::Consistency>(words[1]);
    if (!consistency) {
      const Names known = names<ps::Consistency>();
      refuse(fmt::format("expected {}, found \"{}\"", listed({known.begin(), known.end()}, "or"),
                         words[1]));
    }
    is_sync_ = variant_.is_synchronous = *consistency == ps::Consistency::kSync;
    variant_.consistency.consistency = *consistency;
    if (*consistency == ps::Consistency::kQuorum) return parse_quorum(words);
    if (words.size() == 2) return;
    if (words.size() > 3 || *consistency != ps::Consistency::kSsp)
      refuse("only ssp takes a number, the maximum staleness");
    variant_.consistency.max_staleness = number(words[2]);
  }

  // Parses the number of workers and the seconds of grace, which may be left out.
  void parse_quorum(const std::vector<std::string>& words) {
    if (command_ != SharedBy::kCompare) refuse("plan does not predict a quorum; leave it out");
    variant_.servers = std::min(variant_.servers, 1);  // one server decides each merge
    if (words.size() > 4) refuse("expected quorum:WORKERS:SECONDS, such as quorum:2:0.5");
    if (words.size() > 2) variant_.consistency.quorum = number(words[2], 1, variant_.workers);
    if (words.size() < 4) return;
    double& grace = variant_.consistency.grace;
    try {
      store_value({.name = "--grace",
                   .target = &grace,
                   .help = "",
                   .rules = find_train_flag("--grace")->rules,
                   .words = {words[3]}});
    } catch (const UsageError& error) {
      refuse(error.what());
    }
  }

  void parse_addition(const std::string& text) {
    const std::vector<std::string> words = split(text, ':');
    if (words.front() == "backup") {
      if (!is_sync_) refuse("backup workers require sync, such as parameter-server:sync+backup:1");
      if (words.size() != 2)
        refuse("expected backup:K, with K the number of workers that a step does not wait for");
      if (has_backups_) refuse("backup:K is given twice; give it once");
      has_backups_ = true;
      variant_.backup_workers = variant_.consistency.backup_workers = number(words[1]);
      return;
    }
    if (words.front() == kDisplacement) {
      if (variant_.is_synchronous) refuse("displacements require async, ssp or quorum");
      variant_.pushes_displacements = true;
      return parse_rounds(words);
    }
    const auto rule = value_named<ps::StalenessRule>(words[0]);
    if (!rule || *rule == ps::StalenessRule::kNone)
      refuse(fmt::format("expected {}, found \"+{}\"", listed(additions(), "or"), words.front()));
    if (variant_.is_synchronous) {
      refuse(fmt::format("\"+{}\" is a rule for stale gradients, which async and ssp have", text));
    }
    if (!rule_.empty()) refuse(fmt::format("has both {} and {}; give one of them", rule_, text));
    rule_ = text;
    try {
      ps::set_staleness_rule(variant_.consistency, text, "--staleness-rule");
      ps::check_consistency(variant_.consistency);
    } catch (const UsageError& error) {
      refuse(error.what());
    }
    variant_.consistency.compensation = ps::compensation_of(*rule);
  }

  int number(const std::string& text, int least = 0, int most = 999'999) const {
    constexpr std::size_t kMostDigits = 6;
    const bool is_number =
        !text.empty() && text.size() <= kMostDigits &&
        std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
    if (!is_number || std::stoi(text) < least || std::stoi(text) > most) {
      refuse(fmt::format("expected a number from {} to {}, found \"{}\"", least, most, text));
    }
    return std::stoi(text);
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("--strategies {}: {}", word_, why));
  }

  const std::string& word_;
  const SharedBy command_;
  Variant variant_;
  bool is_sync_ = false;
  bool has_backups_ = false;
  std::string rule_;
};

}  // namespace

Variant parse_variant(const std::string& word, int workers, int servers, SharedBy command) {
  return WordParser(word, workers, servers, command).parse();
}

bool Variant::has_flag(const std::string& name) const {
  return std::ranges::any_of(
      flags, [&](const std::string& flag) { return flag.substr(0, flag.find('=')) == name; });
}

std::vector<std::string> split_variants(const std::string& text) {
  std::vector<std::string> variants(1);
  bool is_in_braces = false;
  for (const char c : text) {
    if (c == '{') is_in_braces = true;
    if (c == '}') is_in_braces = false;
    if (c == ',' && !is_in_braces) {
      variants.emplace_back();
    } else {
      variants.back() += c;
    }
  }
  return variants;
}

std::string run_name(const RunSpec& run) {
  std::string name;
  for (const char c : run.variant.label) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
    name += is_plain ? c : '_';
  }
  return name + "-seed" + std::to_string(run.seed);
}

}  // namespace syncopate::bench
