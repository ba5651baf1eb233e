#include "deploy/cli/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <sstream>
#include <utility>

#include "models/base/lower_case.h"

namespace syncopate {
namespace {

// Counts edits: letters inserted, left out, replaced, or swapped with their neighbour.
std::size_t count_edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before(to.size() + 1);  // row i - 1 of the edit-distance table
  std::vector<std::size_t> row(to.size() + 1);     // row i of the edit-distance table
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::vector<std::size_t> next(to.size() + 1, i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      next[j + 1] = std::min({row[j] + (from[i] == to[j] ? 0 : 1), next[j] + 1, row[j + 1] + 1});
      if (i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j]) {
        next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
      }
    }
    before = std::exchange(row, std::move(next));
  }
  return row.back();
}

std::string plain(std::string_view name) {
  std::string text = lower_case(name);
  std::ranges::replace(text, '_', '-');
  return text;
}

// Flags of other programs that mean one of ours. A row applies only to commands that have our flag.
// If a word is in several rows, the first one that applies counts.
struct ForeignFlags {
  std::string_view ours;
  std::string_view advice;  // the text that the user is told to type; "" means `ours`
  std::string_view typed;   // words with spaces between
};

constexpr std::array kForeignFlags = {
    ForeignFlags{"--learning-rate", "", "--lr --base-lr"},
    ForeignFlags{"--weight-decay", "", "--wd"},
    ForeignFlags{"--optimizer", "", "--opt"},
    ForeignFlags{"--lr-schedule", "", "--scheduler --lr-scheduler"},
    ForeignFlags{"--lr-milestones", "", "--milestones"},
    ForeignFlags{"--lr-factor", "", "--gamma"},
    ForeignFlags{"--warmup-epochs", "", "--warmup"},
    ForeignFlags{"--devices", "--devices cuda", "--gpu --cuda"},
    ForeignFlags{"--devices", "--devices cuda --replicas N", "--gpus --num-gpus --ngpus"},
    ForeignFlags{"--devices", "--devices cpu", "--no-cuda"},
    ForeignFlags{"--devices", "", "--device"},
    ForeignFlags{"--precision", "--precision bf16", "--amp --bf16 --mixed-precision"},
    ForeignFlags{"--precision", "--precision fp16", "--fp16"},
    ForeignFlags{"--precision", "", "--dtype"},
    ForeignFlags{"--batch-size", "", "--batch --bs -b --global-batch-size --train-batch-size"},
    ForeignFlags{"--batch-size-per-replica", "",
                 "--local-batch-size --per-device-train-batch-size"},
    ForeignFlags{"--epochs", "", "-e --num-epochs --num-train-epochs --max-epochs"},
    ForeignFlags{"--steps", "", "--train-steps --max-steps --num-steps --iterations"},
    ForeignFlags{"--model", "", "--arch -a -m --net --network"},
    ForeignFlags{"--data", "", "--dataset"},
    ForeignFlags{"--data", "--data mnist:DIR", "--data-dir --data-path"},
    ForeignFlags{"--seed", "", "--random-seed"},
    ForeignFlags{"--workers", "", "--num-workers"},
    ForeignFlags{"--input-threads", "--input-threads N", "--num-workers"},
    ForeignFlags{"--input-threads", "", "-j"},
    ForeignFlags{"--world-size", "syncopate launch --workers N -- train ...",
                 "--workers --nproc-per-node --num-proc -np -n"},
    ForeignFlags{"--rendezvous", "--rendezvous HOST:PORT",
                 "--ps-hosts --worker-hosts --dist-url --init-method --master-addr --master-port "
                 "--rdzv-endpoint"},
    ForeignFlags{"--rank", "", "--task-index --node-rank"},
    ForeignFlags{"--threads", "", "--num-threads"},
    ForeignFlags{"--collective", "", "--backend --dist-backend --all-reduce-alg"},
    ForeignFlags{"--strategy", "", "--distribution-strategy --distribute"},
    ForeignFlags{"--batch-norm", "--batch-norm sync", "--sync-bn"},
    ForeignFlags{"--world-size", "", "--nnodes"},
    ForeignFlags{"--workers", "", "--nproc-per-node --num-proc -np -n"},
    ForeignFlags{"--restart", "", "--max-restarts"},
    ForeignFlags{"--servers", "", "--ps --num-ps --num-servers"},
    ForeignFlags{"--tasks-per-node", "", "--ntasks-per-node"},
    ForeignFlags{"--checkpoint-dir", "", "--output-dir --model-dir --save-dir"},
    ForeignFlags{"--init-from", "--init-from CHECKPOINT", "--pretrained --weights"},
    ForeignFlags{"--report", "--report DIR", "--json --output --output-dir"},
    ForeignFlags{"--metrics", "--metrics FILE", "--json"},
    ForeignFlags{"--checkpoint-dir", "", "--output"},
    ForeignFlags{"--tensorboard", "", "--log-dir --logdir"},
    ForeignFlags{"--compress", "", "--compression --fp16-allreduce"},
};

