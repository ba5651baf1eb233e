#include "ps/server.h"

#include <utility>

#include "ps/server/control_hub.h"
#include "ps/server/data_service.h"
#include "ps/server/hub_link.h"
#include "ps/server/server_duties.h"

namespace syncopate::ps {

ServerSummary run_server(ServerOptions options, const std::function<bool()>& stop,
                         const std::function<void(const std::string&)>& note) {
  DataService data({.index = options.index,
                    .workers = options.workers,
                    .nonce = options.nonce,
                    .port = options.data_port,
                    .threads = options.threads,
                    .credit_bytes = options.credit_bytes,
                    .uses_segments = options.uses_segments,
                    .servers = options.servers,
                    .record = options.record,
                    .link = options.link});
  ServerDuties duties(options, data, note);
  if (options.index == 0) {
    ControlHub(options, data, duties, note).run(stop);
  } else {
    HubLink(options, data, duties, note).run(stop);
  }
  StalenessHistogram all;
  for (const StalenessHistogram& worker : duties.staleness()) all.merge(worker);
  return {.pushes = all.count(), .staleness_mean = all.mean(), .staleness_max = all.max()};
}

}  // namespace syncopate::ps
