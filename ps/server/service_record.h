// What a server writes for --record: the shard's events with what their pushes said.
#pragma once

#include <filesystem>
#include <optional>

#include "ps/order_record.h"
#include "ps/server/served_variables.h"

namespace syncopate::ps {

// One thread only. A disk that is full ends the record, not the server.
class ServiceRecord {
 public:
  // Throws FileError.
  ServiceRecord(const std::filesystem::path& file, int shard, int servers,
                std::uint32_t incarnation, const ServedVariables& served);

  void applied(const ShardEvent& event, std::uint32_t worker_incarnation, const wire::PushT& push);
  void answered(const ShardEvent& event, std::uint32_t worker_incarnation);

 private:
  void append(const OrderEntry& entry);

  OrderRecordWriter writer_;
};

}  // namespace syncopate::ps
