// Expands Slurm's short forms for nodes, such as "n[1-3,7]", and for tasks per node, such as
// "2(x3),1". Computes from them which task runs on which node. Pure functions. The order of nodes
// is kept, because ranks are assigned in this order.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "strategies/cluster/resolvers/slurm_step.h"

namespace syncopate {
namespace {

constexpr std::size_t kMostHosts = 65536;
constexpr std::size_t kMostDigits = 18;  // the sum of two such numbers fits in 64 bits
constexpr std::string_view kDigits = "0123456789";

// Reads a text from left to right and reports errors with their column.
class Cursor {
 public:
  Cursor(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool take(char expected) {
    if (done() || text_[at_] != expected) return false;
    ++at_;
    return true;
  }
  // Takes the text from the current position up to the first of `ends`, or the rest of the text.
  std::string_view take_until(std::string_view ends) {
    const std::size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    const std::string_view taken = text_.substr(at_, end - at_);
    at_ = end;
    return taken;
  }
  std::string_view take_digits() {
    const std::size_t end = std::min(text_.find_first_not_of(kDigits, at_), text_.size());
    const std::string_view taken = text_.substr(at_, end - at_);
    at_ = end;
    return taken;
  }
  std::uint64_t number(std::string_view digits) const {
    const auto value = parse_number<std::uint64_t>(digits);
    if (!value || digits.size() > kMostDigits) refuse("expected a number of at most 18 digits");
    return *value;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("{}='{}', column {}: {}", what_, text_, at_ + 1, why));
  }

 private:
  std::string_view text_;
  std::string_view what_;
  std::size_t at_ = 0;
};

// Reads the ranges inside brackets, "1-3,7". All numbers of a range are padded to the width of its
// first number.
std::vector<std::string> read_group(Cursor& cursor) {
  std::vector<std::string> numbers;
  do {
    const std::string_view first = cursor.take_digits();
    const std::uint64_t from = cursor.number(first);
    const std::uint64_t to = cursor.take('-') ? cursor.number(cursor.take_digits()) : from;
    if (to < from) cursor.refuse("a range goes upwards");
    if (numbers.size() + (to - from) >= kMostHosts) cursor.refuse("more than 65536 hosts");
    for (std::uint64_t number = from; number <= to; ++number) {
      numbers.push_back(fmt::format("{:0{}}", number, first.size()));
    }
  } while (cursor.take(','));
  if (!cursor.take(']')) cursor.refuse("expected ',', '-' or ']'");
  return numbers;
}

// Appends every ending of the list to every name.
std::vector<std::string> combine(const std::vector<std::string>& names,
                                 const std::vector<std::string>& endings, const Cursor& cursor) {
  if (names.size() * endings.size() > kMostHosts) cursor.refuse("more than 65536 hosts");
  std::vector<std::string> all;
  all.reserve(names.size() * endings.size());
  for (const std::string& name : names) {
    for (const std::string& ending : endings) all.push_back(name + ending);
  }
  return all;
}

// Reads one token of the list, such as "rack[0-1]n[0-1]-ib", and returns its hosts.
std::vector<std::string> read_hosts(Cursor& cursor) {
  std::vector<std::string> names = {""};
  for (;;) {
    const std::string_view plain = cursor.take_until("[], \t\n");
    for (std::string& name : names) name += plain;
    if (cursor.take('[')) {
      names = combine(names, read_group(cursor), cursor);
    } else if (cursor.peek() == ']') {
      cursor.refuse("a ']' without '['");
    } else {
      return names;
    }
  }
}

// Places at_a_time tasks on each node in turn, round after round, until every node is full.
std::vector<Place> deal_tasks(const std::vector<NodeTasks>& nodes, int at_a_time) {
  const int total =
      std::accumulate(nodes.begin(), nodes.end(), 0,
                      [](int sum, const NodeTasks& node) { return sum + node.tasks; });
  std::vector<int> placed(nodes.size(), 0);
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(total));
  while (static_cast<int>(places.size()) < total) {
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const int turn = std::min(at_a_time, nodes[n].tasks - placed[n]);
      for (int i = 0; i < turn; ++i) places.push_back({nodes[n].node, placed[n]++});
    }
  }
  return places;
}

}  // namespace

std::vector<std::string> expand_hostlist(std::string_view text, std::string_view what) {
  std::vector<std::string> hosts;
  Cursor cursor(text, what);
  while (!cursor.done()) {
    if (cursor.take(',') || cursor.take(' ') || cursor.take('\t') || cursor.take('\n')) continue;
    const std::vector<std::string> more = read_hosts(cursor);
    hosts.insert(hosts.end(), more.begin(), more.end());
    if (hosts.size() > kMostHosts) cursor.refuse("more than 65536 hosts");
  }
  if (hosts.empty()) cursor.refuse("expected at least one host");
  return hosts;
}

std::vector<int> expand_task_counts(std::string_view text, std::string_view what) {
  std::vector<int> counts;
  Cursor cursor(text, what);
  do {
    const std::uint64_t tasks = cursor.number(cursor.take_digits());
    std::uint64_t repeats = 1;
    if (cursor.take('(')) {
      if (!cursor.take('x')) cursor.refuse("expected '(xN)'");
      repeats = cursor.number(cursor.take_digits());
      if (!cursor.take(')')) cursor.refuse("expected ')'");
    }
    if (tasks == 0 || tasks > kMostHosts || repeats == 0 || repeats > kMostHosts) {
      cursor.refuse("expected counts from 1 to 65536");
    }
    counts.insert(counts.end(), repeats, static_cast<int>(tasks));
    if (counts.size() > kMostHosts) cursor.refuse("more than 65536 hosts");
  } while (cursor.take(','));
  if (!cursor.done()) cursor.refuse("expected ',' or '(xN)'");
  return counts;
}

std::vector<Place> place_tasks(const std::vector<NodeTasks>& nodes, std::string_view distribution,
                               int plane_size) {
  const std::string_view over_nodes = distribution.substr(0, distribution.find_first_of(":,"));
  if (over_nodes == "cyclic") return deal_tasks(nodes, 1);
  if (over_nodes == "plane") return deal_tasks(nodes, std::max(1, plane_size));
  int most = 1;
  for (const NodeTasks& node : nodes) most = std::max(most, node.tasks);
  return deal_tasks(nodes, most);
}

std::vector<Place> place_by_node(const std::vector<std::string>& nodes) {
  std::map<std::string, int, std::less<>> tasks;
  std::vector<Place> places;
  places.reserve(nodes.size());
  for (const std::string& node : nodes) places.push_back({node, tasks[node]++});
  return places;
}

}  // namespace syncopate
