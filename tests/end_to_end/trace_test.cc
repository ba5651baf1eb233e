// Tests --trace: the Chrome trace of a run under each strategy, and what is left of it when the run
// is stopped or killed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "tests/end_to_end/support/run_program.h"
#include "tests/end_to_end/support/training_runs.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {
namespace {

using nlohmann::json;

// A span of a trace; times in microseconds.
struct TracedSpan {
  std::string name;
  std::int64_t begun = 0;
  std::int64_t ended = 0;
};

struct ReadTrace {
  std::string process;
  std::map<int, std::string> threads;                    // names by tid
  std::map<std::string, std::vector<TracedSpan>> spans;  // by name of the thread
};

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

const std::map<std::string, std::string> kCategories{{"step", "step"},
                                                     {"input", "input"},
                                                     {"forward", "compute"},
                                                     {"backward", "compute"},
                                                     {"update", "update"},
                                                     {"communication", "communication"},
                                                     {"checkpoint", "checkpoint"},
                                                     {"evaluation", "evaluation"}};

void check_name(const json& event, int task, ReadTrace& trace) {
  EXPECT_EQ(keys_of(event), (std::set<std::string>{"name", "ph", "pid", "tid", "args"}));
  EXPECT_EQ(event.at("pid"), task);
  EXPECT_EQ(keys_of(event.at("args")), (std::set<std::string>{"name"}));
  const std::string name = event.at("args").at("name");
  if (event.at("name") == "process_name") {
    trace.process = name;
  } else {
    ASSERT_EQ(event.at("name"), "thread_name");
    EXPECT_TRUE(trace.threads.emplace(event.at("tid").get<int>(), name).second) << event;
  }
}

void check_span(const json& event, int task, ReadTrace& trace) {
  std::set<std::string> keys{"name", "cat", "ph", "ts", "dur", "pid", "tid"};
  if (event.contains("args")) keys.insert("args");
  EXPECT_EQ(keys_of(event), keys);
  EXPECT_EQ(event.at("ph"), "X");
  EXPECT_EQ(event.at("pid"), task);
  const std::string name = event.at("name");
  ASSERT_TRUE(kCategories.contains(name)) << event;
  EXPECT_EQ(event.at("cat"), kCategories.at(name));
  ASSERT_TRUE(event.at("ts").is_number_integer() && event.at("dur").is_number_integer());
  const auto begun = event.at("ts").get<std::int64_t>();
  const auto length = event.at("dur").get<std::int64_t>();
  EXPECT_GT(length, 0);
  ASSERT_TRUE(trace.threads.contains(event.at("tid"))) << event;
  if (name == "step") {
    EXPECT_GT(event.at("args").at("step"), 0);
  }
  trace.spans[trace.threads.at(event.at("tid"))].push_back({name, begun, begun + length});
}

// Reads a trace and checks each field of its events, and that the spans of a thread nest.
ReadTrace read_trace(const json& events, int task) {
  ReadTrace trace;
  for (const json& event : events) {
    if (event.at("ph") == "M") {
      check_name(event, task, trace);
    } else {
      check_span(event, task, trace);
    }
  }
  EXPECT_EQ(trace.process, "task " + std::to_string(task));
  for (auto& [thread, spans] : trace.spans) {
    std::ranges::sort(spans, [](const TracedSpan& a, const TracedSpan& b) {
      return a.begun != b.begun ? a.begun < b.begun : a.ended > b.ended;
    });
    std::vector<std::int64_t> ends;  // of the spans around the current one
    for (const TracedSpan& span : spans) {
      while (!ends.empty() && ends.back() <= span.begun) ends.pop_back();
      EXPECT_TRUE(ends.empty() || span.ended <= ends.back())
          << thread << ": " << span.name << " overlaps another span";
      ends.push_back(span.ended);
    }
  }
  return trace;
}

std::size_t count(const std::vector<TracedSpan>& spans, const std::string& name) {
  return static_cast<std::size_t>(std::ranges::count(spans, name, &TracedSpan::name));
}

double seconds(const std::vector<TracedSpan>& spans, const std::string& name) {
  std::int64_t sum = 0;
  for (const TracedSpan& span : spans) {
    if (span.name == name) sum += span.ended - span.begun;
  }
  return static_cast<double>(sum) * 1e-6;
}

struct TracedJob {
  std::string name;
  Arguments where;
  int tasks = 1;
  int replicas = 1;     // of each task
  bool updates = true;  // the replicas make the updates, not servers
  int stages = 1;       // of a pipeline, whose passes are in rows of their own
};

void PrintTo(const TracedJob& job, std::ostream* out) { *out << job.name; }

std::vector<TracedJob> jobs() {
  const Arguments central =
      as_words("train --strategy central-storage --replicas 2 --share-devices");
  const Arguments pipeline = as_words("train --strategy pipeline --stages 2 --share-devices");
  return {
      {"OneDevice", one_device()},
      {"Mirrored", mirrored(2), 1, 2},
      {"MultiWorkerMirrored", multi_worker(2), 2},
      {"Pipeline", pipeline, 1, 1, true, 2},
      {"CentralStorage", central, 1, 2},
      {"AsynchronousCentralStorage", central + Arguments{"--consistency", "async"}, 1, 2, false},
      {"SynchronousServers",
       parameter_servers({.workers = 2, .servers = 1}, {"--consistency", "sync"}), 2, 1, false},
      {"AsynchronousServers",
       parameter_servers({.workers = 2, .servers = 1}, {"--consistency", "async"}), 2, 1, false}};
}

class Trace : public testing::TestWithParam<TracedJob> {
 protected:
  std::vector<ReadTrace> read_traces() const {
    std::vector<ReadTrace> traces;
    const int tasks = GetParam().tasks;
    for (int task = 0; task < tasks; ++task) {
      const std::string file = tasks == 1 ? "t.json" : "t." + std::to_string(task) + ".json";
      traces.push_back(read_trace(json::parse(read_text(runs_ / file)), task));
    }
    return traces;
  }

