// The data side of a server: one thread that owns the data socket, takes pushes and pulls to the
// shard, and sends what the shard answers. The control thread tells it what the job decides, and
// hears of what was trained.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "ps/net/link_forwarder.h"
#include "ps/net/segment.h"
#include "ps/net/wake_event.h"
#include "ps/server/buffer_pool.h"
#include "ps/server/served_variables.h"
#include "ps/server/service_record.h"
#include "ps/server/update_threads.h"
#include "ps/shard/running_statistics.h"
#include "ps/wire/zmq_socket.h"

namespace syncopate::ps {

struct DataServiceOptions {
  int index = 0;
  int workers = 1;
  std::string nonce;
  std::string host;  // under which workers call it
  std::uint16_t port = 0;
  int threads = 1;
  std::int64_t credit_bytes = std::int64_t{8} << 20;
  bool uses_segments = true;
  int servers = 1;
  std::filesystem::path record;  // empty: none
  Link link;
};

// A push that ended a step.
struct StepNews {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  wire::PushT push;
  bool is_applied = true;  // else it came too late
};

// Thread-safe; its own thread does the work.
class DataService {
 public:
  explicit DataService(const DataServiceOptions& options);
  DataService(const DataService&) = delete;
  DataService& operator=(const DataService&) = delete;
  ~DataService();

  std::uint16_t port() const noexcept { return port_; }

  // From now on it serves these; whoever greeted before has to greet again.
  void serve(std::shared_ptr<ServedVariables> served, std::uint32_t incarnation);
  // This incarnation of the worker takes part no more, and an earlier one neither.
  void forget(WorkerId worker, std::uint32_t incarnation);
  // The shard was changed from outside: work may be due on any bucket.
  void look_again();
  // Is filled by the shard from now on, which is frozen for it; finished_cut() tells when it is
  // whole. One at a time: an earlier one is given up.
  void expect_cut(std::shared_ptr<CutCopy> copy);
  // ReadCut finds this copy; null: none.
  void publish(std::shared_ptr<const CutCopy> copy);
  void set_running_statistics(std::vector<float> values);

  // Readable when one of the following has something.
  int descriptor() const noexcept { return news_event_.descriptor(); }
  std::vector<StepNews> take_news();
  std::shared_ptr<CutCopy> finished_cut();
  // What ended its thread, or one of those that update.
  std::optional<std::string> failure();

  std::int64_t foreign_messages() const noexcept { return foreign_messages_; }
  // Of workers that have greeted: dropped, since they did not fit what is served.
  std::int64_t unfit_messages() const noexcept { return unfit_messages_; }

 private:
  using Clock = std::chrono::steady_clock;
  // A worker that has greeted.
  struct Session {
    std::uint32_t incarnation = 0;
    std::uint64_t call = 0;
    std::string peer;  // its routing id
    std::shared_ptr<const MappedSegment> segment;
    bool is_complained_of = false;  // in the log
  };
  // A push or pull that the shard has not answered.
  struct Open {
    WorkerId worker = 0;
    std::uint32_t incarnation = 0;
    int bucket = 0;    // of the job
    wire::PushT push;  // sequence 0: a pull
    std::vector<wire::Frame> frames;
    std::vector<float> aligned;  // of a small gradient that came unaligned
    Tensor answer;               // empty in a segment
    std::shared_ptr<const MappedSegment>
        segment;  // the shard may write there after its worker left
    bool is_consumed = false;
    Clock::time_point heard;    // the push came,
    Clock::time_point applied;  // and is in the values
  };
  struct Sums {
    std::uint64_t version = 0;
    wire::StepSumsT sums;
    Clock::time_point last_heard;  // of the pushes in it
  };

  // Of one bucket: the next event to be taken, and those that came before their turn.
  struct EventOrder {
    std::uint64_t next = 0;
    std::map<std::uint64_t, ShardEvent> early;
  };

