#include "strategies/collective/segment_hand_over.h"

#include <poll.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "ps/net/descriptor_passing.h"
#include "strategies/cluster/callers.h"
#include "strategies/cluster/hello.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::uint16_t kSegmentHello = 0x5347;
// How often whoever waits looks whether a task has died.
constexpr milliseconds kLook(100);
constexpr std::string_view kReached = "reached";
constexpr std::string_view kRankZero = "shared memory: rank 0's task";

std::string hello_of(int index, const Membership& membership) {
  return std::to_string(index) + " " + membership.nonce();
}

void throw_if_failed(const Membership& membership) {
  if (const auto verdict = membership.failure()) throw PeerError(*verdict);
}

FileDescriptor take_over(int socket, const Membership& membership, const Deadline& deadline) {
  while (!wait_ready(socket, POLLIN,
                     Deadline::after(std::min<nanoseconds>(kLook, deadline.remaining())))) {
    throw_if_failed(membership);
    if (!deadline.passed()) continue;
    throw PeerError(std::string(kRankZero) + " did not hand it over within " +
                    in_seconds(deadline.patience()) + "; is it stopped, or busy?");
  }
  FileDescriptor descriptor = receive_descriptor(socket, kRankZero);
  if (!descriptor) throw PeerError(std::string(kRankZero) + " refused to hand it over");
  return descriptor;
}

// Whether all reached rank 0's task. Ends the job before anybody maps what is another size to him.
bool agree(Membership& membership, bool reached, const std::string& layout) {
  const std::vector<std::string> answers =
      membership.exchange(std::string(reached ? kReached : "out of reach") + "\n" + layout);
  bool all_reached = true;
  std::vector<std::string> layouts;
  for (const std::string& answer : answers) {
    const std::size_t line_end = std::min(answer.find('\n'), answer.size());
    all_reached = all_reached && answer.substr(0, line_end) == kReached;
    layouts.push_back(answer.substr(std::min(line_end + 1, answer.size())));
  }
  for (std::size_t i = 1; i < layouts.size(); ++i) {
    if (layouts[i] == layouts[0]) continue;
    const Member& member = membership.members()[i];
    throw UsageError(
        "the tasks' networks differ in size: " + describe(member.index, member.host, member.pid) +
        " has " + layouts[i] + ", rank 0 has " + layouts[0] +
        "; start all tasks with the same program, model and flags");
  }
  return all_reached;
}

// A silent stranger holds up nobody, and is given nothing.
void serve(Callers& callers, const Membership& membership, const FileDescriptor& descriptor,
           const Deadline& deadline) {
  std::vector<int> missing(membership.members().size() - 1);
  std::iota(missing.begin(), missing.end(), 1);
  while (!missing.empty()) {
    throw_if_failed(membership);
    if (deadline.passed()) {
      const Member& late = membership.members()[static_cast<std::size_t>(missing[0])];
      throw PeerError("shared memory: " + describe(late.index, late.host, late.pid) +
                      " did not come for it within " + in_seconds(deadline.patience()) +
                      "; is it stopped, or busy?");
    }
    std::vector<pollfd> sockets;
    callers.add_to(sockets);
    poll(sockets.data(), sockets.size(),
         std::min(callers.poll_milliseconds(deadline), static_cast<int>(kLook.count())));
    for (const Callers::Heard& caller : callers.hear()) {
      const auto task = std::ranges::find_if(missing, [&](int index) {
        return caller.frame.type == kSegmentHello &&
               caller.frame.payload == hello_of(index, membership);
      });
      if (task == missing.end() || !is_of_our_user(caller.connection.descriptor())) {
        warn_turned_away(caller.connection.peer(), "it asked for the shared memory of this job");
        continue;
      }
      send_descriptor(caller.connection.descriptor(), descriptor.get());
      missing.erase(task);
    }
  }
}

FileDescriptor hand_out(Membership& membership, const std::string& layout,
                        const std::function<FileDescriptor()>& make, nanoseconds patience) {
  const std::string name = random_socket_name();
  Callers callers(Listener(listen_at_name(name)),
                  static_cast<std::uint32_t>(
                      hello_of(static_cast<int>(membership.members().size()), membership).size()));
  membership.exchange(name);
  if (!agree(membership, true, layout)) return {};
  FileDescriptor descriptor = make();
  serve(callers, membership, descriptor, Deadline::after(patience));
  return descriptor;
}

FileDescriptor come_for_it(Membership& membership, const std::string& layout,
                           nanoseconds patience) {
  FileDescriptor socket = call_name(membership.exchange("").front());
  const bool reached = static_cast<bool>(socket);
  if (!agree(membership, reached, layout)) return {};
  const Deadline deadline = Deadline::after(patience);
  try {
    Connection rank_zero(std::move(socket), std::string(kRankZero));
    rank_zero.send({kSegmentHello, hello_of(membership.index(), membership)}, deadline);
    return take_over(rank_zero.descriptor(), membership, deadline);
  } catch (const PeerError& error) {
    throw PeerError(verdict_or(&membership, error.what()));
  }
}

}  // namespace

FileDescriptor hand_to_all(Membership& membership, const std::string& layout,
                           const std::function<FileDescriptor()>& make, nanoseconds patience) {
  if (membership.index() != 0) return come_for_it(membership, layout, patience);
  try {
    return hand_out(membership, layout, make, patience);
  } catch (const PeerError& error) {
    throw PeerError(verdict_or(&membership, error.what()));
  }
}

}  // namespace syncopate