  TrainingRuns runs_;
};

// Worker 1 is slow, so that synchronous workers wait for it.
TEST_P(Trace, ShowsWhereTheTimeOfEachReplicaWent) {
  const TracedJob& job = GetParam();
  constexpr int kSteps = 40;
  Arguments what = as_words("--model mlp --data synthetic:1x8x8:4:6400 --steps",
                            std::to_string(kSteps), "--eval-every 0 --trace", runs_ / "t.json");
  const bool is_delayed = job.stages == 1;
  if (is_delayed) what = what + Arguments{"--service-time", "constant:4"};
  if (job.tasks * job.replicas > 1) what = what + Arguments{"--slow", "worker=1,factor=5"};
  runs_.train(job.where, what);
  const std::vector<ReadTrace> traces = read_traces();
  int steps = 0;
  std::size_t updates = 0;
  for (const json& worker : runs_.lines("worker")) {
    const auto index = worker.at("worker").get<int>();
    SCOPED_TRACE(index);
    const std::string replica = "replica " + std::to_string(index % job.replicas);
    const auto& spans = traces.at(static_cast<std::size_t>(index / job.replicas)).spans.at(replica);
    const auto own_steps = worker.at("steps").get<std::size_t>();
    steps += worker.at("steps").get<int>();
    EXPECT_EQ(count(spans, "step"), own_steps);
    const auto& task = traces.at(static_cast<std::size_t>(index / job.replicas)).spans;
    const bool has_stages = job.stages > 1;
    for (int stage = 0; stage < job.stages; ++stage) {
      const auto& passes = has_stages ? task.at("stage " + std::to_string(stage)) : spans;
      for (const char* name : {"forward", "backward"}) EXPECT_EQ(count(passes, name), own_steps);
    }
    const double waited = seconds(has_stages ? task.at("stage 0") : spans, "communication");
    updates += count(spans, "update");
    // The tolerance, 10 % and 50 ms, allows for a machine that is busy: between two readings of the
    // clock another thread may run.
    const double tolerance = 0.1 * worker.at("seconds").get<double>() + 0.05;
    const double exposed =
        worker.at("communication_exposed_seconds").get<double>() +
        (worker.at("peers_wait_seconds").is_null() ? 0.0
                                                   : worker.at("peers_wait_seconds").get<double>());
    EXPECT_NEAR(waited, exposed, tolerance);
    EXPECT_NEAR(seconds(spans, "step") - waited, worker.at("compute_seconds").get<double>(),
                tolerance);
    if (is_delayed) {
      EXPECT_GT(seconds(spans, "step"), 0.004 * static_cast<double>(own_steps));
    }
    if (replica == "replica 0") {
      EXPECT_NEAR(seconds(spans, "input"), worker.at("input_wait_seconds").get<double>(),
                  tolerance);
    }
  }
  EXPECT_EQ(updates > 0, job.updates);
  EXPECT_EQ(steps, static_cast<int>(runs_.lines("worker").size()) * kSteps /
                       (job.where.back() == "async" ? 2 : 1));
}

TEST_P(Trace, HasReadersEvaluationsAndCheckpoints) {
  const TracedJob& job = GetParam();
  runs_.train(job.where,
              as_words("--model mlp --data synthetic:1x8x8:4:640 --epochs 2 --checkpoint-dir",
                       runs_ / "ck", "--trace", runs_ / "t.json"));
  std::size_t evaluations = 0;
  std::size_t checkpoints = 0;
  for (const ReadTrace& trace : read_traces()) {
    std::size_t read = 0;
    for (const auto& [thread, spans] : trace.spans) {
      evaluations += count(spans, "evaluation");
      checkpoints += count(spans, "checkpoint");
      if (thread.find("reader") != std::string::npos) {
        read += count(spans, "input");
        EXPECT_EQ(count(spans, "input"), spans.size()) << thread;
      }
    }
    // An asynchronous worker may begin when the others have trained everything.
    if (job.where.back() != "async") {
      EXPECT_GT(read, 0U) << trace.process;
    }
  }
  EXPECT_GE(evaluations, 2U);
  EXPECT_GE(checkpoints, 2U);
}

std::string name_of(const testing::TestParamInfo<TracedJob>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Under, Trace, testing::ValuesIn(jobs()), name_of);

// Starts a run that does not end by itself.
RunningProgram long_run(const TemporaryFolder& scratch) {
  return RunningProgram(
      syncopate_command(as_words("train --model mlp --data synthetic:1x8x8:4 --threads 1 "
                                 "--no-progress --epochs 100000 --checkpoint-dir",
                                 scratch / "ck", "--trace", scratch / "t.json")));
}

TEST(TraceOfARunThatEndsEarly, IsWholeAfterARequestToStop) {
  const TemporaryFolder scratch;
  RunningProgram program = long_run(scratch);
  ASSERT_TRUE(program.wait_until_file_has(scratch / "t.json", "\"step\":20}"));
  program.send(SIGTERM);
  const ProgramResult stopped = program.wait();
  ASSERT_EQ(stopped.exit_code, 75) << stopped.err;
  const ReadTrace trace = read_trace(json::parse(read_text(scratch / "t.json")), 0);
  EXPECT_GE(count(trace.spans.at("replica 0"), "step"), 20U);
  EXPECT_GE(count(trace.spans.at("replica 0"), "checkpoint"), 1U);
}

TEST(TraceOfARunThatEndsEarly, LacksOnlyItsEndAfterAKill) {
  const TemporaryFolder scratch;
  RunningProgram program = long_run(scratch);
  ASSERT_TRUE(program.wait_until_file_has(scratch / "t.json", "\"step\":20}"));
  program.send(SIGKILL);
  ASSERT_EQ(program.wait().ended_by_signal, SIGKILL);
  const std::string text = read_text(scratch / "t.json");
  EXPECT_FALSE(json::accept(text));
  const ReadTrace trace = read_trace(json::parse(text + "]"), 0);
  EXPECT_GE(count(trace.spans.at("replica 0"), "step"), 20U);
}

TEST(TraceFile, ThatCannotBeWrittenEndsTheRunBeforeItTrains) {
  const TemporaryFolder scratch;
  for (const std::string& path : {std::string("/dev/full"), (scratch / "absent/t.json").string()}) {
    expect_failure_in_one_line(
        run_syncopate(
            as_words("train --model mlp --data synthetic:1x8x8:4:640 --no-progress --trace", path)),
        1, {"--trace " + path});
  }
}

}  // namespace
}  // namespace syncopate::test
