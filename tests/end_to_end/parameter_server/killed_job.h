// A job whose roles are killed while it trains, and what must hold when it has ended: it has
// trained all its steps, every sample is counted once, and no push is in the values twice.
#pragma once

#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {

struct KilledJob {
  // async, ssp or sync; backup: sync with one backup worker; ringmaster or rennala: async with this
  // staleness rule; async_rounds, ssp_rounds, quorum_rounds or delayed_rounds:
  // workers push displacements, with momentum in every fourth one under delayed_rounds.
  const char* rule = "async";
  int steps = 300;
  const char* snapshot_every = "1";  // seconds

  bool is_synchronous() const { return std::string(rule) == "sync"; }
  // Returns the command of a job of 3 workers and 2 servers (quorum_rounds: 1 server), which writes
  // its metrics to m.jsonl in the folder and its record to order.
  std::vector<std::string> command(const TemporaryFolder& folder) const;
};

// The numbers of roles that were killed while the job trained.
struct Kills {
  int workers = 0;
  int servers = 0;
};

// Fails the test unless the job has ended well. A batch may be in the values twice only if its
// worker was killed, and then the summary counts it. The count of a lost server 0 is that of its
// last snapshot.
void expect_ended_exactly(const KilledJob& job, const TemporaryFolder& folder,
                          const ProgramResult& result, const Kills& kills);

}  // namespace syncopate::test
