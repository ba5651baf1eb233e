// What tasks tell each other when they meet at rank 0, as JSON in frames, and whether they fit
// together. Pure functions; the sockets are meeting.h's.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "ps/net/connection.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

// The types of frames between rank 0 and the others.
enum MessageType : std::uint16_t {
  kHello = 1,   // to rank 0, first of all: Hello
  kWelcome,     // from rank 0, for a good hello: Welcome
  kTurnedAway,  // from rank 0, and then it closes: Refusal
  kRoster,      // from rank 0, when all have come: Roster
  kHeartbeat,   // both ways: the step, in decimal
  kText,        // of exchange(): to rank 0 one's own, from it everybody's, by index
  kLeaving,     // to rank 0: all is done
  kLeft,        // from rank 0: everybody is done
  kFailing,     // to rank 0: why the sender ends
  kVerdict,     // from rank 0: who failed, how, and where
};

struct Hello {
  std::string nonce;  // "": none was given
  int index = 0;
  int world_size = 1;
  int num_replicas = 1;
  std::string host;
  std::string boot_id;  // the same for tasks under one kernel; "": not known
  std::int64_t pid = 0;
  std::chrono::milliseconds peer_timeout{0};  // 0: not given
  Place place;                                // as its launcher told it; no node: it did not
  std::vector<Agreement> agreements;
};

// Names rank 0 before the roster does: should it die meanwhile, its callers can say who did.
struct Welcome {
  std::chrono::milliseconds patience{0};  // rank 0 still waits for the rest as long
  std::string host;
  std::int64_t pid = 0;
};

struct Roster {
  std::string nonce;
  std::chrono::milliseconds peer_timeout{0};
  std::vector<Member> members;
};

struct Refusal {
  std::string line;
  bool is_usage_error = true;  // else a PeerError
};

// Decoding throws PeerError for what is no such message.
Frame encode(const Hello& hello);
Frame encode(const Welcome& welcome);
Frame encode(const Roster& roster);
Frame encode(const Refusal& refusal);
Hello decode_hello(const Frame& frame);
Welcome decode_welcome(const Frame& frame);
Roster decode_roster(const Frame& frame);
Refusal decode_refusal(const Frame& frame);

// The number of a heartbeat; -1 for what is none.
std::int64_t decode_number(const Frame& frame) noexcept;

// Of this process on this machine; index, sizes and agreements from the arguments.
Hello hello_of(const ClusterSpec& spec, const MembershipOptions& options);

// "rank 2 (host b, pid 77)"
std::string describe(int index, const std::string& host, std::int64_t pid);

// In which agreements `caller` differs from rank 0, of those that must be equal or of the others:
// "rank 1 has --seed 2, rank 0 has --seed 1". "": in none.
std::string differences(const Hello& rank_zero, const Hello& caller, bool must);

// Who is in the job, when all have said hello; hellos by index, addresses as rank 0 sees them.
Roster make_roster(const std::vector<Hello>& hellos, const std::vector<std::string>& addresses);

}  // namespace syncopate
