// Gives a job a nonce if its launcher gives none, and checks and completes a rendezvous address
// that a resolver has derived from a scheduler's node names and job numbers. Resolvers do not use
// the network, so prepare_rendezvous.cc looks up names and opens the port. nonce_file.cc shares the
// nonce through a file.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// The look-ups that prepare_rendezvous() makes. Tests pass other functions.
struct NetworkNames {
  // Returns whether the name can be looked up.
  std::function<bool(const std::string& host)> is_known;
  // Returns whether the address belongs to this machine.
  std::function<bool(const std::string& address)> is_our_own;
  std::string host_name;  // the name of this machine
};
NetworkNames names_of_this_machine();

// Prepares the rendezvous; does nothing unless spec.rendezvous.is_derived. If the host name cannot
// be looked up, replaces it by the fallback address. On the task that hosts the rendezvous, also
// opens the listening socket and stores it in spec.rendezvous.descriptor. The socket listens at the
// address of the host, or at every interface if this address is not certain (listening_endpoint()).
// Throws UsageError if the port is in use, if the host is unknown, or if this task does not run on
// the node that the launcher's variables name.
void prepare_rendezvous(ClusterSpec& spec, const NetworkNames& names = names_of_this_machine());

// Returns the host name or address at which tasks on other hosts reach a socket of this task. For
// the task that hosts the rendezvous this is the host of the rendezvous; for other tasks it is the
// local address of a connection to the rendezvous. Throws UsageError for an unknown host.
std::string own_host_towards(const ClusterSpec& spec);

// The file with the nonce of a job. It is removed when this object is destroyed.
class NonceFile {
 public:
  // Draws a nonce and writes it to the file. Throws FileError.
  explicit NonceFile(std::filesystem::path path);
  NonceFile(const NonceFile&) = delete;
  NonceFile& operator=(const NonceFile&) = delete;
  ~NonceFile();

  const std::string& nonce() const noexcept { return nonce_; }

 private:
  const std::filesystem::path path_;
  const std::string nonce_;
};

// Sets spec.nonce if it is empty and spec.nonce_file is not. On the task that hosts the rendezvous,
// writes the file; this task must call the function before it listens. On the other tasks, waits
// for the file and reads it. Returns the written file, which must be kept until the tasks have met;
// null on the other tasks. If the job has no secret nonce, the task that hosts the rendezvous logs
// a warning of one line. Throws FileError, also if the file does not appear within `timeout`.
[[nodiscard]] std::unique_ptr<NonceFile> share_nonce(ClusterSpec& spec,
                                                     std::chrono::milliseconds timeout);

}  // namespace syncopate
