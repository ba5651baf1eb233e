#include "strategies/cluster/cluster_json.h"

#include <nlohmann/json.hpp>

#include "models/base/errors.h"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kLastPort = 65535;

Json addresses(const std::vector<Endpoint>& endpoints) {
  Json list = Json::array();
  for (const Endpoint& endpoint : endpoints) list.push_back(to_string(endpoint));
  return list;
}

Json addresses(const std::vector<Place>& places, int port_base) {
  Json list = Json::array();
  for (const Place& place : places) {
    const int port = port_base + place.local_rank;
    if (port > kLastPort) {
      throw UsageError("--port-base " + std::to_string(port_base) + ": the tasks of " + place.node +
                       " would go beyond port 65535; choose a lower one");
    }
    list.push_back(to_string(Endpoint{place.node, static_cast<std::uint16_t>(port)}));
  }
  return list;
}

// Variables may hold any bytes: what is no UTF-8 is shown as such, not refused.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const ClusterSpec& spec) {
  const Json rank = spec.role == Role::kWorker ? Json(spec.index) : Json(nullptr);
  const Json json = {
      {"source", spec.source},
      {"role", name(spec.role)},
      {"index", spec.index},
      {"rank", rank},
      {"world_size", spec.world_size},
      {"num_servers", spec.num_servers},
      {"node", spec.node.empty() ? Json() : Json(spec.node)},
      {"local_rank", spec.local_rank},
      {"local_size", spec.local_size},
      {"chief", spec.is_chief()},
      {"workers", addresses(spec.workers)},
      {"servers", addresses(spec.servers)},
      {"device", "cpu"},
      {"gpus", spec.gpus},
      {"rendezvous",
       spec.rendezvous.endpoint ? Json(to_string(*spec.rendezvous.endpoint)) : Json()},
      {"nonce", spec.nonce},
      {"notes", spec.notes}};
  return text_of(json, 2);
}

std::string to_tf_config(const ClusterSpec& spec, int port_base) {
  const int first = port_base != 0 ? port_base : spec.rendezvous.derived_port;
  Json cluster;
  if (!spec.workers.empty()) {
    cluster["worker"] = addresses(spec.workers);
    if (!spec.servers.empty()) cluster["ps"] = addresses(spec.servers);
  } else if (!spec.worker_places.empty() && first > 0) {
    cluster["worker"] = addresses(spec.worker_places, first);
    if (!spec.server_places.empty()) cluster["ps"] = addresses(spec.server_places, first);
  } else {
    throw UsageError(
        "--as tf-config: " +
        (spec.source == "none" ? "this task is alone"
                               : spec.source + " does not say where the other tasks run") +
        "; expected Slurm or TF_CONFIG to say so, with --port-base where there is one task only");
  }
  const char* type = "worker";
  if (spec.role == Role::kServer) type = "ps";
  if (spec.role == Role::kEvaluator) type = "evaluator";
  return text_of({{"cluster", cluster}, {"task", {{"type", type}, {"index", spec.index}}}}, -1);
}

}  // namespace syncopate
