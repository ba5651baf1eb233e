#include "ps/client/shard_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/net/endpoint.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGreetAgain(1000);
// Of the patience with a connection that brings nothing, in what it is at first.
constexpr int kMostPatience = 10;
// A push that is dropped as often does not fit; it would be sent for ever.
constexpr int kMostResends = 5;

std::int64_t size_of(const wire::BucketPlace& bucket) { return bucket.end() - bucket.begin(); }

}  // namespace

ShardLink::ShardLink(wire::Context& context, ClientBoard& board, const ClientOptions& options,
                     int shard)
    : context_(context),
      board_(board),
      options_(options),
      shard_(shard),
      answer_patience_(options.answer_patience),
      absence_("this worker", options.server_patience, options.asked_to_stop) {
  const auto& buckets = options.declaration.buckets;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    if (buckets[b].owner() == shard) behind_[static_cast<int>(b)] = 0;
  }
}

std::string ShardLink::name() const {
  return "server " + std::to_string(shard_) +
         (address_.endpoint.empty() ? std::string() : " at " + address_.endpoint);
}

void ShardLink::follow(const wire::ServerAddressT& address, std::uint32_t worker_incarnation) {
  worker_incarnation_ = worker_incarnation;
  if (address.incarnation == 0) {
    if (socket_ != nullptr) lose_connection();
    socket_.reset();
    address_.incarnation = 0;
    return;
  }
  const bool is_same = socket_ != nullptr && address.endpoint == address_.endpoint &&
                       address.incarnation == address_.incarnation;
  address_ = address;
  if (is_same) return;
  if (socket_ != nullptr) lose_connection();
  call();
}

void ShardLink::call() {
  // Under a name of its own: a socket that was given up may still be on its way there, and a ROUTER
  // that hands a name over to it would leave this one connected to nobody.
  ++call_;
  const std::string name_of_this = "w" + std::to_string(options_.index) + "." +
                                   std::to_string(worker_incarnation_) + "." +
                                   std::to_string(call_);
  socket_ =
      wire::Socket::connect(context_, parse_endpoint(address_.endpoint, name()), name_of_this);
  absence_.begin();
}

void ShardLink::greet() {
  wire::DataHelloT hello;
  hello.nonce = options_.nonce;
  hello.worker = options_.index;
  hello.incarnation = worker_incarnation_;
  // What has no answer will be sent again, or is still to be computed: a shard that was restored
  // must not take it for known. In the middle of a step some buckets are one push ahead of others.
  const auto least =
      std::ranges::min_element(behind_, {}, [](const auto& bucket) { return bucket.second; });
  hello.sequence = least == behind_.end() ? 0 : least->second;
  for (const auto& [bucket, sequence] : behind_) {
    if (sequence > hello.sequence) hello.ahead.push_back(bucket);
  }
  hello.fingerprint = address_.fingerprint;
  hello.segment = options_.segment;
  hello.call = call_;
  socket_->send(envelope("", make_message(std::move(hello))));
  greet_again_ = Deadline::after(kGreetAgain);
  expect_answer();
}

void ShardLink::expect_answer() {
  if (!answers_until_) answers_until_ = Deadline::after(answer_patience_);
}

void ShardLink::lose_connection() {
  is_met_ = false;
  greet_again_.reset();
  answers_until_.reset();
  requests_.end_connection();
  absence_.begin();
}

void ShardLink::ask(ShardRequest request) {
  requests_.add(std::move(request));
  send_what_fits();
}

void ShardLink::drop_all(std::uint64_t sequence) {
  for (auto& [bucket, behind] : behind_) behind = sequence;
  socket_.reset();
  address_.incarnation = 0;
  requests_.clear();
  lose_connection();
}

void ShardLink::drop_copies_but(std::uint64_t cut) { requests_.drop_copies_but(cut); }

void ShardLink::send_what_fits() {
  std::vector<const ShardRequest*> pulls;
  for (OpenRequest* open : requests_.take_what_fits()) {
    if (open->request.kind == ShardRequest::Kind::kPull) {
      pulls.push_back(&open->request);
    } else {
      send_request(open->request);
    }
  }
  if (!pulls.empty()) send_pulls(pulls);
}

void ShardLink::send_request(ShardRequest& request) {
  std::size_t first = 0;
  if (request.kind == ShardRequest::Kind::kPush) {
    wire::PushT& push = *request.message.body.AsPush();
    push.in_segment = uses_segment_ && push.codec == wire::Codec::F32;
    if (push.in_segment) first = 1;
  }
  wire::Envelope message = envelope("", request.message);
  if (request.kind == ShardRequest::Kind::kWrite) {
    // As with copies: whoever wrote may be gone, its memory with it. Of those that are copied here
    // there are no more under way than credit allows.
    const std::lock_guard lock(board_.mutex);
    if (board_.failure) return;
    for (const auto bytes : request.payload) message.frames.push_back(wire::Frame::copy_of(bytes));
  } else {
    for (std::size_t i = first; i < request.payload.size(); ++i) {
      // A push's bytes are the client's own or outlive it, and are not written to until it is
      // answered; then it has arrived.
      message.frames.push_back(wire::Frame::borrow(request.payload[i], {}));
    }
  }
  socket_->send(std::move(message));
}

