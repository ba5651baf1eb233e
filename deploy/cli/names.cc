#include "deploy/cli/names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <utility>

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
  std::string text(name);
  for (char& letter : text) {
    letter =
        letter == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return text;
}

// A ForeignFlag maps a flag of another program (`typed`) to our flag (`ours`). It applies only to
// commands that have the flag `ours`.
struct ForeignFlag {
  std::string_view typed;
  std::string_view ours;
  std::string_view advice;  // the text that the user is told to type; "" means `ours`
};

constexpr std::array kForeignFlags = {
    ForeignFlag{"--lr", "--learning-rate", ""},
    ForeignFlag{"--base-lr", "--learning-rate", ""},
    ForeignFlag{"--wd", "--weight-decay", ""},
    ForeignFlag{"--opt", "--optimizer", ""},
    ForeignFlag{"--scheduler", "--lr-schedule", ""},
    ForeignFlag{"--lr-scheduler", "--lr-schedule", ""},
    ForeignFlag{"--milestones", "--lr-milestones", ""},
    ForeignFlag{"--gamma", "--lr-factor", ""},
    ForeignFlag{"--warmup", "--warmup-epochs", ""},
    ForeignFlag{"--gpu", "--devices", "--devices cuda"},
    ForeignFlag{"--gpus", "--devices", "--devices cuda --replicas N"},
    ForeignFlag{"--num-gpus", "--devices", "--devices cuda --replicas N"},
    ForeignFlag{"--ngpus", "--devices", "--devices cuda --replicas N"},
    ForeignFlag{"--cuda", "--devices", "--devices cuda"},
    ForeignFlag{"--no-cuda", "--devices", "--devices cpu"},
    ForeignFlag{"--device", "--devices", ""},
    ForeignFlag{"--amp", "--precision", "--precision bf16"},
    ForeignFlag{"--fp16", "--precision", "--precision fp16"},
    ForeignFlag{"--bf16", "--precision", "--precision bf16"},
    ForeignFlag{"--mixed-precision", "--precision", "--precision bf16"},
    ForeignFlag{"--dtype", "--precision", ""},
    ForeignFlag{"--batch", "--batch-size", ""},
    ForeignFlag{"--bs", "--batch-size", ""},
    ForeignFlag{"-b", "--batch-size", ""},
    ForeignFlag{"--global-batch-size", "--batch-size", ""},
    ForeignFlag{"--train-batch-size", "--batch-size", ""},
    ForeignFlag{"--local-batch-size", "--batch-size-per-replica", ""},
    ForeignFlag{"--per-device-train-batch-size", "--batch-size-per-replica", ""},
    ForeignFlag{"-e", "--epochs", ""},
    ForeignFlag{"--num-epochs", "--epochs", ""},
    ForeignFlag{"--num-train-epochs", "--epochs", ""},
    ForeignFlag{"--max-epochs", "--epochs", ""},
    ForeignFlag{"--train-steps", "--steps", ""},
    ForeignFlag{"--max-steps", "--steps", ""},
    ForeignFlag{"--num-steps", "--steps", ""},
    ForeignFlag{"--iterations", "--steps", ""},
    ForeignFlag{"--arch", "--model", ""},
    ForeignFlag{"-a", "--model", ""},
    ForeignFlag{"-m", "--model", ""},
    ForeignFlag{"--net", "--model", ""},
    ForeignFlag{"--network", "--model", ""},
    ForeignFlag{"--dataset", "--data", ""},
    ForeignFlag{"--data-dir", "--data", "--data mnist:DIR"},
    ForeignFlag{"--data-path", "--data", "--data mnist:DIR"},
    ForeignFlag{"--random-seed", "--seed", ""},
    ForeignFlag{"--num-workers", "--workers", ""},
    ForeignFlag{"--num-workers", "--input-threads", "--input-threads N"},
    ForeignFlag{"-j", "--input-threads", ""},
    ForeignFlag{"--workers", "--world-size", "syncopate launch --workers N -- train ..."},
    ForeignFlag{"--nproc-per-node", "--world-size", "syncopate launch --workers N -- train ..."},
    ForeignFlag{"--num-proc", "--world-size", "syncopate launch --workers N -- train ..."},
    ForeignFlag{"-np", "--world-size", "syncopate launch --workers N -- train ..."},
    ForeignFlag{"-n", "--world-size", "syncopate launch --workers N -- train ..."},
    ForeignFlag{"--ps-hosts", "--rendezvous", "--rendezvous HOST:PORT"},
    ForeignFlag{"--worker-hosts", "--rendezvous", "--rendezvous HOST:PORT"},
    ForeignFlag{"--task-index", "--rank", ""},
    ForeignFlag{"--num-threads", "--threads", ""},
    ForeignFlag{"--backend", "--collective", ""},
    ForeignFlag{"--dist-backend", "--collective", ""},
    ForeignFlag{"--all-reduce-alg", "--collective", ""},
    ForeignFlag{"--distribution-strategy", "--strategy", ""},
    ForeignFlag{"--distribute", "--strategy", ""},
    ForeignFlag{"--sync-bn", "--batch-norm", "--batch-norm sync"},
    ForeignFlag{"--node-rank", "--rank", ""},
    ForeignFlag{"--nnodes", "--world-size", ""},
    ForeignFlag{"--dist-url", "--rendezvous", "--rendezvous HOST:PORT"},
    ForeignFlag{"--init-method", "--rendezvous", "--rendezvous HOST:PORT"},
    ForeignFlag{"--master-addr", "--rendezvous", "--rendezvous HOST:PORT"},
    ForeignFlag{"--master-port", "--rendezvous", "--rendezvous HOST:PORT"},
    ForeignFlag{"--rdzv-endpoint", "--rendezvous", "--rendezvous HOST:PORT"},
    ForeignFlag{"--nproc-per-node", "--workers", ""},
    ForeignFlag{"--num-proc", "--workers", ""},
    ForeignFlag{"-np", "--workers", ""},
    ForeignFlag{"-n", "--workers", ""},
    ForeignFlag{"--max-restarts", "--restart", ""},
    ForeignFlag{"--ps", "--servers", ""},
    ForeignFlag{"--num-ps", "--servers", ""},
    ForeignFlag{"--num-servers", "--servers", ""},
    ForeignFlag{"--ntasks-per-node", "--tasks-per-node", ""},
    ForeignFlag{"--output-dir", "--checkpoint-dir", ""},
    ForeignFlag{"--model-dir", "--checkpoint-dir", ""},
    ForeignFlag{"--save-dir", "--checkpoint-dir", ""},
    ForeignFlag{"--pretrained", "--init-from", "--init-from CHECKPOINT"},
    ForeignFlag{"--weights", "--init-from", "--init-from CHECKPOINT"},
    ForeignFlag{"--json", "--report", "--report DIR"},
    ForeignFlag{"--output", "--report", "--report DIR"},
    ForeignFlag{"--output-dir", "--report", "--report DIR"},
    ForeignFlag{"--json", "--metrics", "--metrics FILE"},
    ForeignFlag{"--output", "--checkpoint-dir", ""},
    ForeignFlag{"--log-dir", "--tensorboard", ""},
    ForeignFlag{"--logdir", "--tensorboard", ""},
    ForeignFlag{"--compression", "--compress", ""},
    ForeignFlag{"--fp16-allreduce", "--compress", ""},
};

