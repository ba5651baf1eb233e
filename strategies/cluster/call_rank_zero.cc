#include "models/base/errors.h"
#include "strategies/cluster/meeting.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

// Rank 0 ends the waiting itself, and knows better why: it gets the time to say so.
constexpr milliseconds kGrace(1000);

Frame receive_admitted(Connection& rank_zero, const Deadline& deadline) {
  Frame frame = rank_zero.receive(deadline);
  if (frame.type != kTurnedAway) return frame;
  const Refusal refusal = decode_refusal(frame);
  if (refusal.is_usage_error) throw UsageError(refusal.line);
  throw PeerError(refusal.line);
}

// Each sees the others from where it stands itself.
void correct_addresses(std::vector<Member>& members, const std::string& rank_zero) {
  for (Member& member : members) {
    // Who came to rank 0 over loopback is on its machine.
    if (member.index == 0 || is_loopback(member.address)) member.address = rank_zero;
  }
}

}  // namespace

Meeting call_rank_zero(const Hello& hello, const Endpoint& endpoint, milliseconds patience) {
  const Deadline deadline = Deadline::after(patience);
  Connection rank_zero = connect_to(endpoint, "rank 0", deadline);
  rank_zero.set_peer("rank 0 at " + to_string(endpoint) + ", which rank " +
                     std::to_string(hello.index) + " called");
  rank_zero.send(encode(hello), deadline);
  Frame frame = receive_admitted(rank_zero, Deadline::after(patience));
  if (frame.type == kWelcome) {
    const Welcome welcome = decode_welcome(frame);
    rank_zero.set_peer(describe(0, welcome.host, welcome.pid));
    frame = receive_admitted(rank_zero, Deadline::after(welcome.patience + kGrace));
  }
  Meeting meeting{hello.index, decode_roster(frame), {}};
  correct_addresses(meeting.roster.members, rank_zero.remote_address());
  meeting.connections.push_back(std::move(rank_zero));
  return meeting;
}

}  // namespace syncopate
