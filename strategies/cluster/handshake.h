// The messages between rank 0 and the other tasks, as JSON in frames, and rank 0's checks whether
// the tasks fit together. Pure functions; rendezvous.h has the sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "ps/net/connection.h"
#include "strategies/cluster/membership.h"

namespace syncopate {

// The types of the frames that tasks and rank 0 exchange.
enum MessageType : std::uint16_t {
  kHello = 1,  // to rank 0, the first message: Hello
  kWelcome,    // from rank 0, the answer to a valid hello: Welcome
  kRejected,   // from rank 0, which then closes the connection: Refusal
  kRoster,     // from rank 0, when all tasks have come: Roster
  kHeartbeat,  // in both directions: the sender's step, in decimal
  kText,       // exchange(): a task's text to rank 0; then the texts of all tasks, by index
  kLeaving,    // to rank 0: the sender called leave()
  kLeft,       // from rank 0: every task called leave()
  kFailing,    // to rank 0: why the sender fails
  kVerdict,    // from rank 0: which task failed, and why
};

// The first message of a task to rank 0. It introduces the task.
struct Hello {
  std::string nonce;  // of the job; "" when none was given; never sent
  int index = 0;
  int world_size = 1;
  int num_replicas = 1;
  std::string host;
  std::string boot_id;  // equal for tasks under one kernel; "" when unknown
  std::int64_t pid = 0;
  std::string process;                        // its process_name()
  std::chrono::milliseconds peer_timeout{0};  // --peer-timeout; 0 when it is not given
  Place place;                                // this task's node and local rank; node "": unknown
  std::vector<Agreement> agreements;
};

// Answers a hello and names rank 0, so that a task can report rank 0's death before the roster.
struct Welcome {
  std::chrono::milliseconds timeout{0};  // how much longer rank 0 waits for the other tasks
  std::string host;
  std::int64_t pid = 0;
};

struct Roster {
  std::string salt;   // random bits; with the job's nonce they give the nonce of this run
  std::string nonce;  // of this run, see run_nonce(); never sent
  std::chrono::milliseconds peer_timeout{0};
  std::vector<Member> members;
};

struct Refusal {
  std::string line;
  bool is_usage_error = true;  // whether the receiver throws UsageError, else PeerError
};

// The decoders of handshake messages throw PeerError for a frame of any other type.
Frame encode(const Hello& hello);
Frame encode(const Welcome& welcome);
Frame encode(const Roster& roster);
Frame encode(const Refusal& refusal);
Hello decode_hello(const Frame& frame);  // without the nonce
Welcome decode_welcome(const Frame& frame);
Roster decode_roster(const Frame& frame);
Refusal decode_refusal(const Frame& frame);

// Returns the step that a heartbeat frame carries; -1 when the frame is malformed.
std::int64_t decode_number(const Frame& frame) noexcept;

// Returns the hello of this process, with the host name and boot id of this machine and the pid;
// the other fields come from the arguments.
Hello hello_of(const ClusterSpec& spec, const MembershipOptions& options);

// Returns a task's name for messages, such as "rank 2 (host b, pid 77)".
std::string describe(int index, const std::string& host, std::int64_t pid);

// Returns how the settings of a task differ from rank 0's, as text such as "rank 1 has --seed 2,
// rank 0 has --seed 1"; "" if none differs. must: compare the settings that must agree, or the
// settings that only cause a warning if they differ.
std::string differences(const Hello& rank_zero, const Hello& other, bool must);

// Returns the nonce of the tasks that have met, which no task of an earlier run of the job knows.
std::string run_nonce(const std::string& nonce, const std::string& salt);

// Returns the roster (the list of all tasks). hellos: by task index; addresses: each task's address
// as rank 0 sees it.
Roster make_roster(const std::vector<Hello>& hellos, const std::vector<std::string>& addresses);

}  // namespace syncopate