// A ForeignValue maps a value of another program to ours; `typed` is in lower case with - for _.
struct ForeignValue {
  std::string_view flag;
  std::string_view typed;
  std::string_view ours;
};

constexpr std::array kForeignValues = {
    ForeignValue{"--strategy", "ps", "parameter-server"},
    ForeignValue{"--strategy", "parameterserverstrategy", "parameter-server"},
    ForeignValue{"--strategy", "async", "parameter-server"},
    ForeignValue{"--strategy", "horovod", "multi-worker-mirrored"},
    ForeignValue{"--strategy", "hvd", "multi-worker-mirrored"},
    ForeignValue{"--strategy", "ddp", "multi-worker-mirrored"},
    ForeignValue{"--strategy", "distributeddataparallel", "multi-worker-mirrored"},
    ForeignValue{"--strategy", "multiworkermirroredstrategy", "multi-worker-mirrored"},
    ForeignValue{"--strategy", "multiworkermirrored", "multi-worker-mirrored"},
    ForeignValue{"--strategy", "multi-worker", "multi-worker-mirrored"},
    ForeignValue{"--strategy", "collectiveallreduce", "multi-worker-mirrored"},
    ForeignValue{"--strategy", "allreduce", "multi-worker-mirrored"},
    ForeignValue{"--strategy", "all-reduce", "multi-worker-mirrored"},
    ForeignValue{"--strategy", "mirroredstrategy", "mirrored"},
    ForeignValue{"--strategy", "dataparallel", "mirrored"},
    ForeignValue{"--strategy", "data-parallel", "mirrored"},
    ForeignValue{"--strategy", "dp", "mirrored"},
    ForeignValue{"--strategy", "centralstoragestrategy", "central-storage"},
    ForeignValue{"--strategy", "onedevicestrategy", "one-device"},
    ForeignValue{"--strategy", "default", "one-device"},
    ForeignValue{"--collective", "gloo", "ring"},
    ForeignValue{"--collective", "tcp", "ring"},
    ForeignValue{"--optimizer", "nesterov", "momentum"},
    ForeignValue{"--consistency", "asynchronous", "async"},
    ForeignValue{"--consistency", "asp", "async"},
    ForeignValue{"--consistency", "bsp", "sync"},
    ForeignValue{"--consistency", "synchronous", "sync"},
    ForeignValue{"--consistency", "bounded", "ssp"},
};

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
  for (const ForeignValue& row : kForeignValues) {
    const bool is_known = std::ranges::find(names, row.ours) != names.end();
    if (row.flag == flag && row.typed == plain(typed) && is_known) {
      return list_after(row.ours, names);
    }
  }
  return suggest(typed, names);
}

std::optional<std::string> flag_meant_by(std::string_view typed,
                                         const std::vector<std::string_view>& flags) {
  for (const ForeignFlag& row : kForeignFlags) {
    if (row.typed != plain(typed) || std::ranges::find(flags, row.ours) == flags.end()) continue;
    return std::string(row.advice.empty() ? row.ours : row.advice);
  }
  if (const auto nearest = nearest_name(typed, flags)) return std::string(*nearest);
  return std::nullopt;
}

}  // namespace syncopate
