// `syncopate info`: prints what this build contains, read from the same tables that the flags use,
// and what was found at run time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "deploy/cli/flag.h"
#include "deploy/commands/commands.h"
#include "deploy/doctor/inspection.h"
#include "models/backend/cuda_module.h"
#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/base/resource_limits.h"
#include "models/zoo/zoo.h"
#include "strategies/cluster/cluster_spec.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "strategies/collective/collectives.h"
#include "worker/run/exit_codes.h"

namespace syncopate {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kInfoColumn = 20;

template <typename Row>
Json rows_as_json(std::span<const Row> rows) {
  Json list = Json::array();
  for (const Row& row : rows) list.push_back({{"name", row.name}, {"help", row.help}});
  return list;
}

// Prints one line of a table, with the text broken at the width of --help. Columns count from 0.
void print_line(std::string name, std::size_t column, const std::string& text, std::ostream& out) {
  name.resize(std::max(name.size(), column), ' ');
  out << name << wrapped(text, column, column) << '\n';
}

void print_rows(std::string_view title, const Json& rows, std::ostream& out) {
  std::size_t longest = 0;
  for (const Json& row : rows) {
    longest = std::max(longest, row.at("name").get_ref<const std::string&>().size());
  }
  const std::size_t column = std::max(kInfoColumn, longest + 4);
  out << '\n' << title << '\n';
  for (const Json& row : rows) {
    print_line("  " + row.at("name").get<std::string>(), column, row.at("help"), out);
  }
}

Json devices() {
  Json list = Json::array({"cpu"});
  try {
    const auto found = load_cuda_module().devices();
    for (std::size_t i = 0; i < found.size(); ++i) list.push_back(fmt::format("cuda:{}", i));
  } catch (const UnavailableError&) {
    return list;  // the list has no GPU; cuda_state() gives the reason
  }
  return list;
}

// Describes what the CUDA module has code for and the GPUs that it finds, or why it cannot be used.
std::string cuda_state() {
  std::string text;
  try {
    const std::vector<std::string> built = load_cuda_module().architectures();
    text = fmt::format("code for {}; ", fmt::join(built, ", "));
    std::string found;
    for (const CudaDevice& device : load_cuda_module().devices()) {
      found += fmt::format("{}{}, {} GiB, sm_{}{}", found.empty() ? "" : "; ", device.name,
                           device.memory_bytes >> 30, device.major, device.minor);
      const std::string why = why_unusable(device, Precision::kF32, built);
      if (!why.empty()) found += ", not usable: " + why;
    }
    return text + found;
  } catch (const UnavailableError& error) {
    return text + error.what();
  }
}

// Lists the collectives. A collective that this machine may lack reports its own state.
Json collectives_here() {
  Json list = rows_as_json(collectives());
  for (Json& row : list) {
    if (row.at("name") != "nccl") continue;
    try {
      (void)load_cuda_module().devices();
    } catch (const UnavailableError&) {
      row["help"] = row.at("help").get<std::string>() + "; not here, see cuda";
    }
  }
  return list;
}

Json facts() {
  Json datasets_list = Json::array();
  for (const DatasetRow& row : datasets()) {
    datasets_list.push_back({{"name", row.pattern}, {"help", row.help}});
  }
  Json libraries = Json::array();
  for (const LibraryVersion& library : library_versions()) {
    libraries.push_back(
        {{"name", library.name}, {"built", library.built}, {"loaded", library.loaded}});
  }
  const CpuLimits cpus = cpu_limits();
  Json quota;  // null without a quota
  if (cpus.quota) quota = *cpus.quota;
  return {{"version", program_version()},
          {"compiler", compiler_version()},
          {"isa", name(detect_isa())},
          {"cpus", cpus.usable()},
          {"cpu_affinity", cpus.affinity},
          {"cpu_quota", quota},
          {"devices", devices()},
          {"cuda", cuda_state()},
          {"strategies", rows_as_json(strategies())},
          {"collectives", collectives_here()},
          {"resolvers", rows_as_json(resolvers())},
          {"networks", rows_as_json(networks())},
          {"datasets", datasets_list},
          {"optimizers", rows_as_json(optimizers())},
          {"libraries", libraries}};
}

}  // namespace

int run_info(const InfoOptions& options, std::ostream& out) {
  const Json json = facts();
  if (options.json) {
    out << json.dump(2) << std::endl;
    return 0;
  }
  out << "syncopate " << program_version() << ", built with " << compiler_version() << '\n';
  print_line("instruction set", kInfoColumn, std::string(name(detect_isa())), out);
  print_line("CPUs", kInfoColumn, describe(cpu_limits()), out);
  const std::vector<std::string> devices = json.at("devices");
  print_line("devices", kInfoColumn, fmt::format("{}", fmt::join(devices, " ")), out);
  print_line("cuda", kInfoColumn, json.at("cuda"), out);
  print_rows("strategies (--strategy)", json.at("strategies"), out);
  print_rows("collectives (--collective)", json.at("collectives"), out);
  print_rows("sources of the cluster, in the order of precedence", json.at("resolvers"), out);
  print_rows("networks (--model; parameters in millions, M)", json.at("networks"), out);
  print_rows("data sets (--data; pixels, training + test samples)", json.at("datasets"), out);
  print_rows("optimizers (--optimizer)", json.at("optimizers"), out);
  out << "\nlibraries (version)\n";
  for (const LibraryVersion& library : library_versions()) {
    print_line(
        "  " + library.name, kInfoColumn,
        library.loaded +
            (library.loaded == library.built ? "" : " (built against " + library.built + ")"),
        out);
  }
  out << std::flush;
  return 0;
}

int run_cluster(const ClusterOptions& options, std::ostream& out) {
  out << (options.as_tf_config ? to_tf_config(options.cluster, options.port_base)
                               : to_json(options.cluster))
      << std::endl;
  return 0;
}

}  // namespace syncopate
