// Removes the session folder and the shared memory that an mpirun leaves behind if SIGKILL ended
// it. Called by the next launch with mpirun.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace syncopate {

struct MpiFolders {
  std::filesystem::path sessions = "/tmp";
  std::filesystem::path shared_memory = "/dev/shm";
  std::filesystem::path proc = "/proc";
  std::string host;  // the name of this host
};

// Removes the session folders and the shared memory of this user's jobs on this host if their
// mpirun has ended and no process has mapped the shared memory. Returns the removed session
// folders. Does not throw; leaves files that cannot be removed. Source: Open MPI 4.1. The session
// folder is ompi.HOST.UID/pid.PID, where HOST may lack the domain. The file contact.txt in this
// folder begins with the number of mpirun's job. The shared memory is
// vader_segment.HOST.UID.JOB.RANK, with the number of the job in hexadecimal. The numbers of all
// jobs of one mpirun have the same upper 16 bits.
std::vector<std::string> remove_mpi_leftovers(const MpiFolders& folders, uid_t user);

}  // namespace syncopate
