#include "tests/ps/server/served_job.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include <algorithm>

#include "models/tensor/parameter_arena.h"

namespace syncopate::ps::testing {
namespace {

constexpr std::chrono::milliseconds kTimeout(10000);

ArenaLayout layout_of(const JobShape& shape) {
  std::vector<ArenaEntry> entries;
  for (std::size_t b = 0; b < shape.bucket_sizes.size(); ++b) {
    for (int v = 0; v < shape.variables_of_bucket; ++v) {
      entries.push_back(
          {fmt::format("layer.{}.block.{}.weight", b, v), {shape.bucket_sizes[b]}, true});
    }
  }
  return ArenaLayout(std::move(entries));
}

FileDescriptor listen_anywhere(Endpoint& where) {
  FileDescriptor descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  bind(descriptor.get(), any, sizeof address);
  listen(descriptor.get(), 64);
  getsockname(descriptor.get(), any, &size);
  where = {"127.0.0.1", ntohs(address.sin_port)};
  return descriptor;
}

}  // namespace

std::int64_t total_elements(const JobShape& shape) { return layout_of(shape).total(); }

wire::DeclarationT declaration_of(const JobShape& shape) {
  wire::DeclarationT declaration;
  const ArenaLayout layout = layout_of(shape);
  for (const ArenaEntry& entry : layout.entries()) {
    auto variable = std::make_unique<wire::VariableT>();
    variable->name = entry.name;
    variable->shape = entry.shape;
    variable->decays = true;
    declaration.variables.push_back(std::move(variable));
  }
  const auto variables = static_cast<std::size_t>(shape.variables_of_bucket);
  for (std::size_t b = 0; b < shape.bucket_sizes.size(); ++b) {
    const std::size_t last = (b + 1) * variables - 1;
    declaration.buckets.emplace_back(layout.offset(b * variables),
                                     layout.offset(last) + layout.size(last),
                                     static_cast<int>(b) % shape.servers);
  }
  declaration.state_elements = shape.state_elements;
  declaration.optimizer = shape.optimizer;
  declaration.optimizer_constants = {0.9, 0.9, 0.999, 1e-8, 0.0};
  declaration.consistency = static_cast<std::uint8_t>(shape.consistency);
  declaration.max_staleness = shape.max_staleness;
  declaration.backup_workers = shape.backup_workers;
  declaration.quorum = shape.quorum;
  declaration.grace = shape.grace;
  declaration.bf16_values = shape.bf16_values;
  declaration.workers = shape.workers;
  declaration.dataset_size = shape.dataset_size;
  declaration.batch_size = shape.batch_size;
  declaration.total_steps = shape.total_steps;
  return declaration;
}

ServedJob::ServedJob(const JobShape& shape) : failures_(static_cast<std::size_t>(shape.servers)) {
  FileDescriptor listening = listen_anywhere(rendezvous_);
  for (int index = 0; index < shape.servers; ++index) {
    ServerOptions options{.index = index,
                          .workers = shape.workers,
                          .servers = shape.servers,
                          .rendezvous = rendezvous_,
                          .listening = {},
                          .nonce = shape.nonce,
                          .threads = 2,
                          .snapshot_dir = {},
                          .record = {},
                          .rendezvous_timeout = kTimeout,
                          .join_timeout = shape.join_timeout,
                          .peer_timeout = shape.peer_timeout};
    if (index == 0) options.listening = std::move(listening);
    threads_.emplace_back(
        [this, options = std::move(options)]() mutable { serve(std::move(options)); });
  }
}

void ServedJob::serve(ServerOptions options) {
  const auto index = static_cast<std::size_t>(options.index);
  try {
    run_server(
        std::move(options), [this] { return stop_.load(); },
        [this](const std::string& line) {
          const std::lock_guard lock(mutex_);
          notes_.push_back(line);
          noted_.notify_all();
        });
  } catch (const std::exception& error) {
    failures_[index] = error.what();
  }
}

std::vector<std::string> ServedJob::wait() {
  for (std::jthread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  return failures_;
}

bool ServedJob::has_noted(const std::string& beginning, std::chrono::seconds timeout) const {
  std::unique_lock lock(mutex_);
  return noted_.wait_for(lock, timeout, [&] {
    return std::ranges::any_of(
        notes_, [&](const std::string& line) { return line.starts_with(beginning); });
  });
}

ServedJob::~ServedJob() {
  stop_ = true;
  wait();
}

TestWorker::TestWorker(const JobShape& shape, const ServedJob& job, int index,
                       const CompressionOptions& compression)
    : values(static_cast<std::size_t>(total_elements(shape))),
      gradients(static_cast<std::size_t>(total_elements(shape))),
      shape_(shape) {
  client = std::make_unique<Client>(ClientOptions{.index = index,
                                                  .workers = shape.workers,
                                                  .servers = shape.servers,
                                                  .rendezvous = job.rendezvous(),
                                                  .nonce = shape.nonce,
                                                  .declaration = declaration_of(shape),
                                                  .compression = compression,
                                                  .values = values,
                                                  .gradients = gradients,
                                                  .segment = "",
                                                  .rendezvous_timeout = kTimeout});
}

void TestWorker::begin(float first) {
  if (client->initialises()) {
    std::ranges::fill(values, first);
    client->write_variables(values, {}, 0);
    client->write_state(std::vector<float>(static_cast<std::size_t>(shape_.state_elements)));
    client->initialised({});
  }
  client->wait_start();
  client->pull();
  client->flush();
}

void TestWorker::step(float gradient, const SampleRange& batch) {
  std::ranges::fill(gradients, gradient);
  client->begin_step(
      {.learning_rate = 1.0F, .batches = {batch}, .samples = 1, .stops = {}, .state = {}});
  for (std::size_t b = 0; b < shape_.bucket_sizes.size(); ++b) client->push(static_cast<int>(b));
  client->finish_step();
  client->flush();
}

float TestWorker::value(int bucket) const {
  const wire::DeclarationT declaration = declaration_of(shape_);
  return values[static_cast<std::size_t>(
      declaration.buckets[static_cast<std::size_t>(bucket)].begin())];
}

}  // namespace syncopate::ps::testing
