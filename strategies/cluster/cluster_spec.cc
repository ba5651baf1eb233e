#include "strategies/cluster/cluster_spec.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <nlohmann/json.hpp>

#include "models/base/errors.h"
#include "models/base/secret.h"

namespace syncopate {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kMaxPort = 65535;

OrderedJson addresses_of(const std::vector<Endpoint>& endpoints) {
  OrderedJson list = OrderedJson::array();
  for (const Endpoint& endpoint : endpoints) list.push_back(to_string(endpoint));
  return list;
}

OrderedJson addresses_of(const std::vector<Place>& places, int port_base) {
  OrderedJson list = OrderedJson::array();
  for (const Place& place : places) {
    const int port = port_base + place.local_rank;
    if (port > kMaxPort) {
      throw UsageError(fmt::format(
          "--port-base {}: the tasks of {} would go beyond port 65535; choose a lower one",
          port_base, place.node));
    }
    list.push_back(to_string(Endpoint{place.node, static_cast<std::uint16_t>(port)}));
  }
  return list;
}

// Environment variables may contain any bytes; invalid UTF-8 is replaced, not refused.
std::string dump_json(const OrderedJson& json, int indent) {
  return json.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

std::string describe(const Place& place) {
  return fmt::format("node {}, local rank {}", place.node, place.local_rank);
}

std::string place_in_job(const ClusterSpec& spec) {
  switch (spec.role) {
    case Role::kWorker:
      return fmt::format("rank {} of {}", spec.index, spec.world_size);
    case Role::kServer:
      return fmt::format("server {} of {}", spec.index, spec.num_servers);
    case Role::kEvaluator:
      return fmt::format("evaluator {}", spec.index);
  }
  return "";
}

void report_meeting(const ClusterSpec& spec) noexcept {
  // An error cannot matter: the descriptor is an event, which is full only when it is set.
  if (spec.rendezvous.met_descriptor >= 0) eventfd_write(spec.rendezvous.met_descriptor, 1);
}

std::int64_t needed_open_files(const ClusterSpec& spec) {
  // The files that a task has open beside its connections, measured with some to spare: data,
  // checkpoints, threads, ZeroMQ. A server has two contexts of ZeroMQ's.
  constexpr std::int64_t kOwnFiles = 32;
  constexpr std::int64_t kOwnFilesOfServer = 48;
  // A worker's connection to a server: a socket, three descriptors of ZeroMQ's and a timer.
  constexpr std::int64_t kFilesPerServer = 5;
  const std::int64_t workers = spec.world_size;
  if (spec.num_servers == 0) return workers > 1 ? kOwnFiles + workers : 0;
  if (spec.role == Role::kWorker) return kOwnFiles + kFilesPerServer * (spec.num_servers + 1);
  // Every worker has a data connection to every server. Server 0 also has a control connection of
  // every task.
  return kOwnFilesOfServer + (spec.index == 0 ? 2 * workers + spec.num_servers - 1 : workers + 1);
}

std::string contradiction(const ClusterSpec& spec, Role role, int index, const Place& reported) {
  const std::vector<Place>& places =
      role == Role::kServer ? spec.server_places : spec.worker_places;
  if (static_cast<std::size_t>(index) >= places.size() || reported.node.empty()) return "";
  const Place& expected = places[static_cast<std::size_t>(index)];
  if (expected == reported || expected.is_assumed) return "";
  return fmt::format(
      "{} {} runs on {}, but by {}'s variables it is on {}; start the tasks with srun "
      "--distribution=block, or give --rendezvous HOST, the host of rank 0 or, where there are "
      "servers, of server 0",
      role == Role::kServer ? "server" : "rank", index, describe(reported), spec.source,
      describe(expected));
}

std::string to_json(const ClusterSpec& spec) {
  const OrderedJson rank =
      spec.role == Role::kWorker ? OrderedJson(spec.index) : OrderedJson(nullptr);
  const OrderedJson json = {
      {"source", spec.source},
      {"role", name(spec.role)},
      {"index", spec.index},
      {"rank", rank},
      {"world_size", spec.world_size},
      {"num_servers", spec.num_servers},
      {"node", spec.node.empty() ? OrderedJson() : OrderedJson(spec.node)},
      {"local_rank", spec.local_rank},
      {"local_size", spec.local_size},
      {"chief", spec.is_chief()},
      {"workers", addresses_of(spec.workers)},
      {"servers", addresses_of(spec.servers)},
      {"device", "cpu"},
      {"gpus", spec.gpus},
      {"rendezvous", spec.rendezvous.endpoint ? OrderedJson(to_string(*spec.rendezvous.endpoint))
                                              : OrderedJson()},
      {"nonce", spec.nonce.empty() ? OrderedJson() : OrderedJson(name_of_nonce(spec.nonce))},
      {"notes", spec.notes}};
  return dump_json(json, 2);
}

std::string to_tf_config(const ClusterSpec& spec, int port_base) {
  const int first = port_base != 0 ? port_base : spec.rendezvous.derived_port;
  OrderedJson cluster;
  if (!spec.workers.empty()) {
    cluster["worker"] = addresses_of(spec.workers);
    if (!spec.servers.empty()) cluster["ps"] = addresses_of(spec.servers);
  } else if (!spec.worker_places.empty() && first > 0) {
    cluster["worker"] = addresses_of(spec.worker_places, first);
    if (!spec.server_places.empty()) cluster["ps"] = addresses_of(spec.server_places, first);
  } else {
    throw UsageError(fmt::format(
        "--as tf-config: {}; expected a list of hosts from Slurm or TF_CONFIG, and --port-base for "
        "a job of one task",
        spec.source == "none" ? "this task is alone"
                              : spec.source + " does not list the hosts of the tasks"));
  }
  const char* type = "worker";
  if (spec.role == Role::kServer) type = "ps";
  if (spec.role == Role::kEvaluator) type = "evaluator";
  return dump_json({{"cluster", cluster}, {"task", {{"type", type}, {"index", spec.index}}}}, -1);
}

}  // namespace syncopate