void ShardLink::send_pulls(const std::vector<const ShardRequest*>& requests) {
  wire::PullT pull;
  for (const ShardRequest* request : requests) pull.buckets.push_back(request->bucket);
  pull.in_segment = uses_segment_;
  socket_->send(envelope("", make_message(std::move(pull))));
}

void ShardLink::run() {
  if (socket_ == nullptr) return;
  for (bool busy = true; busy;) {
    busy = false;
    if (const auto event = socket_->link_event()) {
      busy = true;
      if (*event == wire::LinkEvent::kConnected) {
        greet();
      } else {
        lose_connection();
      }
    }
    if (const auto message = socket_->receive()) {
      busy = true;
      hear(*message);
    }
    socket_->flush();
  }
  send_what_fits();
}

void ShardLink::hear(const wire::Envelope& envelope) {
  const auto message = wire::decode(envelope.frames.front().bytes());
  if (!message) return;
  answers_until_.reset();
  const wire::BodyUnion& body = message->body;
  switch (body.type) {
    case wire::Body::DataWelcome:
      return welcome(*body.AsDataWelcome());
    case wire::Body::Values:
      return take_values(*body.AsValues(), envelope);
    case wire::Body::Consumed: {
      OpenRequest* const open =
          requests_.find_sent({ShardRequest::Kind::kPush, body.AsConsumed()->bucket});
      if (open != nullptr) requests_.give_credit_back(*open);
      return;
    }
    case wire::Body::ProbeAnswer:
      return probe_answer(*body.AsProbeAnswer());
    case wire::Body::Written:
      return take_answer(ShardRequest::Kind::kWrite,
                         body.AsWritten()->state ? -1 : body.AsWritten()->bucket, envelope);
    case wire::Body::CutValues: {
      const wire::CutValuesT& copy = *body.AsCutValues();
      const int bucket = copy.state ? -1 : copy.bucket;
      const OpenRequest* const open = requests_.find_sent({ShardRequest::Kind::kReadCut, bucket});
      if (open == nullptr || open->request.message.body.AsReadCut()->cut != copy.cut) return;
      return take_answer(ShardRequest::Kind::kReadCut, bucket, envelope);
    }
    case wire::Body::Refused:
      return board_.fail(name() + ": " + body.AsRefused()->line, body.AsRefused()->is_usage_error
                                                                     ? FailureKind::kUsage
                                                                     : FailureKind::kPeer);
    default:
      return;  // nothing a shard says to a worker
  }
}

void ShardLink::probe_answer(const wire::ProbeAnswerT& answer) {
  OpenRequest* const open = requests_.find_sent({ShardRequest::Kind::kPush, answer.bucket});
  if (open == nullptr || answer.is_known) return;
  const wire::PushT& push = *open->request.message.body.AsPush();
  if (push.sequence != answer.sequence) return;
  // On one connection a probe arrives after its push: the shard has dropped it.
  if (++open->times_unknown > kMostResends) {
    return board_.fail(name() + " dropped this worker's push of bucket " +
                       std::to_string(answer.bucket) + " (" + wire::EnumNameCodec(push.codec) +
                       ", " + std::to_string(open->request.payload.front().size()) + " bytes) " +
                       std::to_string(open->times_unknown) +
                       " times; see what it printed, and start all tasks with the same program");
  }
  requests_.send_again(*open);
}

void ShardLink::welcome(const wire::DataWelcomeT& welcome) {
  if (is_met_) return;
  is_met_ = true;
  greet_again_.reset();
  absence_.end();
  uses_segment_ = welcome.uses_segment;
  shard_incarnation_ = welcome.incarnation;
  requests_.begin_connection(welcome.credit_bytes, uses_segment_);
  if (options_.requires_segment && !uses_segment_) {
    board_.fail("--transport shm: " + name() +
                    " cannot map this worker's memory; they are on two machines, or in two network "
                    "namespaces: choose --transport auto",
                FailureKind::kUsage);
    return;
  }
  if (!was_met_) {
    was_met_ = true;
    {
      const std::lock_guard lock(board_.mutex);
      ++board_.shards_met;
      board_.traffic.shards_in_segment += uses_segment_ ? 1 : 0;
    }
    board_.changed.notify_all();
  } else {
    log(LogLevel::kInfo, name() + " is there again");
  }
  send_what_fits();
}

