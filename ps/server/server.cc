#include "ps/server/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "models/base/deadline.h"
#include "ps/net/endpoint.h"
#include "ps/net/socket.h"
#include "ps/server/control_server.h"
#include "ps/server/data_service.h"
#include "ps/server/server_control_client.h"
#include "ps/server/server_duties.h"

namespace syncopate::ps {
namespace {

std::string counted(int count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// Returns the line that server 0 shows once it listens. `goes_on`: the job has begun before this
// process, so that the tasks it waits for are not known yet.
std::string listening_line(const ServerOptions& options, bool goes_on) {
  std::string line = "listening at " + to_string(options.rendezvous);
  if (is_loopback(listening_endpoint(options.rendezvous.host, 0).host)) line += " (this host only)";
  if (goes_on) return line;
  line += fmt::format(", waits up to {} for {}", in_seconds(options.rendezvous_timeout),
                      counted(options.workers, "worker"));
  if (options.servers > 1) line += " and " + counted(options.servers - 1, "more server");
  return line;
}

std::string connecting_line(const ServerOptions& options) {
  return fmt::format("waits up to {} for server 0 at {}", in_seconds(options.rendezvous_timeout),
                     to_string(options.rendezvous));
}

}  // namespace

ServerSummary run_server(ServerOptions options, const std::function<bool()>& stop,
                         const std::function<void(const std::string&)>& note) {
  if (options.index != 0) {
    if (options.announces) note(connecting_line(options));
    await_host(options.rendezvous, Deadline::after(options.rendezvous_timeout));
  }
  DataService data(
      {.index = options.index,
       .workers = options.workers,
       .nonce = options.nonce,
       .host = options.host,
       .port = options.data_port,
       .threads = options.threads,
       .credit_bytes = options.credit_bytes,
       .uses_segments = options.uses_segments,
       .segment_timeout = std::min(options.peer_timeout, DataServiceOptions{}.segment_timeout),
       .servers = options.servers,
       .record = options.record,
       .link = options.link});
  ServerDuties duties(options, data, note);
  ServerSummary summary;
  if (options.index == 0) {
    const bool goes_on = !duties.job_snapshots().empty();
    ControlServer control(options, data, duties, stop, note);
    if (options.announces) note(listening_line(options, goes_on));
    control.run();
    summary.foreign_messages = control.foreign_messages();
    summary.stranger_messages = control.stranger_messages();
    summary.callers_without_greeting = control.callers_without_greeting();
  } else {
    ServerControlClient(options, data, duties, stop, note).run();
  }
  const StalenessTotals all = duties.staleness();
  summary.pushes = all.count;
  summary.staleness_mean = all.mean();
  summary.staleness_max = all.max;
  summary.foreign_messages += data.foreign_messages();
  summary.stranger_messages += data.stranger_messages();
  summary.callers_without_greeting += data.callers_without_greeting();
  return summary;
}

}  // namespace syncopate::ps
