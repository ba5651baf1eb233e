#include "bench/compare/virtual/recorded_job.h"

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/shard/consistency.h"

namespace syncopate::bench {
namespace {

using Kind = ps::OrderEntry::Kind;

ps::wire::DeclarationT declaration_of(const std::filesystem::path& file,
                                      const ps::OrderHeader& header) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(header.declaration.data());
  flatbuffers::Verifier verifier(bytes, header.declaration.size());
  if (!verifier.VerifyBuffer<ps::wire::Declaration>(nullptr)) {
    throw FileError(file.string() + ": the declaration of the job in it is damaged");
  }
  ps::wire::DeclarationT declaration;
  flatbuffers::GetRoot<ps::wire::Declaration>(bytes)->UnPackTo(&declaration);
  return declaration;
}

void check_headers(const std::vector<RecordedJob::RecordedShard>& shards) {
  const ps::OrderHeader& first = shards.front().record.header;
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const ps::OrderHeader& header = shards[s].record.header;
    const std::string file = shards[s].file.string();
    if (header.fingerprint != first.fingerprint) {
      throw UsageError(file + " and " + shards.front().file.string() + " are of different jobs");
    }
    if (header.incarnation != 1) {
      throw UsageError(file +
                       ": the server was started anew in the middle of the job; only a job "
                       "whose servers stayed can be replayed");
    }
    if (header.shard != static_cast<int>(s) || std::cmp_not_equal(header.servers, shards.size())) {
      throw UsageError("the job had " + std::to_string(header.servers) + " servers, and the " +
                       std::to_string(shards.size()) +
                       " records given are not one of each; give FILE.shard0 to FILE.shard" +
                       std::to_string(header.servers - 1));
    }
  }
}

void check_kind(const ps::wire::DeclarationT& declaration) {
  if (ps::consistency_of(declaration) == ps::Consistency::kSync) {
    throw UsageError(
        "the record is of a job under --consistency sync; only async and ssp are replayed");
  }
}

void take_entries(RecordedJob& job, const RecordedJob::RecordedShard& shard) {
  std::map<BucketId, bool> was_pushed_to;
  for (const ps::OrderEntry& entry : shard.record.entries) {
    if (entry.kind == Kind::kWritten && (entry.version_after != 1 || was_pushed_to[entry.bucket])) {
      throw UsageError(shard.file.string() +
                       ": values came from a checkpoint; only a job that began with the seed's "
                       "first values can be replayed");
    }
    if (entry.kind != Kind::kApplied) continue;
    was_pushed_to[entry.bucket] = true;
    RecordedPush& push = job.pushes[{entry.worker, entry.incarnation, entry.sequence}];
    push.versions_read.resize(job.placement.buckets.size());
    const int bucket = shard.job_bucket[static_cast<std::size_t>(entry.bucket)];
    push.versions_read[static_cast<std::size_t>(bucket)] = entry.version_read;
    if (entry.lanes == 0) continue;
    push.lanes = entry.lanes;
    push.batch = entry.batch;
  }
}

}  // namespace

const std::string& RecordedJob::agreed(const std::string& flag) const {
  const auto at = std::ranges::find_if(
      declaration.agreements, [&](const auto& agreement) { return agreement->name == flag; });
  if (at == declaration.agreements.end()) {
    throw UsageError(shards.front().file.string() + ": does not say what the job's " + flag +
                     " was; was it recorded by another version?");
  }
  return (*at)->value;
}

RecordedJob read_recorded_job(std::span<const std::filesystem::path> files) {
  if (files.empty()) throw UsageError("no order record given; give FILE.shard0 and the others");
  RecordedJob job;
  for (const std::filesystem::path& file : files) {
    job.shards.push_back({file, ps::read_order_record(file.string()), {}});
  }
  std::ranges::sort(job.shards, {}, [](const auto& shard) { return shard.record.header.shard; });
  check_headers(job.shards);
  job.declaration = declaration_of(job.shards.front().file, job.shards.front().record.header);
  check_kind(job.declaration);
  for (std::size_t b = 0; b < job.declaration.buckets.size(); ++b) {
    const ps::wire::BucketPlace& place = job.declaration.buckets[b];
    if (place.owner() < 0 || std::cmp_greater_equal(place.owner(), job.shards.size())) {
      throw FileError(job.shards.front().file.string() + ": a bucket of server " +
                      std::to_string(place.owner()) + ", which the job did not have");
    }
    job.placement.buckets.push_back({place.begin(), place.end()});
    job.placement.owner.push_back(place.owner());
    job.shards[static_cast<std::size_t>(place.owner())].job_bucket.push_back(static_cast<int>(b));
  }
  for (const RecordedJob::RecordedShard& shard : job.shards) {
    if (shard.job_bucket.size() != shard.record.header.buckets.size()) {
      throw FileError(shard.file.string() + ": its buckets are not those that the job declared");
    }
    take_entries(job, shard);
  }
  return job;
}

}  // namespace syncopate::bench
