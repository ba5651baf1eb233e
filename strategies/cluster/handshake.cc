#include "strategies/cluster/handshake.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "models/base/errors.h"
#include "models/base/secret.h"
#include "ps/net/endpoint.h"
#include "ps/net/greeting.h"
#include "ps/net/process_probe.h"

namespace syncopate {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

Frame frame_of(MessageType type, const Json& json) {
  // Host names and paths may be invalid UTF-8. Their invalid bytes are replaced, since an exception
  // would hide the error to be sent.
  return {type, json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

// Parses a message frame's JSON and applies `read` to it.
template <typename Read>
auto decode(const Frame& frame, MessageType type, std::string_view what, Read read) {
  try {
    if (frame.type == type) return read(Json::parse(frame.payload));
  } catch (const Json::exception&) {
    // The PeerError below replaces the JSON library's exception: its text is less clear.
  }
  throw PeerError(
      fmt::format("expected {}, got a malformed or other message of type {}", what, frame.type));
}

std::string value_of(const std::string& name, const std::vector<Agreement>& agreements) {
  const auto found = std::ranges::find(agreements, name, &Agreement::name);
  return found == agreements.end() ? "no " + name : name + " " + found->value;
}

bool on_one_machine(const std::vector<Hello>& hellos) {
  return std::ranges::all_of(hellos, [&](const Hello& hello) {
    return !hello.boot_id.empty() && hello.boot_id == hellos[0].boot_id &&
           hello.host == hellos[0].host;
  });
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Agreement, name, value, must)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Member, index, first_replica, num_replicas, host, address, pid,
                                   process)

Frame encode(const Hello& hello) {
  return frame_of(kHello, {{"index", hello.index},
                           {"world_size", hello.world_size},
                           {"num_replicas", hello.num_replicas},
                           {"host", hello.host},
                           {"boot_id", hello.boot_id},
                           {"pid", hello.pid},
                           {"process", hello.process},
                           {"peer_timeout_ms", hello.peer_timeout.count()},
                           {"node", hello.place.node},
                           {"local_rank", hello.place.local_rank},
                           {"agreements", hello.agreements}});
}

Hello decode_hello(const Frame& frame) {
  return decode(frame, kHello, "a hello", [](const Json& json) {
    return Hello{.nonce = "",
                 .index = json.at("index"),
                 .world_size = json.at("world_size"),
                 .num_replicas = json.at("num_replicas"),
                 .host = json.at("host"),
                 .boot_id = json.at("boot_id"),
                 .pid = json.at("pid"),
                 .process = json.at("process"),
                 .peer_timeout = milliseconds(json.at("peer_timeout_ms").get<std::int64_t>()),
                 .place = {json.at("node"), json.at("local_rank")},
                 .agreements = json.at("agreements")};
  });
}

Frame encode(const Welcome& welcome) {
  return frame_of(
      kWelcome,
      {{"patience_ms", welcome.timeout.count()}, {"host", welcome.host}, {"pid", welcome.pid}});
}

Welcome decode_welcome(const Frame& frame) {
  return decode(frame, kWelcome, "a welcome", [](const Json& json) {
    return Welcome{milliseconds(json.at("patience_ms").get<std::int64_t>()), json.at("host"),
                   json.at("pid")};
  });
}

Frame encode(const Roster& roster) {
  return frame_of(kRoster, {{"salt", roster.salt},
                            {"peer_timeout_ms", roster.peer_timeout.count()},
                            {"members", roster.members}});
}

Roster decode_roster(const Frame& frame) {
  return decode(frame, kRoster, "the roster", [](const Json& json) {
    return Roster{json.at("salt"), "", milliseconds(json.at("peer_timeout_ms").get<std::int64_t>()),
                  json.at("members")};
  });
}

Frame encode(const Refusal& refusal) {
  return frame_of(kRejected, {{"line", refusal.line}, {"usage", refusal.is_usage_error}});
}

Refusal decode_refusal(const Frame& frame) {
  return decode(frame, kRejected, "a refusal", [](const Json& json) {
    return Refusal{json.at("line"), json.at("usage")};
  });
}

std::int64_t decode_number(const Frame& frame) noexcept {
  std::int64_t number = -1;
  std::from_chars(frame.payload.data(), frame.payload.data() + frame.payload.size(), number);
  return number;
}

std::int64_t decode_second_number(const Frame& frame) {
  const std::size_t space = frame.payload.find(' ');
  return space == std::string::npos ? -1
                                    : decode_number({frame.type, frame.payload.substr(space + 1)});
}

Hello hello_of(const ClusterSpec& spec, const MembershipOptions& options) {
  return {.nonce = spec.nonce,
          .index = spec.index,
          .world_size = spec.world_size,
          .num_replicas = options.num_replicas,
          .host = own_host_name(),
          .boot_id = own_boot_id(),
          .pid = getpid(),
          .process = process_name(getpid()),
          .peer_timeout = options.peer_timeout,
          .place = {spec.node, spec.local_rank},
          .agreements = options.agreements};
}

std::string describe(int index, const std::string& host, std::int64_t pid) {
  return fmt::format("rank {} (host {}, pid {})", index, host, pid);
}

std::string differences(const Hello& rank_zero, const Hello& other, bool must) {
  std::string line;
  const auto compare = [&](const std::string& name) {
    const std::string theirs = value_of(name, other.agreements);
    const std::string ours = value_of(name, rank_zero.agreements);
    if (theirs == ours) return;
    if (!line.empty()) line += "; ";
    line += fmt::format("rank {} has {}, rank 0 has {}", other.index, theirs, ours);
  };
  for (const Agreement& agreement : rank_zero.agreements) {
    if (agreement.must == must) compare(agreement.name);
  }
  for (const Agreement& agreement : other.agreements) {
    const auto& known = rank_zero.agreements;
    if (agreement.must == must &&
        std::ranges::find(known, agreement.name, &Agreement::name) == known.end()) {
      compare(agreement.name);
    }
  }
  return line;
}

std::string run_nonce(const std::string& nonce, const std::string& salt) {
  std::string text;
  for (const char byte : prove(nonce, {"run", salt})) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

Roster make_roster(const std::vector<Hello>& hellos, const std::vector<std::string>& addresses) {
  Roster roster{random_nonce(), "", milliseconds(0), {}};
  roster.nonce = run_nonce(hellos[0].nonce, roster.salt);
  int first_replica = 0;
  for (std::size_t i = 0; i < hellos.size(); ++i) {
    const Hello& hello = hellos[i];
    roster.peer_timeout = std::max(roster.peer_timeout, hello.peer_timeout);
    roster.members.push_back({.index = hello.index,
                              .first_replica = first_replica,
                              .num_replicas = hello.num_replicas,
                              .host = hello.host,
                              .address = addresses[i],
                              .pid = hello.pid,
                              .process = hello.process});
    first_replica += hello.num_replicas;
  }
  if (roster.peer_timeout <= milliseconds(0)) {
    roster.peer_timeout = std::chrono::seconds(on_one_machine(hellos) ? 5 : 15);
  }
  return roster;
}

}  // namespace syncopate