void ShardLink::take_values(const wire::ValuesT& header, const wire::Envelope& envelope) {
  using Kind = ShardRequest::Kind;
  const RequestQueue::Key key{header.sequence == 0 ? Kind::kPull : Kind::kPush, header.bucket};
  OpenRequest* const open = requests_.find_sent(key);
  if (open == nullptr) return;  // answered already
  const wire::PushT* const push =
      key.first == Kind::kPush ? open->request.message.body.AsPush() : nullptr;
  if (push != nullptr && push->sequence != header.sequence) return;
  const wire::BucketPlace& place =
      options_.declaration.buckets[static_cast<std::size_t>(header.bucket)];
  const auto count = static_cast<std::size_t>(size_of(place));
  if (!header.in_segment) {
    if (envelope.frames.size() != 2 || envelope.frames[1].bytes().size() != count * sizeof(float)) {
      return board_.fail(name() + " sent values of another length than bucket " +
                         std::to_string(header.bucket) + " has; are both the same program?");
    }
    std::memcpy(options_.values.data() + place.begin(), envelope.frames[1].bytes().data(),
                count * sizeof(float));
  }
  if (push != nullptr) behind_[header.bucket] = header.sequence;
  bool is_waited_for = false;
  {
    const std::lock_guard lock(board_.mutex);
    if (push != nullptr && push->ends_step && push->batch != nullptr) {
      std::erase(board_.in_hand, from_wire(*push->batch));
    }
    ClientBoard::Bucket& bucket = board_.buckets[static_cast<std::size_t>(header.bucket)];
    bucket.version = header.version;
    bucket.shard_incarnation = shard_incarnation_;
    bucket.awaited = false;
    if (header.report) board_.sums = *header.report;
    board_.traffic.peers_wait_seconds += 1e-6 * static_cast<double>(header.peers_wait_us);
    board_.traffic.bytes_pulled += static_cast<std::int64_t>(count * sizeof(float));
    is_waited_for = bucket.waiting > 0 || header.report;
  }
  answer_patience_ = options_.answer_patience;
  requests_.finish(key);
  if (is_waited_for) board_.changed.notify_all();
}

void ShardLink::take_answer(ShardRequest::Kind kind, int bucket, const wire::Envelope& envelope) {
  const OpenRequest* const open = requests_.find_sent({kind, bucket});
  if (open == nullptr) return;
  const std::vector<std::span<std::byte>>& answer = open->request.answer;
  const bool is_state = kind == ShardRequest::Kind::kReadCut && bucket < 0;
  if (is_state) {
    const std::span<const std::byte> bytes =
        envelope.frames.size() > 1 ? envelope.frames[1].bytes() : std::span<const std::byte>();
    const std::lock_guard lock(board_.mutex);
    board_.state.resize(bytes.size() / sizeof(float));
    // Of a model without running statistics there is no address to copy from.
    const std::size_t size = board_.state.size() * sizeof(float);
    if (size > 0) std::memcpy(board_.state.data(), bytes.data(), size);
  } else {
    // Whoever waits for the copy leaves when something fails, and its memory may be no more.
    std::unique_lock lock(board_.mutex);
    if (board_.failure) return;
    for (std::size_t i = 0; i < answer.size(); ++i) {
      if (i + 1 >= envelope.frames.size() ||
          envelope.frames[i + 1].bytes().size() != answer[i].size()) {
        lock.unlock();
        return board_.fail(name() + " sent a copy of another length than bucket " +
                           std::to_string(bucket) + " has; are both the same program?");
      }
      std::memcpy(answer[i].data(), envelope.frames[i + 1].bytes().data(), answer[i].size());
    }
  }
  {
    const std::lock_guard lock(board_.mutex);
    --board_.requests_open;
  }
  answer_patience_ = options_.answer_patience;
  requests_.finish({kind, bucket});
  board_.changed.notify_all();
}

void ShardLink::tick() {
  if (const auto reason = absence_.verdict(name(), options_.declaration.writes_checkpoints)) {
    return board_.fail(*reason);
  }
  // A ROUTER does not tell a connection that it serves no more. Called anew, under another name,
  // the shard either answers or was away, and knows what it has already.
  if (answers_until_ && answers_until_->passed()) {
    if (is_met_) {
      log(LogLevel::kWarning, name() + " has said nothing for " +
                                  in_seconds(answers_until_->patience()) + "; calling it anew");
    }
    // Over a slow link an answer may only have been late, behind what was sent before it.
    answer_patience_ = std::min(2 * answer_patience_, kMostPatience * options_.answer_patience);
    lose_connection();
    return call();
  }
  if (greet_again_ && greet_again_->passed()) greet();
  if (!is_met_) return;
  for (OpenRequest* open : requests_.take_overdue()) {
    ShardRequest& request = open->request;
    // Of what is no push it tells nothing but that the shard is there.
    wire::ProbeT probe;
    probe.bucket = request.bucket;
    if (request.kind == ShardRequest::Kind::kPush) {
      probe.sequence = request.message.body.AsPush()->sequence;
    } else if (request.kind == ShardRequest::Kind::kPull) {
      send_pulls({&request});
    } else {
      send_request(request);
    }
    socket_->send(envelope("", make_message(probe)));
    expect_answer();
  }
}

void ShardLink::forgive(std::chrono::nanoseconds slept) {
  absence_.forgive(slept);
  if (answers_until_) answers_until_ = Deadline::after(answer_patience_);
}

void ShardLink::append_descriptors(std::vector<int>& descriptors) const {
  if (socket_ == nullptr) return;
  for (const int descriptor : socket_->descriptors()) descriptors.push_back(descriptor);
}

}  // namespace syncopate::ps
