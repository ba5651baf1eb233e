#include "models/base/trace.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "models/base/errors.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using nlohmann::json;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using Clock = TraceThread::Clock;

class TraceFile : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_ / "t.json"; }
  std::string text() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const TemporaryFolder folder_;
};

// A point in time from which the tests count.
Clock::time_point start() {
  static const Clock::time_point kStart = Clock::now();
  return kStart;
}

TEST_F(TraceFile, HasTheNamesOfTheProcessAndItsThreadsAndTheirSpans) {
  {
    Trace trace(path(), 3, "task 3");
    TraceThread& replica = trace.thread(0, "replica 0");
    replica.add(TraceKind::kForward, start() + microseconds(10), start() + microseconds(30), -1);
    replica.add(TraceKind::kStep, start(), start() + microseconds(50), 7);
  }
  const json events = json::parse(text());
  ASSERT_EQ(events.size(), 4U) << text();
  const json forward = events.at(2);
  const json step = events.at(3);
  EXPECT_EQ(events.at(0), (json{{"name", "process_name"},
                                {"ph", "M"},
                                {"pid", 3},
                                {"tid", 0},
                                {"args", {{"name", "task 3"}}}}));
  EXPECT_EQ(events.at(1), (json{{"name", "thread_name"},
                                {"ph", "M"},
                                {"pid", 3},
                                {"tid", 0},
                                {"args", {{"name", "replica 0"}}}}));
  EXPECT_EQ(forward, (json{{"name", "forward"},
                           {"cat", "compute"},
                           {"ph", "X"},
                           {"ts", step.at("ts").get<std::int64_t>() + 10},
                           {"dur", 20},
                           {"pid", 3},
                           {"tid", 0}}));
  EXPECT_EQ(step.at("dur"), 50);
  EXPECT_EQ(step.at("args"), (json{{"step", 7}}));
}

TEST_F(TraceFile, CountsTimeFrom1970SoThatTheTracesOfSeveralTasksFitTogether) {
  const auto now = [] {
    return std::chrono::duration_cast<microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const std::int64_t before = now();
  {
    Trace trace(path(), 0, "task 0");
    const Span span(&trace.thread(0, "replica 0"), TraceKind::kUpdate);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const json event = json::parse(text()).at(2);
  EXPECT_GE(event.at("ts"), before - 1000);  // 1 ms: the clocks are read one after the other
  EXPECT_LE(event.at("ts"), now());
  EXPECT_GE(event.at("dur"), 2000);
}

TEST_F(TraceFile, KeepsSpansNestedThatAreRoundedToMicroseconds) {
  {
    Trace trace(path(), 0, "task 0");
    TraceThread& thread = trace.thread(0, "replica 0");
    // The inner span ends with the outer one, 900 ns after a full microsecond, or just before.
    for (int i = 0; i < 2000; i += 7) {
      const Clock::time_point begun = start() + microseconds(20 * i) + nanoseconds(i);
      thread.add(TraceKind::kForward, begun + nanoseconds(600), begun + nanoseconds(5900), -1);
      thread.add(TraceKind::kStep, begun, begun + nanoseconds(5900 + i % 3), i);
    }
  }
  const json events = json::parse(text());
  for (std::size_t i = 2; i < events.size(); i += 2) {
    const json& inner = events.at(i);
    const json& outer = events.at(i + 1);
    const auto end = [](const json& event) {
      return event.at("ts").get<std::int64_t>() + event.at("dur").get<std::int64_t>();
    };
    ASSERT_LE(outer.at("ts"), inner.at("ts"));
    ASSERT_GE(end(outer), end(inner));
  }
}

TEST_F(TraceFile, LeavesOutSpansThatAreShorterThanAMicrosecond) {
  {
    Trace trace(path(), 0, "task 0");
    TraceThread& thread = trace.thread(0, "replica 0");
    for (int i = 0; i < 1000; ++i) thread.add(TraceKind::kCommunication, start(), start(), -1);
    const Span none(nullptr, TraceKind::kUpdate);
  }
  EXPECT_EQ(json::parse(text()).size(), 2U) << text();
}

TEST_F(TraceFile, IsWrittenWhileTheProcessRunsAndCanBeReadWithoutItsEnd) {
  Trace trace(path(), 0, "task 0");
  TraceThread& thread = trace.thread(0, "replica 0");
  for (int i = 0; i < 300; ++i) {
    thread.add(TraceKind::kStep, start() + microseconds(i), start() + microseconds(i + 1), i);
  }
  EXPECT_FALSE(json::accept(text()));
  EXPECT_GE(json::parse(text() + "]").size(), 2U + 256U) << "256 spans are kept in memory";
  // A second later the next span is written alone.
  const auto later = Clock::now() + std::chrono::seconds(1);
  thread.add(TraceKind::kStep, later, later + microseconds(1), 300);
  EXPECT_EQ(json::parse(text() + "]").size(), 2U + 301U);
}

TEST_F(TraceFile, HasOnlyWholeEventsUpToEachPage) {
  {
    Trace trace(path(), 0, "task 0");
    TraceThread& thread = trace.thread(1000, "reader 0");
    for (int i = 0; i < 500; ++i) {
      thread.add(TraceKind::kInput, start() + microseconds(i), start() + microseconds(i + 1), i);
    }
  }
  const std::string whole = text();
  ASSERT_EQ(json::parse(whole).size(), 502U);
  constexpr std::size_t kPage = 4096;
  ASSERT_GT(whole.size(), 5 * kPage);
  for (std::size_t size = kPage; size < whole.size(); size += kPage) {
    EXPECT_TRUE(json::accept(whole.substr(0, size) + "]")) << size;
  }
}

TEST_F(TraceFile, TakesTheSpansOfSeveralThreads) {
  constexpr int kThreads = 4;
  constexpr int kSpans = 1000;
  {
    Trace trace(path(), 0, "task 0");
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&trace, t] {
        TraceThread& mine = trace.thread(t, "replica " + std::to_string(t));
        for (int i = 0; i < kSpans; ++i) {
          mine.add(TraceKind::kStep, start() + microseconds(i), start() + microseconds(i + 1), i);
        }
      });
    }
  }
  std::vector<int> next(kThreads);
  for (const json& event : json::parse(text())) {
    if (event.at("ph") != "X") continue;
    const auto thread = event.at("tid").get<std::size_t>();
    EXPECT_EQ(event.at("args").at("step"), next[thread]++);
  }
  EXPECT_EQ(next, std::vector<int>(kThreads, kSpans));
}

