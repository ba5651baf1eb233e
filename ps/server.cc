#include "ps/server.h"

#include <malloc.h>

#include <utility>

#include "ps/server/control_hub.h"
#include "ps/server/data_service.h"
#include "ps/server/hub_link.h"
#include "ps/server/server_duties.h"

namespace syncopate::ps {
namespace {

// ZeroMQ allocates each large frame anew. Kept, their pages are not faulted in for every message,
// which costs more than the copy. Source: mallopt(3); 32 MiB is the largest threshold it takes.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace

ServerSummary run_server(ServerOptions options, const std::function<bool()>& stop,
                         const std::function<void(const std::string&)>& note) {
  keep_freed_memory();
  DataService data({.index = options.index,
                    .workers = options.workers,
                    .nonce = options.nonce,
                    .port = options.data_port,
                    .threads = options.threads,
                    .credit_bytes = options.credit_bytes,
                    .uses_segments = options.uses_segments,
                    .servers = options.servers,
                    .record = options.record});
  ServerDuties duties(options, data, note);
  if (options.index == 0) {
    ControlHub(options, data, duties, note).run(stop);
  } else {
    HubLink(options, data, duties).run(stop);
  }
  StalenessHistogram all;
  for (const StalenessHistogram& worker : duties.staleness()) all.merge(worker);
  return {.pushes = all.count(), .staleness_mean = all.mean(), .staleness_max = all.max()};
}

}  // namespace syncopate::ps
