// The messages between rank 0 and the other tasks, encoded as JSON in frames, and rank 0's checks
// that the tasks fit together. Pure functions; rendezvous.h has the sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "ps/net/connection.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

// The types of the frames between rank 0 and the other tasks.
enum MessageType : std::uint16_t {
  kHello = 1,  // to rank 0: Hello, the first message
  kWelcome,    // from rank 0: Welcome, the answer to a valid Hello
  kRejected,   // from rank 0: Refusal; rank 0 then closes the connection
  kRoster,     // from rank 0: Roster, when all tasks have connected
  // In both directions: the sender's step, as a decimal number. From rank 0, the lowest step of all
  // tasks follows, after a space.
  kHeartbeat,
  kText,  // for exchange(): to rank 0 a task's text; from rank 0 the texts of all tasks, by index
  kLeaving,  // to rank 0: the sender has called leave()
  kLeft,     // from rank 0: every task has called leave()
  kFailing,  // to rank 0: why the sender fails
  kVerdict,  // from rank 0: which task failed, and why
};

// The first message of a task to rank 0. It says which task the sender is.
struct Hello {
  std::string nonce;  // the job's nonce, "" if there is none; never sent
  int index = 0;
  int world_size = 1;
  int num_replicas = 1;
  std::string host;
  std::string boot_id;  // equal for tasks under one kernel; "" if unknown
  std::int64_t pid = 0;
  std::string process;                        // process_name() of the task
  std::chrono::milliseconds peer_timeout{0};  // --peer-timeout; 0 if not given
  Place place;                                // place of this task; the node is "" if unknown
  std::vector<Agreement> agreements;
};

// The answer to a Hello. It has the host and pid of rank 0, so that a task can name rank 0 if rank
// 0 dies before it sends the roster, the list of all tasks.
struct Welcome {
  std::chrono::milliseconds timeout{0};  // how much longer rank 0 waits for the other tasks
  std::string host;
  std::int64_t pid = 0;
};

struct Roster {
  std::string salt;   // random bits; run_nonce() computes the nonce of this run from them
  std::string nonce;  // nonce of this run, see run_nonce(); never sent
  std::chrono::milliseconds peer_timeout{0};
  std::vector<Member> members;
};

struct Refusal {
  std::string line;
  bool is_usage_error = true;  // the receiver throws UsageError if true, PeerError if false
};

// Convert the messages to frames and back. Each decode function throws PeerError for a frame of
// another type.
Frame encode(const Hello& hello);
Frame encode(const Welcome& welcome);
Frame encode(const Roster& roster);
Frame encode(const Refusal& refusal);
Hello decode_hello(const Frame& frame);  // leaves Hello::nonce empty, because it is never sent
Welcome decode_welcome(const Frame& frame);
Roster decode_roster(const Frame& frame);
Refusal decode_refusal(const Frame& frame);

// Return the step in a heartbeat frame, and the lowest step of all tasks that follows it; -1 if the
// frame is malformed or has no second number.
std::int64_t decode_number(const Frame& frame) noexcept;
std::int64_t decode_second_number(const Frame& frame);

// Returns the hello of this process, with the host name and boot id of this machine and the pid;
// the other fields come from the arguments.
Hello hello_of(const ClusterSpec& spec, const MembershipOptions& options);

// Returns a task's name for messages, such as "rank 2 (host b, pid 77)".
std::string describe(int index, const std::string& host, std::int64_t pid);

// Returns how the settings of a task differ from rank 0's, as text such as "rank 1 has --seed 2,
// rank 0 has --seed 1"; "" if none differs. If `must` is true, compares only the settings that must
// agree; if false, only the settings that may differ with a warning.
std::string differences(const Hello& rank_zero, const Hello& other, bool must);

// Returns the nonce of this run, computed from the job's nonce and Roster::salt. Tasks of an
// earlier run of the job do not know it.
std::string run_nonce(const std::string& nonce, const std::string& salt);

// Returns the roster, the list of all tasks. `hellos` and `addresses` are by task index; an address
// is the address of the task as rank 0 sees it.
Roster make_roster(const std::vector<Hello>& hellos, const std::vector<std::string>& addresses);

}  // namespace syncopate
