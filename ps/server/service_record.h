// What a server writes for --record: the shard's events with what their pushes said.
#pragma once

#include <filesystem>
#include <optional>

#include "ps/server/order_record.h"
#include "ps/server/served_variables.h"

namespace syncopate::ps {

// One thread only. A disk that is full ends the record, not the server.
class ServiceRecord {
 public:
  // Begins with the versions of a shard that went back to a snapshot. Throws FileError.
  ServiceRecord(const std::filesystem::path& file, int shard, int servers,
                std::uint32_t incarnation, const ServedVariables& served);

  void written(BucketId bucket, std::uint64_t version);
  void applied(const ShardEvent& event, std::uint32_t worker_incarnation, const wire::PushT& push);
  void answered(const ShardEvent& event, std::uint32_t worker_incarnation);
  // All so far outlives this process: from any cut that is kept, the record goes on without a gap.
  void flush();

 private:
  void append(const OrderEntry& entry);
  template <typename Action>
  void attempt(Action action);

  OrderRecordWriter writer_;
};

}  // namespace syncopate::ps
