#include "bench/ps/ps_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "ps/server/server.h"
#include "ps/shard/consistency.h"

namespace syncopate::bench {
namespace {

constexpr const char* kNonce = "syncopate-bench";
constexpr int kMostUpdateThreads = 4;
// The learning rate is a power of two and gradients are small whole numbers, so the result of SGD
// is exact in f32.
constexpr float kSgdRate = 0x1p-6F;
constexpr std::int64_t kPeriod = 7;
constexpr float kAdamRate = 0x1p-10F;
// With a constant gradient, Adam changes a value by the learning rate in each update. The tolerance
// covers the rounding errors of a hundred thousand additions.
constexpr float kAdamTolerance = 0.05F;

float gradient_at(std::int64_t element) { return static_cast<float>(1 + element % kPeriod); }

ArenaLayout layout_of(const ExchangeShape& shape) {
  const std::size_t each = shape.variable_bytes > 0 ? shape.variable_bytes : shape.bytes;
  std::vector<ArenaEntry> entries;
  for (std::size_t at = 0; at < shape.bytes; at += each) {
    const auto elements =
        static_cast<std::int64_t>(std::min(each, shape.bytes - at) / sizeof(float));
    entries.push_back({std::to_string(entries.size()), {elements}, false});
  }
  return ArenaLayout(std::move(entries));
}

ps::CompressionOptions compression_of(const PsJobOptions& options) {
  return ps::parse_compression(options.compression, "--compress");
}
ps::ValuesFormat values_format_of(const PsJobOptions& options) {
  return ps::values_format(compression_of(options));
}

ps::wire::DeclarationT declare(const PsJobOptions& options, const ArenaLayout& layout,
                               const ps::Placement& placement) {
  ps::wire::DeclarationT declaration;
  for (const ArenaEntry& entry : layout.entries()) {
    auto variable = std::make_unique<ps::wire::VariableT>();
    variable->name = entry.name;
    variable->shape = entry.shape;
    declaration.variables.push_back(std::move(variable));
  }
  for (std::size_t b = 0; b < placement.buckets.size(); ++b) {
    declaration.buckets.emplace_back(placement.buckets[b].begin, placement.buckets[b].end,
                                     placement.owner[b]);
  }
  declaration.optimizer = options.optimizer;
  declaration.optimizer_constants = {0.9, 0.9, 0.999, 1e-8, 0.0};
  declaration.consistency = static_cast<std::uint8_t>(
      options.consistency == "sync" ? ps::Consistency::kSync : ps::Consistency::kAsync);
  declaration.bf16_values = values_format_of(options) == ps::ValuesFormat::kBf16;
  declaration.workers = options.workers;
  // The benchmark trains on no samples. The only batch of the data set ends the job.
  declaration.dataset_size = 1;
  declaration.batch_size = 1;
  declaration.total_steps = 1;
  return declaration;
}

}  // namespace

PsJobServer::PsJobServer(const PsJobOptions& options, int index, const Endpoint& rendezvous,
                         FileDescriptor listening) {
  const int threads = std::clamp(usable_cpu_count(), 1, kMostUpdateThreads);
  ps::ServerOptions server{.index = index,
                           .workers = options.workers,
                           .servers = options.servers,
                           .rendezvous = rendezvous,
                           .listening = std::move(listening),
                           .nonce = kNonce,
                           .threads = threads,
                           .snapshot_dir = {},
                           .record = {},
                           .uses_segments = !options.tcp};
  thread_ = std::jthread([this, server = std::move(server)]() mutable {
    try {
      ps::run_server(
          std::move(server), [this] { return stop_.load(); }, [](const std::string&) {});
    } catch (...) {
      failure_ = std::current_exception();
    }
  });
}

PsJobServer::~PsJobServer() { stop_ = true; }

void PsJobServer::wait() {
  thread_.join();
  if (failure_) std::rethrow_exception(failure_);
}

PsJobWorker::PsJobWorker(const PsJobOptions& options, const ExchangeShape& shape, int index,
                         const Endpoint& rendezvous)
    : options_(options) {
  const ArenaLayout layout = layout_of(shape);
  placement_ = ps::place_variables(
      layout, {.servers = options.servers,
               .partition = {},
               .message_bytes = static_cast<std::int64_t>(shape.message_bytes)});
  if (options.tcp) {
    values_ = make_host_tensor({layout.total()}, DType::kF32);
    gradients_ = make_host_tensor({layout.total()}, DType::kF32);
  } else {
    segment_ = std::make_unique<ps::SegmentOwner>(layout.total(), kNonce);
    values_ = segment_->values();
    gradients_ = segment_->gradients();
  }
  is_padding_.assign(static_cast<std::size_t>(layout.total()), true);
  for (std::size_t i = 0; i < layout.entries().size(); ++i) {
    for (std::int64_t at = layout.offset(i); at < layout.offset(i) + layout.size(i); ++at) {
      is_padding_[static_cast<std::size_t>(at)] = false;
      gradients_.f32()[static_cast<std::size_t>(at)] = gradient_at(at);
    }
  }
  client_ = std::make_unique<ps::Client>(
      ps::ClientOptions{.index = index,
                        .workers = options.workers,
                        .servers = options.servers,
                        .rendezvous = rendezvous,
                        .nonce = kNonce,
                        .declaration = declare(options, layout, placement_),
                        .compression = compression_of(options),
                        .values = values_.f32(),
                        .gradients = gradients_.f32(),
                        .segment = segment_ == nullptr ? "" : segment_->name(),
                        .requires_segment = !options.tcp});
  if (client_->initialises()) {
    client_->write_variables(values_.f32(), {}, 0);
    client_->initialised({});
  }
  client_->wait_start();
  client_->pull();
  client_->flush();
}

void PsJobWorker::exchange(const ps::SampleRange& batch) {
  client_->begin_step({.learning_rate = options_.optimizer == "sgd" ? kSgdRate : kAdamRate,
                       .batches = {batch},
                       .stops = {},
                       .state = {}});
  for (std::size_t b = 0; b < placement_.buckets.size(); ++b) client_->push(static_cast<int>(b));
  client_->finish_step();
  client_->flush();
}

void PsJobWorker::require_values(std::int64_t exchanges) {
  client_->pull();
  client_->flush();
  const bool is_sgd = options_.optimizer == "sgd";
  const bool is_sync = options_.consistency == "sync";
  // Adam's update does not grow with the gradient, so the sum of several workers' gradients counts
  // as one update.
  const std::int64_t updates = is_sync && !is_sgd ? exchanges : exchanges * options_.workers;
  for (std::size_t i = 0; i < is_padding_.size(); ++i) {
    if (is_padding_[i]) continue;
    const float gradient = is_sgd ? gradient_at(static_cast<std::int64_t>(i)) : 1.0F;
    float expected = -(is_sgd ? kSgdRate : kAdamRate) * gradient * static_cast<float>(updates);
    ps::round_to(values_format_of(options_), {&expected, 1});
    const float found = values_.f32()[i];
    if (std::abs(found - expected) <= (is_sgd ? 0.0F : kAdamTolerance * std::abs(expected))) {
      continue;
    }
    throw PeerError(
        fmt::format("a wrong value after {} exchanges: element {} is {:f}, expected {:f}",
                    exchanges, i, found, expected));
  }
}

void PsJobWorker::end() {
  if (options_.consistency != "sync") {
    while (const auto batch = client_->next_lease()) exchange(*batch);
    while (const auto assignment = client_->wait_assignment())
      client_->complete_assignment(assignment->snapshot);
  }
  client_->leave();
}

}  // namespace syncopate::bench