  void run(const std::stop_token& stop);
  void fail(const std::exception& error);
  void do_tasks();
  void hear(wire::Envelope& envelope);
  void greet(const std::string& peer, const wire::DataHelloT& hello);
  void end_session(WorkerId worker);
  void refuse(const std::string& peer, const std::string& line, bool is_usage_error);
  Session* session_of(const std::string& peer);
  std::size_t state_bytes() const;  // of the running statistics
  // Counts it, and says so in the log once per peer.
  void drop(const std::string& peer, const char* message, int bucket, const std::string& trouble);
  // Of a bucket of the job, by the shard's count; another shard's and none: dropped, -1.
  int own_bucket(const std::string& peer, const char* message, int bucket);
  void push(const std::string& peer, wire::Envelope& envelope, const wire::PushT& header);
  void pull(const std::string& peer, const wire::PullT& header);
  void probe(const std::string& peer, const wire::ProbeT& header);
  void write(const std::string& peer, const wire::Envelope& envelope, const wire::WriteT& header);
  void read_cut(const std::string& peer, const wire::ReadCutT& header);
  // Where the next values of the bucket go for this worker.
  std::span<float> answer_window(Session& session, Open& open, int shard_bucket);
  // Has up to `threads` do what is due on the bucket; where that is one, this thread does it.
  void schedule(int shard_bucket, int threads);
  void schedule_all();
  int threads_for(const Session& session) const;
  // Appends what can be taken now.
  void put_in_order(const ShardEvent& event, std::vector<ShardEvent>& ordered);
  void take_events(const std::vector<ShardEvent>& events);
  void applied(const ShardEvent& event, Open& open);
  void answer(const ShardEvent& event, Open& open);
  // How long the push that ended a step was kept from its answer by workers, not by bytes: by those
  // of the same step that came later, or by those that the rule has it wait for.
  std::chrono::microseconds peers_wait(const Open& open, const Sums* of_step) const;
  void finish_cut_bucket(std::uint64_t cut);
  void let_go_of_retired();
  std::int64_t credit() const;

  const DataServiceOptions options_;
  wire::Context context_;
  std::unique_ptr<wire::Socket> socket_;
  std::unique_ptr<LinkForwarder> forwarder_;  // null: workers reach the socket itself
  std::uint16_t port_ = 0;

  // The data thread's.
  std::shared_ptr<ServedVariables> served_;
  std::uint32_t incarnation_ = 0;
  std::map<WorkerId, Session> sessions_;
  std::map<std::string, WorkerId> workers_by_peer_;  // one peer for each session
  std::map<WorkerId, std::uint32_t> forgotten_;      // incarnations up to these
  std::unordered_map<std::uint64_t, Open> open_;     // by token
  // What update threads may still read and write of a shard that a restart has replaced.
  struct Retired {
    std::shared_ptr<ServedVariables> served;
    std::unordered_map<std::uint64_t, Open> open;
  };
  std::vector<Retired> retired_;
  std::uint64_t next_token_ = 1;
  std::map<BucketId, EventOrder> event_order_;
  std::map<int, Sums> sums_;  // by bucket of the shard, of the update under way
  std::shared_ptr<BufferPool> buffers_ = std::make_shared<BufferPool>();
  std::shared_ptr<CutCopy> expected_cut_;
  int cut_buckets_left_ = 0;
  std::shared_ptr<const CutCopy> published_;
  RunningStatistics statistics_{{}};
  std::unique_ptr<ServiceRecord> record_;
  bool has_news_ = false;  // that the control thread has not been woken for
  std::atomic<std::int64_t> foreign_messages_{0};
  std::atomic<std::int64_t> unfit_messages_{0};

  // Between threads.
  WakeEvent wake_;
  WakeEvent news_event_;
  std::mutex mutex_;  // guards those below
  std::vector<std::function<void()>> tasks_;
  std::vector<std::pair<const Shard*, ShardEvent>> events_;
  std::vector<StepNews> news_;
  std::shared_ptr<CutCopy> finished_cut_;
  std::optional<std::string> failure_;

  std::unique_ptr<UpdateThreads> updates_;
  std::jthread thread_;
};

}  // namespace syncopate::ps
