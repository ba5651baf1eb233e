// The order in which a shard applied gradients and handed out values, as --record writes it: one
// file per start of a shard. With the seed and the job's flags (the declaration) it is all that
// timing decided, so a run can be computed again bit for bit: who computed which batch from which
// versions, and which gradient came when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/base/file_descriptor.h"
#include "models/tensor/parameter_arena.h"
#include "ps/coordinator/ledger.h"
#include "ps/shard/consistency.h"

namespace syncopate::ps {

struct OrderHeader {
  int shard = 0;
  int servers = 1;
  std::uint32_t incarnation = 0;  // of the shard: one that starts anew writes a new file
  std::uint64_t fingerprint = 0;  // of the declaration; the same in all files of a job
  std::vector<Bucket> buckets;    // of the arena; bucket b of an entry is buckets[b]
  std::string declaration;        // the job's, as it travels (wire::DeclarationT encoded)
  bool operator==(const OrderHeader&) const = default;
};

struct OrderEntry {
  enum class Kind : std::uint16_t {
    kWritten = 1,  // the values were written from outside: the first ones, or those of a cut
    kApplied = 2,  // a push is in the values; under kSync all of an update have one version_after
    kAnswered = 3  // values were handed out
  };
  Kind kind = Kind::kApplied;
  WorkerId worker = 0;  // kApplied, kAnswered
  std::uint32_t incarnation = 0;
  BucketId bucket = 0;
  std::uint64_t sequence = 0;       // kApplied; kAnswered: of the push it answers; 0: a pull
  std::uint64_t version_read = 0;   // kApplied: of the values that the gradient is of
  std::uint64_t version_after = 0;  // kWritten, kApplied; kAnswered: of the values
  std::uint64_t staleness = 0;      // kApplied
  float learning_rate = 0.0F;       // kApplied
  // kApplied, when it ends a step (on shard 0); lanes 0: it does not.
  int lanes = 0;  // that the worker computed with: they fix its order of additions
  SampleRange batch;
  bool operator==(const OrderEntry&) const = default;
};

// "run.order.shard0"; from the second incarnation on "run.order.shard0.2".
std::string order_record_path(const std::string& file, int shard, std::uint32_t incarnation);

// Writes a new file in place of any that is there. One thread at a time.
class OrderRecordWriter {
 public:
  // Throws FileError.
  OrderRecordWriter(std::string path, const OrderHeader& header);
  OrderRecordWriter(const OrderRecordWriter&) = delete;
  OrderRecordWriter& operator=(const OrderRecordWriter&) = delete;
  ~OrderRecordWriter();  // flushes; logs what fails

  // Buffered. Throws FileError once, when the disk is full, say: what comes later is not kept, so
  // that training may go on.
  void append(const OrderEntry& entry);
  // All entries so far survive the end of this process. Throws as append().
  void flush();

 private:
  std::string path_;
  FileDescriptor file_;  // none after an error
  std::vector<std::byte> buffer_;
};

struct OrderRecord {
  OrderHeader header;
  std::vector<OrderEntry> entries;  // as they happened
  // The last entry was not written to its end, as when a server is killed; it is left out.
  bool is_cut_short = false;
};

// Throws FileError when the file cannot be read, is none of ours, or was changed.
OrderRecord read_order_record(const std::string& path);

}  // namespace syncopate::ps