// A run that is started again, or fails at its start, must not remove what happened before.
TEST_F(TraceFile, KeepsAnEarlierOne) {
  { Trace first(path(), 0, "the first"); }
  const std::string before = text();
  { Trace second(path(), 0, "the second"); }
  EXPECT_TRUE(contains(text(), "the second"));
  std::ifstream old(path().string() + ".old", std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(old), {}), before);
}

TEST_F(TraceFile, ThatCannotBeWrittenIsAnErrorAtTheStart) {
  const auto error_of = [](const std::string& path) -> std::string {
    return message_of<FileError>([&] { Trace(path, 0, "task 0"); });
  };
  EXPECT_EQ(error_of("/dev/full"),
            "write --trace /dev/full: No space left on device; free some space, or give another "
            "file");
  const std::string absent = folder_ / "absent" / "t.json";
  EXPECT_EQ(error_of(absent), "open --trace " + absent +
                                  ": No such file or directory; give a file in a folder that "
                                  "exists");
}

TEST_F(TraceFile, IsNoPipe) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  const std::string expected =
      "open --trace " + path().string() + ": it is a named pipe; give a file";
  for (const auto& open : {std::function<void()>([&] { check_trace_file(path()); }),
                           std::function<void()>([&] { Trace(path(), 0, "task 0"); })}) {
    EXPECT_EQ(message_of<FileError>([&] { open(); }), expected);
  }
}

TEST(TraceFileOfATask, HasItsNumberBeforeTheExtensionUnlessItIsAlone) {
  EXPECT_EQ(trace_file("runs/t.json", 0, 1), "runs/t.json");
  EXPECT_EQ(trace_file("runs/t.json", 0, 2), "runs/t.0.json");
  EXPECT_EQ(trace_file("runs/t.json", 12, 16), "runs/t.12.json");
  EXPECT_EQ(trace_file("runs/trace", 1, 2), "runs/trace.1");
}

}  // namespace
}  // namespace syncopate
