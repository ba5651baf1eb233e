#include "ps/server/service_record.h"

#include <string>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate::ps {
namespace {

OrderHeader header_of(int shard, int servers, std::uint32_t incarnation,
                      const ServedVariables& served) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::Declaration::Pack(builder, &served.declaration));
  return {.shard = shard,
          .servers = servers,
          .incarnation = incarnation,
          .fingerprint = served.fingerprint,
          .buckets = served.shard->buckets(),
          .declaration = {reinterpret_cast<const char*>(builder.GetBufferPointer()),
                          builder.GetSize()}};
}

}  // namespace

ServiceRecord::ServiceRecord(const std::filesystem::path& file, int shard, int servers,
                             std::uint32_t incarnation, const ServedVariables& served)
    : writer_(order_record_path(file.string(), shard, incarnation),
              header_of(shard, servers, incarnation, served)) {
  for (std::size_t b = 0; b < served.shard->buckets().size(); ++b) {
    const auto bucket = static_cast<BucketId>(b);
    if (const std::uint64_t version = served.shard->view(bucket).version; version > 0) {
      written(bucket, version);
    }
  }
}

void ServiceRecord::written(BucketId bucket, std::uint64_t version) {
  append({.kind = OrderEntry::Kind::kWritten, .bucket = bucket, .version_after = version});
}

template <typename Action>
void ServiceRecord::attempt(Action action) {
  try {
    action();
  } catch (const FileError& error) {
    log(LogLevel::kWarning, std::string("the record ends here: ") + error.what());
  }
}

void ServiceRecord::append(const OrderEntry& entry) {
  attempt([&] { writer_.append(entry); });
}

void ServiceRecord::flush() {
  attempt([this] { writer_.flush(); });
}

void ServiceRecord::applied(const ShardEvent& event, std::uint32_t worker_incarnation,
                            const wire::PushT& push) {
  OrderEntry entry{.kind = OrderEntry::Kind::kApplied,
                   .worker = event.worker,
                   .incarnation = worker_incarnation,
                   .bucket = event.bucket,
                   .sequence = event.sequence,
                   .version_read = push.version,
                   .version_after = event.version,
                   .staleness = event.staleness,
                   .learning_rate = push.learning_rate};
  if (push.ends_step && push.batch) {
    entry.lanes = push.lanes;
    entry.batch = {push.batch->epoch(), push.batch->begin(), push.batch->end()};
  }
  append(entry);
}

void ServiceRecord::answered(const ShardEvent& event, std::uint32_t worker_incarnation) {
  append({.kind = OrderEntry::Kind::kAnswered,
          .worker = event.worker,
          .incarnation = worker_incarnation,
          .bucket = event.bucket,
          .sequence = event.sequence,
          .version_after = event.version});
}

}  // namespace syncopate::ps
