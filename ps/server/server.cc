#include "ps/server/server.h"

#include <string>
#include <utility>

#include "models/base/deadline.h"
#include "ps/net/endpoint.h"
#include "ps/server/control_hub.h"
#include "ps/server/data_service.h"
#include "ps/server/hub_link.h"
#include "ps/server/server_duties.h"

namespace syncopate::ps {
namespace {

std::string counted(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// Of server 0, which listens by now. `goes_on`: the job has begun, and who of it is missing is
// seen later.
std::string listening_line(const ServerOptions& options, bool goes_on) {
  std::string line = "listening at " + to_string(options.rendezvous);
  if (!listening_endpoint(options.rendezvous.host, 0).host.empty()) line += " (this host alone)";
  if (goes_on) return line;
  line += ", waits for " + counted(options.workers, "worker");
  if (options.servers > 1) line += " and " + counted(options.servers - 1, "more server");
  return line + ", up to " + in_seconds(options.rendezvous_timeout);
}

std::string calling_line(const ServerOptions& options) {
  return "calls server 0 at " + to_string(options.rendezvous) + ", up to " +
         in_seconds(options.rendezvous_timeout);
}

}  // namespace

ServerSummary run_server(ServerOptions options, const std::function<bool()>& stop,
                         const std::function<void(const std::string&)>& note) {
  if (options.index != 0) {
    if (options.announces) note(calling_line(options));
    await_host(options.rendezvous, Deadline::after(options.rendezvous_timeout));
  }
  DataService data({.index = options.index,
                    .workers = options.workers,
                    .nonce = options.nonce,
                    .host = options.host,
                    .port = options.data_port,
                    .threads = options.threads,
                    .credit_bytes = options.credit_bytes,
                    .uses_segments = options.uses_segments,
                    .servers = options.servers,
                    .record = options.record,
                    .link = options.link});
  ServerDuties duties(options, data, note);
  if (options.index == 0) {
    const bool goes_on = !duties.saved_jobs().empty();
    ControlHub hub(options, data, duties, note);
    if (options.announces) note(listening_line(options, goes_on));
    hub.run(stop);
  } else {
    HubLink(options, data, duties, stop, note).run();
  }
  StalenessHistogram all;
  for (const StalenessHistogram& worker : duties.staleness()) all.merge(worker);
  return {.pushes = all.count(), .staleness_mean = all.mean(), .staleness_max = all.max()};
}

}  // namespace syncopate::ps