// Values of other programs that mean one of ours.
struct ForeignValues {
  std::string_view flag;
  std::string_view ours;
  std::string_view typed;  // words with spaces between, in lower case with - for _
};

constexpr std::array kForeignValues = {
    ForeignValues{"--strategy", "parameter-server", "ps parameterserverstrategy async"},
    ForeignValues{"--strategy", "multi-worker-mirrored",
                  "horovod hvd ddp distributeddataparallel multiworkermirroredstrategy "
                  "multiworkermirrored multi-worker collectiveallreduce allreduce all-reduce"},
    ForeignValues{"--strategy", "mirrored", "mirroredstrategy dataparallel data-parallel dp"},
    ForeignValues{"--strategy", "central-storage", "centralstoragestrategy"},
    ForeignValues{"--strategy", "one-device", "onedevicestrategy default"},
    ForeignValues{"--collective", "ring", "gloo tcp"},
    ForeignValues{"--optimizer", "momentum", "nesterov"},
    ForeignValues{"--consistency", "async", "asynchronous asp"},
    ForeignValues{"--consistency", "sync", "bsp synchronous"},
    ForeignValues{"--consistency", "ssp", "bounded"},
};

bool has_word(std::string_view words, const std::string& word) {
  std::istringstream each{std::string(words)};
  const std::istream_iterator<std::string> end;
  return std::find(std::istream_iterator<std::string>(each), end, word) != end;
}

std::string list_after(std::string_view meant, const std::vector<std::string_view>& names) {
  const std::string list = fmt::format("{}", fmt::join(names, ", "));
  if (meant.empty()) return "; choose one of " + list;
  return fmt::format("; did you mean '{}'? Choose one of {}", meant, list);
}

}  // namespace

std::optional<std::string_view> nearest_name(std::string_view typed,
                                             const std::vector<std::string_view>& names) {
  std::optional<std::string_view> best;
  // A name of up to three letters allows one edit only, because two edits would turn it into nearly
  // any other name.
  std::size_t fewest = (typed.size() <= 3 ? 1 : typed.size() <= 8 ? 2 : 3) + 1;
  for (const std::string_view name : names) {
    const std::size_t count = count_edits(plain(typed), plain(name));
    if (count < fewest) {
      fewest = count;
      best = name;
    }
  }
  return best;
}

std::string suggest(std::string_view typed, const std::vector<std::string_view>& names) {
  return list_after(nearest_name(typed, names).value_or(""), names);
}

std::string suggest_value(std::string_view flag, std::string_view typed,
                          const std::vector<std::string_view>& names) {
  for (const ForeignValues& row : kForeignValues) {
    const bool is_known = std::ranges::find(names, row.ours) != names.end();
    if (row.flag == flag && has_word(row.typed, plain(typed)) && is_known) {
      return list_after(row.ours, names);
    }
  }
  return suggest(typed, names);
}

std::optional<std::string> flag_meant_by(std::string_view typed,
                                         const std::vector<std::string_view>& flags) {
  for (const ForeignFlags& row : kForeignFlags) {
    if (!has_word(row.typed, plain(typed)) || std::ranges::find(flags, row.ours) == flags.end())
      continue;
    return std::string(row.advice.empty() ? row.ours : row.advice);
  }
  if (const auto nearest = nearest_name(typed, flags)) return std::string(*nearest);
  return std::nullopt;
}

}  // namespace syncopate
