#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/support/contains.h"
#include "worker/train/progress.h"

namespace syncopate {
namespace {

const ProgressState kState = {.epoch = 2,
                              .total_epochs = 3,
                              .step = 812,
                              .total_steps = 1000,
                              .loss = 0.0612,
                              .metric = {.value = 0.981},
                              .samples_per_second = 41'230.0,
                              .remaining_seconds = 3.4};

// Returns the width of a line in columns: each code point that the display draws is a column wide.
std::size_t columns(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

ProgressState with(double rate, double remaining) {
  ProgressState state = kState;
  state.samples_per_second = rate;
  state.remaining_seconds = remaining;
  return state;
}

TEST(ProgressLine, ShowsABarAndTheScores) {
  EXPECT_EQ(format_progress_line(kState, {.columns = 100}),
            "epoch 2/3 ━━━━━━━━━━━━━━━━━━━╸──── 812/1000"
            "  loss 0.0612  acc 98.1%  41.2k samples/s  ETA 0:04");
}

TEST(ProgressLine, HasNoScoresBeforeTheFirstStep) {
  EXPECT_EQ(format_progress_text({.epoch = 1, .total_epochs = 3, .total_steps = 30}),
            "epoch 1/3  step 0/30");
}

TEST(ProgressLine, NamesAMetricThatIsNoShare) {
  ProgressState state = kState;
  state.metric = {LossKind::kMeanSquaredError, 12.3456789};
  EXPECT_TRUE(contains(format_progress_text(state), "loss 0.0612  mae 12.346  41.2k"));
}

TEST(ProgressLine, IsPlainAsciiWhereTheTerminalIs) {
  EXPECT_EQ(format_progress_line(kState, {.columns = 100, .unicode = false}),
            "epoch 2/3 ###################-.... 812/1000"
            "  loss 0.0612  acc 98.1%  41.2k samples/s  ETA 0:04");
}

TEST(ProgressLine, FitsAnyWidth) {
  for (int width = 0; width <= 120; ++width) {
    EXPECT_LE(columns(format_progress_line(kState, {.columns = width})),
              static_cast<std::size_t>(width));
  }
}

TEST(ProgressLine, GivesUpTheBarFirstAndThenTheEnd) {
  EXPECT_EQ(format_progress_line(kState, {.columns = 70}),
            "epoch 2/3 812/1000  loss 0.0612  acc 98.1%  41.2k samples/s  ETA 0:04");
  EXPECT_EQ(format_progress_line(kState, {.columns = 45}),
            "epoch 2/3 812/1000  loss 0.0612  acc 98.1%");
}

TEST(ProgressLine, KeepsItsBarInsideWhenStepsAreUnknownOrExceeded) {
  ProgressState state = kState;
  state.total_steps = 0;
  EXPECT_TRUE(contains(format_progress_line(state, {.columns = 120}), "────────────────────────"));
  state.total_steps = 100;
  EXPECT_TRUE(
      contains(format_progress_line(state, {.columns = 120}), "━━━━━━━━━━━━━━━━━━━━━━━━ 812/100"));
}

TEST(ProgressText, WritesRatesShort) {
  const auto shows = [](double rate, const std::string& text) {
    return format_progress_text(with(rate, 0.0)).find("  " + text + "  ") != std::string::npos;
  };
  EXPECT_TRUE(shows(0.0, "0 samples/s"));
  EXPECT_TRUE(shows(999.0, "999 samples/s"));
  EXPECT_TRUE(shows(999.9, "1.0k samples/s"));
  EXPECT_TRUE(shows(1'250'000.0, "1.2M samples/s"));
  EXPECT_TRUE(shows(std::numeric_limits<double>::infinity(), "- samples/s"));
}

TEST(ProgressText, WritesTimesAsClocksDo) {
  const auto ends = [](double seconds, const std::string& text) {
    return format_progress_text(with(1.0, seconds)).ends_with("  ETA " + text);
  };
  EXPECT_TRUE(ends(0.0, "0:00"));
  EXPECT_TRUE(ends(59.5, "1:00"));
  EXPECT_TRUE(ends(3599.0, "59:59"));
  EXPECT_TRUE(ends(3600.0, "1:00:00"));
  EXPECT_TRUE(ends(std::numeric_limits<double>::infinity(), "-:--"));
  EXPECT_TRUE(ends(std::numeric_limits<double>::quiet_NaN(), "-:--"));
}

// The fixture has a display that writes into a string, with a clock that a test moves.
struct FakeOutput {
  std::string written;
  std::chrono::steady_clock::time_point time{};
  int width = 100;

  ProgressOutput output() {
    return {.write = [this](std::string_view text) { written += text; },
            .now = [this] { return time; },
            .columns = [this] { return width; }};
  }
  std::ptrdiff_t count(char c) const { return std::count(written.begin(), written.end(), c); }
};

TEST(TerminalProgress, DrawsAtMostTenTimesASecond) {
  FakeOutput fake;
  const auto display = make_terminal_progress(fake.output());
  for (int i = 0; i < 1000; ++i) {
    display->update(kState);
    fake.time += std::chrono::milliseconds(1);
  }
  EXPECT_EQ(fake.count('\r'), 10);
  EXPECT_EQ(fake.count('\n'), 0);
}

TEST(TerminalProgress, ShowsTheLastStateWhenItEnds) {
  FakeOutput fake;
  const auto display = make_terminal_progress(fake.output());
  ProgressState state = kState;
  display->update(state);
  state.step = 1000;
  display->update(state);  // is too early to be drawn
  display->finish();
  EXPECT_TRUE(contains(fake.written, "1000/1000"));
  EXPECT_TRUE(fake.written.ends_with("\n"));
  display->finish();
  EXPECT_EQ(fake.count('\n'), 1);
}

TEST(TerminalProgress, LetsNotesScrollAboveTheLine) {
  FakeOutput fake;
  const auto display = make_terminal_progress(fake.output());
  display->update(kState);
  fake.written.clear();
  display->note("epoch 1: test accuracy 98.0%");
  EXPECT_TRUE(fake.written.starts_with("\r\x1b[Kepoch 1: test accuracy 98.0%\n\repoch 2/3"))
      << fake.written;
}

TEST(TerminalProgress, EndsItsLineWhenTrainingFails) {
  FakeOutput fake;
  make_terminal_progress(fake.output())->update(kState);
  EXPECT_TRUE(fake.written.ends_with("\n"));
}

TEST(TerminalProgress, FollowsTheWidthOfItsWindow) {
  FakeOutput fake;
  const auto display = make_terminal_progress(fake.output());
  fake.width = 46;
  display->update(kState);
  EXPECT_EQ(fake.written, "\repoch 2/3 812/1000  loss 0.0612  acc 98.1%\x1b[K");
}

TEST(ActivityLine, ShowsABarAndTheCounts) {
  const ActivityState state{.what = "evaluating", .done = 12, .total = 48};
  EXPECT_EQ(format_progress_line(state, {.columns = 100}),
            "evaluating ━━━━━━────────────────── 12/48");
  EXPECT_EQ(format_progress_line(state, {.columns = 20}), "evaluating 12/48");
  EXPECT_EQ(format_progress_text(state), "evaluating  12/48");
}

TEST(TerminalProgress, ReplacesTheLineOfAnActivityByTheTrainingLineWhenTheActivityEnds) {
  FakeOutput fake;
  const auto display = make_terminal_progress(fake.output());
  display->update(kState);
  fake.time += std::chrono::seconds(1);
  fake.written.clear();
  display->update(ActivityState{.what = "evaluating", .done = 1, .total = 2});
  EXPECT_TRUE(fake.written.starts_with("\revaluating ")) << fake.written;
  fake.written.clear();
  display->update(ActivityState{.what = "evaluating", .done = 2, .total = 2});
  EXPECT_TRUE(fake.written.starts_with("\repoch 2/3")) << fake.written;
}

TEST(TerminalProgress, ClearsTheLineOfAnActivityBeforeTraining) {
  FakeOutput fake;
  const auto display = make_terminal_progress(fake.output());
  display->update(ActivityState{.what = "drawing digits", .done = 1, .total = 2});
  fake.written.clear();
  display->update(ActivityState{.what = "drawing digits", .done = 2, .total = 2});
  EXPECT_EQ(fake.written, "\r\x1b[K");
}

TEST(PlainProgress, WritesALineOfAnActivityThatTakesLong) {
  FakeOutput fake;
  const auto display = make_plain_progress(fake.output(), true);
  for (int i = 1; i < 150; ++i) {
    display->update(ActivityState{.what = "evaluating", .done = i, .total = 150});
    fake.time += std::chrono::milliseconds(100);
  }
  EXPECT_EQ(fake.written, "evaluating  21/150\nevaluating  121/150\n");
}

TEST(PlainProgress, WritesNoLineOfAShortActivity) {
  FakeOutput fake;
  const auto display = make_plain_progress(fake.output(), true);
  for (int evaluation = 0; evaluation < 100; ++evaluation) {
    for (int i = 1; i <= 10; ++i) {
      display->update(ActivityState{.what = "evaluating", .done = i, .total = 10});
      fake.time += std::chrono::milliseconds(100);
    }
  }
  EXPECT_EQ(fake.written, "");
}

TEST(PlainProgress, WritesALineEveryTenSeconds) {
  FakeOutput fake;
  const auto display = make_plain_progress(fake.output(), true);
  for (int i = 0; i < 350; ++i) {
    display->update(kState);
    fake.time += std::chrono::milliseconds(100);
  }
  EXPECT_EQ(fake.count('\n'), 3);
  EXPECT_EQ(fake.count('\r'), 0);
  EXPECT_TRUE(fake.written.starts_with("epoch 2/3  step 812/1000  loss 0.0612"));
}

TEST(PlainProgress, KeepsItsNotesWhenSwitchedOff) {
  FakeOutput fake;
  const auto display = make_plain_progress(fake.output(), false);
  fake.time += std::chrono::minutes(1);
  display->update(kState);
  display->note("saved");
  EXPECT_EQ(fake.written, "saved\n");
}

}  // namespace
}  // namespace syncopate
