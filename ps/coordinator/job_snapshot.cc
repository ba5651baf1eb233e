#include "ps/coordinator/job_snapshot.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/base/errors.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

using nlohmann::json;

constexpr int kJobSnapshotFormat = 4;

json json_of(std::span<const SampleRange> ranges) {
  json all = json::array();
  for (const SampleRange& range : ranges) all.push_back({range.epoch, range.begin, range.end});
  return all;
}

std::vector<SampleRange> ranges_of(const json& saved) {
  std::vector<SampleRange> ranges;
  for (const json& range : saved) ranges.push_back({range.at(0), range.at(1), range.at(2)});
  return ranges;
}

json json_of(std::span<const CollectedBatch> batches) {
  json all = json::array();
  for (const auto& [samples, loss, version] : batches) {
    all.push_back({samples.epoch, samples.begin, samples.end, loss, version});
  }
  return all;
}

std::vector<CollectedBatch> collected_of(const json& saved) {
  std::vector<CollectedBatch> batches;
  for (const json& one : saved) {
    batches.push_back({{one.at(0), one.at(1), one.at(2)}, one.at(3), one.at(4)});
    if (batches.back().version < 2) throw FileError("a collected batch has no version");
  }
  return batches;
}

json json_of(const DataPosition& position) {
  return {{"epoch", position.epoch},
          {"offset", position.offset},
          {"untrained", json_of(std::span(position.untrained))}};
}

DataPosition data_position_of(const json& saved) {
  return {saved.at("epoch"), saved.at("offset"), ranges_of(saved.at("untrained"))};
}

json json_of(const wire::DeclarationT& declaration) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(wire::Declaration::Pack(builder, &declaration));
  const std::span<const std::uint8_t> bytes(builder.GetBufferPointer(), builder.GetSize());
  return json::binary({bytes.begin(), bytes.end()});
}

wire::DeclarationT declaration_of(const json& saved) {
  const auto& bytes = saved.get_binary();
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (!verifier.VerifyBuffer<wire::Declaration>(nullptr)) {
    throw FileError("its declaration cannot be decoded");
  }
  wire::DeclarationT declaration;
  flatbuffers::GetRoot<wire::Declaration>(bytes.data())->UnPackTo(&declaration);
  return declaration;
}

}  // namespace

std::vector<std::byte> to_bytes(const JobSnapshot& job) {
  json servers = json::array();
  for (const JobSnapshot::Server& server : job.servers) {
    servers.push_back({{"incarnation", server.incarnation},
                       {"endpoint", server.endpoint},
                       {"fingerprint", server.fingerprint},
                       {"snapshots", server.snapshots}});
  }
  const JobProgress& progress = job.progress;
  const json saved = {{"format", kJobSnapshotFormat},
                      {"number", job.number},
                      {"generation", job.generation},
                      {"declaration", json_of(job.declaration)},
                      {"declared_by", job.declared_by},
                      {"workers", job.worker_incarnations},
                      {"pushes", job.worker_pushes},
                      {"servers", servers},
                      {"step", progress.at.step},
                      {"samples", progress.at.samples},
                      {"loss", progress.loss},
                      {"metric", progress.metric},
                      {"position", json_of(progress.at.position)},
                      {"batches_of_step", job.batches_of_step},
                      {"collected", json_of(std::span(job.collected))},
                      {"batches_left", job.batches_left},
                      {"repeated_batches", job.repeated_batches},
                      {"stopped_by", to_wire(job.stopped_by)},
                      {"rules", progress.at.rules},
                      {"applied_pushes", progress.at.pushes}};
  const std::vector<std::uint8_t> bytes = json::to_cbor(saved);
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

JobSnapshot job_snapshot_of(std::span<const std::byte> bytes) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  try {
    const json saved = json::from_cbor(begin, begin + bytes.size());
    if (saved.at("format") != kJobSnapshotFormat)
      throw FileError(fmt::format("it has format {}, expected {}", saved.at("format").dump(),
                                  kJobSnapshotFormat));
    JobSnapshot job{.number = saved.at("number"),
                    .generation = saved.at("generation"),
                    .declaration = declaration_of(saved.at("declaration")),
                    .declared_by = saved.at("declared_by"),
                    .worker_incarnations = saved.at("workers"),
                    .worker_pushes = saved.at("pushes"),
                    .servers = {},
                    .progress = {.at = {.step = saved.at("step"),
                                        .samples = saved.at("samples"),
                                        .position = data_position_of(saved.at("position")),
                                        .rules = saved.value("rules", std::vector<double>{}),
                                        .pushes = saved.value("applied_pushes", std::int64_t{0})},
                                 .loss = saved.at("loss"),
                                 .metric = saved.value("metric", 0.0)},
                    .batches_of_step = saved.at("batches_of_step"),
                    .collected = collected_of(saved.value("collected", json::array())),
                    .batches_left = saved.at("batches_left"),
                    .repeated_batches = saved.at("repeated_batches"),
                    .stopped_by = stop_kind_from_wire(saved.at("stopped_by"))};
    for (const json& server : saved.at("servers")) {
      job.servers.push_back({server.at("incarnation"), server.at("endpoint"),
                             server.at("fingerprint"), server.at("snapshots")});
    }
    return job;
  } catch (const json::exception& error) {
    throw FileError(std::string("the coordinator's part of a snapshot is damaged: ") +
                    error.what());
  } catch (const FileError& error) {
    throw FileError(std::string("the coordinator's part of a snapshot is damaged: ") +
                    error.what());
  }
}

}  // namespace syncopate::ps
