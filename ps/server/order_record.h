// The record that --record writes: a list of the gradients that a shard applied and the values that
// it sent, in order. There is one file per start of a shard. The record has the worker of each
// batch, the versions that the worker read, and the order of the gradients. Together with the seed
// and the declaration, the record determines the run bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"
#include "models/tensor/parameter_arena.h"
#include "ps/coordinator/ledger.h"
#include "ps/shard/consistency.h"
#include "ps/shard/shard_requests.h"

namespace syncopate::ps {

namespace wire {
struct PushT;
}
struct ServedVariables;

struct OrderHeader {
  int shard = 0;
  int servers = 1;
  std::uint32_t incarnation = 0;  // of the shard; each incarnation writes its own file
  std::uint64_t fingerprint = 0;  // hash of the declaration; equal in all files of a job
  std::vector<Bucket> buckets;    // ranges of the arena; bucket b of an entry is buckets[b]
  std::string declaration;        // the encoded wire::Declaration
  bool operator==(const OrderHeader&) const = default;
};

struct OrderEntry {
  enum class Kind : std::uint16_t {
    kWritten = 1,   // the values were replaced by initial values or a snapshot's values
    kApplied = 2,   // a push was applied; under kSync all pushes of an update share version_after
    kAnswered = 3,  // values were sent to a worker
    kDropped = 4,   // a push came too late and was dropped
    // A batch of a displacement, in the order in which the worker trained them. The push's own
    // entry follows, on shard 0.
    kInnerStep = 5
  };
  Kind kind = Kind::kApplied;
  WorkerId worker = 0;  // set for all kinds but kWritten
  std::uint32_t incarnation = 0;
  BucketId bucket = 0;
  std::uint64_t sequence = 0;  // of the push; 0 for a pull
  // For kApplied and kDropped: the version of the values from which the worker computed the
  // gradient.
  std::uint64_t version_read = 0;
  // The version of the bucket afterwards. For kAnswered: the version that was sent.
  std::uint64_t version_after = 0;
  std::uint64_t staleness = 0;  // set for kApplied
  // Set for kApplied and kDropped; for kInnerStep, the worker's own learning rate.
  float learning_rate = 0.0F;
  // `lanes` and `batch` are set for kInnerStep, and for kApplied and kDropped on shard 0 if the
  // push ends a step. Otherwise `lanes` is 0. A displacement's own entry has its first batch.
  int lanes = 0;  // number of lanes (threads) of the worker's replica, which determines its order
                  // of additions
  SampleRange batch;
  bool operator==(const OrderEntry&) const = default;
};

// Returns the path of a shard's record. For file "run.order" and shard 0 it is "run.order.shard0",
// and "run.order.shard0.2" for incarnation 2; later incarnations follow this pattern.
std::string order_record_path(const std::string& file, int shard, std::uint32_t incarnation);

// Writes an order record, and replaces an existing file. Used by one thread at a time.
class OrderRecordWriter {
 public:
  // Opens the record and writes its header. Throws FileError.
  OrderRecordWriter(std::string path, const OrderHeader& header);
  OrderRecordWriter(const OrderRecordWriter&) = delete;
  OrderRecordWriter& operator=(const OrderRecordWriter&) = delete;
  ~OrderRecordWriter();  // flushes the buffer; logs a failure

  // Appends an entry to the buffer. Throws FileError if the file cannot be written, for example
  // because the disk is full. After the first such error, later entries are discarded without an
  // error, so that training can continue.
  void append(const OrderEntry& entry);
  // Writes the buffer to the file, so that all entries so far survive the end of this process.
  // Throws FileError like append().
  void flush();

 private:
  std::string path_;
  FileDescriptor file_;  // closed after a write error
  std::vector<std::byte> buffer_;
};

struct OrderRecord {
  OrderHeader header;
  // The entries in the order of the file. The last entry is left out if it is incomplete because
  // the server was killed.
  std::vector<OrderEntry> entries;
};

// Reads an order record. Throws FileError if the file cannot be read, is not an order record, or is
// damaged.
OrderRecord read_order_record(const std::string& path);

// Writes the order record of a server. Each event of the shard becomes an entry. Fields that the
// event does not have, such as the learning rate, come from the push. Used by one thread only. If
// the disk is full, the record ends and the server continues.
class ServiceRecord {
 public:
  // The constructor opens the record. If the shard was restored from a snapshot, it records the
  // restored versions. If `incarnation` is 1, it removes the records of higher incarnations that an
  // earlier job left under the same file name. Throws FileError.
  ServiceRecord(const std::filesystem::path& file, int shard, int servers,
                std::uint32_t incarnation, const ServedVariables& served);

  void written(BucketId bucket, std::uint64_t version);
  // Records a push that was applied or dropped.
  void processed(const ShardEvent& event, std::uint32_t worker_incarnation,
                 const wire::PushT& push);
  void answered(const ShardEvent& event, std::uint32_t worker_incarnation);
  // Writes the buffer to the file, so that all entries so far survive the end of this process.
  // Called for each snapshot, so that the records have no gap after a roll-back.
  void flush();

 private:
  void append(const OrderEntry& entry);
  template <typename Action>
  void attempt(Action action);

  OrderRecordWriter writer_;
};

}  // namespace syncopate::ps
