#include "ps/coordinator/declaration.h"

#include <fmt/format.h>

#include <sstream>
#include <string>
#include <vector>

#include "models/base/log.h"
#include "models/base/random.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

template <typename T>
std::string text_of(const T& value) {
  std::ostringstream text;
  text.precision(17);
  text << std::boolalpha << value;
  return text.str();
}
template <typename T>
std::string text_of(const std::vector<T>& values) {
  std::string text = "[";
  for (const T& value : values) text += (text.size() > 1 ? ", " : "") + text_of(value);
  return text + "]";
}

// A difference between a task's declaration and the job's: the field's name, and both values as
// text.
struct Difference {
  std::string name;
  std::string job;
  std::string found;
};

class Comparison {
 public:
  template <typename T>
  Comparison& field(const std::string& name, const T& job, const T& found) {
    if (!first_ && !(job == found)) first_ = Difference{name, text_of(job), text_of(found)};
    return *this;
  }
  const std::optional<Difference>& first() const { return first_; }

 private:
  std::optional<Difference> first_;
};

const std::string* value_of(const wire::DeclarationT& declaration, const std::string& name) {
  for (const auto& agreement : declaration.agreements) {
    if (agreement->name == name) return &agreement->value;
  }
  return nullptr;
}

std::string shown(const std::string* value) {
  if (value == nullptr) return "nothing";
  return value->empty() ? "\"\"" : *value;
}

std::string line_of(const Difference& difference, int by, int worker) {
  return fmt::format("worker {} has {} {}, the job has {} (worker {}'s)", worker, difference.name,
                     difference.found, difference.job, by);
}

std::optional<Difference> first_agreement(const wire::DeclarationT& job, int by,
                                          const wire::DeclarationT& found, int worker) {
  std::optional<Difference> first;
  const auto compare = [&](const std::string& name, bool must) {
    const std::string* const expected = value_of(job, name);
    const std::string* const value = value_of(found, name);
    if (expected != nullptr && value != nullptr && *expected == *value) return;
    const Difference difference{name, shown(expected), shown(value)};
    if (!must) {
      log(LogLevel::kWarning, line_of(difference, by, worker));
    } else if (!first) {
      first = difference;
    }
  };
  for (const auto& agreement : job.agreements) compare(agreement->name, agreement->must);
  for (const auto& agreement : found.agreements) {
    if (value_of(job, agreement->name) == nullptr) compare(agreement->name, agreement->must);
  }
  return first;
}

std::string text_of(const wire::BucketPlace& bucket) {
  return fmt::format("elements {} to {} on server {}", bucket.begin(), bucket.end(),
                     bucket.owner());
}

std::optional<Difference> first_variable(const wire::DeclarationT& job,
                                         const wire::DeclarationT& found) {
  Comparison comparison;
  comparison.field("a number of variables of", job.variables.size(), found.variables.size());
  if (comparison.first()) return comparison.first();
  for (std::size_t v = 0; v < job.variables.size(); ++v) {
    const wire::VariableT& expected = *job.variables[v];
    const wire::VariableT& variable = *found.variables[v];
    // There may be a hundred thousand variables: their texts are made for a difference only.
    if (expected.name == variable.name && expected.shape == variable.shape &&
        expected.decays == variable.decays) {
      continue;
    }
    comparison.field(fmt::format("as variable {}", v), expected.name, variable.name)
        .field("variable " + expected.name + " of shape", expected.shape, variable.shape)
        .field("weight decay of variable " + expected.name, expected.decays, variable.decays);
  }
  comparison.field("a number of buckets of", job.buckets.size(), found.buckets.size());
  if (comparison.first()) return comparison.first();
  for (std::size_t b = 0; b < job.buckets.size(); ++b) {
    const wire::BucketPlace& expected = job.buckets[b];
    const wire::BucketPlace& bucket = found.buckets[b];
    if (expected.begin() == bucket.begin() && expected.end() == bucket.end() &&
        expected.owner() == bucket.owner()) {
      continue;
    }
    comparison.field(fmt::format("as bucket {}", b), text_of(expected), text_of(bucket));
  }
  comparison.field("a number of running statistics of", job.state_elements, found.state_elements);
  return comparison.first();
}

std::string consistency_text(const wire::DeclarationT& declaration) {
  const Consistency consistency = consistency_of(declaration);
  std::string text(name(consistency));
  if (consistency == Consistency::kSync) {
    text += fmt::format(" with {} backup worker(s)", declaration.backup_workers);
  } else if (consistency == Consistency::kSsp) {
    text += fmt::format(" with staleness up to {}", declaration.max_staleness);
  } else if (consistency == Consistency::kQuorum) {
    text += fmt::format(" of {} worker(s) and {} s of grace", declaration.quorum,
                        text_of(declaration.grace));
  }
  return text;
}

std::string outer_text(const wire::DeclarationT& declaration) {
  if (declaration.outer == nullptr) return "none";
  return fmt::format("{}momentum {} in every push of {}",
                     declaration.outer->nesterov ? "Nesterov " : "",
                     text_of(declaration.outer->momentum), declaration.outer->momentum_every);
}

}  // namespace

std::uint64_t fingerprint_of(const wire::DeclarationT& declaration) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::Declaration::Pack(builder, &declaration));
  return hash_name({reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()});
}

std::optional<std::string> find_difference(const wire::DeclarationT& job, int by,
                                           const wire::DeclarationT& found, int worker) {
  std::optional<Difference> difference = first_agreement(job, by, found, worker);
  if (!difference) difference = first_variable(job, found);
  if (!difference) {
    difference =
        Comparison()
            .field("the optimizer", job.optimizer, found.optimizer)
            .field("optimizer constants", job.optimizer_constants, found.optimizer_constants)
            .field("Nesterov momentum", job.nesterov, found.nesterov)
            .field("outer step", outer_text(job), outer_text(found))
            .field("consistency", consistency_text(job), consistency_text(found))
            .field("staleness rule", int{job.staleness_rule}, int{found.staleness_rule})
            .field("number of the staleness rule", job.staleness_number, found.staleness_number)
            .field("bf16 values", job.bf16_values, found.bf16_values)
            .field("workers", job.workers, found.workers)
            .field("dataset size", job.dataset_size, found.dataset_size)
            .field("batch size", job.batch_size, found.batch_size)
            .field("epochs", job.total_epochs, found.total_epochs)
            .field("steps", job.total_steps, found.total_steps)
            .field("epochs per evaluation", job.eval_every_epochs, found.eval_every_epochs)
            .field("steps per evaluation", job.eval_every_steps, found.eval_every_steps)
            .field("steps per checkpoint", job.checkpoint_every_steps, found.checkpoint_every_steps)
            .field("writing of checkpoints", job.writes_checkpoints, found.writes_checkpoints)
            .first();
  }
  if (!difference) return std::nullopt;
  return line_of(*difference, by, worker) + "; start all workers with the same flags";
}

}  // namespace syncopate::ps
