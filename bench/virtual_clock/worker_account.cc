#include "bench/virtual_clock/worker_account.h"

namespace syncopate::bench {

WorkerAccount sum_of(std::span<const WorkerAccount> workers) {
  WorkerAccount sum;
  for (const WorkerAccount& worker : workers) {
    sum.steps += worker.steps;
    sum.compute += worker.compute;
    sum.communication += worker.communication;
    sum.peers += worker.peers;
    sum.servers += worker.servers;
    sum.bytes_sent += worker.bytes_sent;
  }
  return sum;
}

}  // namespace syncopate::bench
