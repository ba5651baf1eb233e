// Lays out the report's page in a browser, at the width of a desktop and of a telephone.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/compare/report/comparison_report.h"
#include "bench/compare/report/map_report.h"
#include "bench/compare/report/strategy_map.h"
#include "bench/plots/text.h"
#include "tests/bench/compare/report/made_up.h"
#include "tests/end_to_end/support/run_program.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using test::operator+;

constexpr int kHeight = 6000;
constexpr std::chrono::seconds kTimeout(60);

// Returns the name of a browser on the PATH; "" if there is none.
std::string find_browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    const std::string command = "command -v " + std::string(name) + " >/dev/null 2>&1";
    if (std::system(command.c_str()) == 0) return name;
  }
  return "";
}

// This script checks the page inside a frame, because a window cannot be narrower than 500 pixels.
// The script appends one line of text per flaw.
const std::string kPageScript = R"(
function boxes(list) {
  return Array.from(list).map(e => ({text: e.textContent.trim(), box: e.getBoundingClientRect()}))
      .filter(e => e.text && e.box.width > 0 && e.box.height > 0);
}
function overlap(a, b) {
  const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
  const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
  return wide > 1 && high > 3;  // lines of text may touch
}
onload = () => {
  const frame = document.getElementById('page'), page = frame.contentDocument, flaws = [];
  page.querySelectorAll('details').forEach(part => part.open = true);
  if (page.documentElement.scrollWidth > frame.clientWidth + 1)
    flaws.push('wider than the window: ' + page.documentElement.scrollWidth);
  page.querySelectorAll('.scroll').forEach(table => {
    if (table.scrollWidth > table.clientWidth + 1)
      flaws.push('a table of ' + table.scrollWidth + ' pixels is cut off at ' + table.clientWidth);
  });
  page.querySelectorAll('svg').forEach((plot, number) => {
    const own = plot.getBoundingClientRect(), texts = boxes(plot.querySelectorAll('text'));
    texts.forEach((one, i) => {
      if (one.box.left < own.left - 1 || one.box.right > own.right + 1)
        flaws.push('plot ' + number + ': "' + one.text + '" is cut off');
      texts.slice(i + 1).forEach(other => {
        if (overlap(one.box, other.box))
          flaws.push('plot ' + number + ': "' + one.text + '" lies on "' + other.text + '"');
      });
    });
  });
  const blocks = boxes(page.querySelectorAll('h1,h2,h3,p,dl,table,svg.plot'));
  blocks.forEach((one, i) => blocks.slice(i + 1).forEach(other => {
    if (overlap(one.box, other.box)) flaws.push(one.text.slice(0, 40) + ' / ' + other.text.slice(0, 40));
  }));
  frame.contentWindow.performance.getEntriesByType('resource').forEach(
      request => flaws.push('a request: ' + request.name));
  const ends = Array.from(page.querySelectorAll('figure .wide, figure .narrow'))
      .map(figure => figure.getBoundingClientRect().bottom);
  const seen = document.createElement('pre');
  seen.textContent = 'LOOKED AT ' + page.querySelectorAll('svg.plot').length + ' PLOTS\n' +
                     'FIGURES END AT ' + Math.round(Math.max(0, ...ends)) + '\n' +
                     flaws.map(flaw => 'FLAW ' + flaw + '\n').join('');
  document.body.append(seen);
};
)";

std::string framed(const std::string& page, int width) {
  return "<!DOCTYPE html><meta charset=\"utf-8\"><body style=\"margin:0\"><script>" + kPageScript +
         "</script><iframe id=\"page\" style=\"border:0\" width=\"" + std::to_string(width) +
         "\" height=\"" + std::to_string(kHeight) + "\" srcdoc=\"" + html_text(page) +
         "\"></iframe>";
}

class PageInBrowser : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    browser_ = find_browser();
    if (browser_.empty()) GTEST_SKIP() << "no browser was found: apt-get install chromium";
  }

  // Returns the output of the browser, which can reach nothing outside this machine.
  std::string browse(const Words& arguments) const {
    test::RunningProgram browser(
        as_words("/usr/bin/env", browser_,
                 "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars "
                 "--proxy-server=127.0.0.1:9 --virtual-time-budget=3000",
                 "--user-data-dir=" + (scratch_ / "profile").string()) +
            arguments,
        kTimeout);
    return browser.wait().out;
  }

  // fits: whether the figures of the answer are on the first screen of a laptop or a phone.
  void look(const std::string& name, const std::string& html, bool fits = false) const {
    int plots = 0;
    for (std::size_t at = 0; (at = html.find("class=\"plot\"", at)) != std::string::npos; ++at) {
      ++plots;
    }
    const fs::path file = scratch_ / "page.html";
    std::ofstream(file) << framed(html, GetParam());
    const std::string url = "file://" + file.string();
    const std::string seen = browse({"--dump-dom", url});
    const std::string all = "LOOKED AT " + std::to_string(plots) + " PLOTS";
    EXPECT_TRUE(contains(seen, all));
    const std::string end = "FIGURES END AT ";
    ASSERT_TRUE(contains(seen, end));
    const int bottom = std::atoi(seen.c_str() + seen.rfind(end) + end.size());
    EXPECT_GT(bottom, 0);
    const int screen = GetParam() > 600 ? 900 : 844;
    EXPECT_TRUE(bottom <= screen || !fits) << name << " ends at " << bottom;
    for (std::size_t at = seen.find("\nFLAW "); at != std::string::npos;
         at = seen.find("\nFLAW ", at + 1)) {
      ADD_FAILURE() << seen.substr(at + 1, seen.find('\n', at + 1) - at - 1);
    }
    fs::create_directories(SYNCOPATE_SCREENSHOTS);
    const fs::path picture =
        fs::path(SYNCOPATE_SCREENSHOTS) / (name + "-" + std::to_string(GetParam()) + ".png");
    fs::remove(picture);
    browse({"--screenshot=" + picture.string(),
            "--window-size=" + std::to_string(std::max(500, GetParam())) + ",4000", url});
    EXPECT_TRUE(fs::exists(picture));
  }

 private:
  TemporaryFolder scratch_;
  std::string browser_;
};

TEST_P(PageInBrowser, HasNoOverlappingText) {
  look("four",
       html_page(with_everything({"one-device", "multi-worker-mirrored", "parameter-server:async",
                                  "parameter-server:sync+backup:1"})),
       true);
  Comparison nine = with_everything(
      {"one-device", "mirrored", "multi-worker-mirrored", "central-storage",
       "parameter-server:async", "parameter-server:ssp:2", "parameter-server:sync+backup:1",
       "async, 16 workers, rate / staleness in a label that is longer than a plot is wide, "
       "MMMMMMMM wwwwwww"});
  // The fastest row with one worker has a column of speed-ups over it.
  nine.variants.push_back(made_up_variant("one-device{threads=2,learning-rate=0.003}", 1,
                                          {30, 32, 34}, {0.97, 0.971, 0.972}));
  look("nine", html_page(nine));
}

TEST_P(PageInBrowser, OfAMapHasNoOverlappingText) {
  const Comparison eight =
      with_everything({"one-device", "mirrored", "multi-worker-mirrored", "central-storage",
                       "parameter-server:async", "parameter-server:ssp:2",
                       "parameter-server:sync+backup:1", "parameter-server:sync"});
  const std::vector<std::string> clusters = {"equal",     "jitter", "slow-worker",
                                             "slow-link", "mine",   "another-cluster"};
  look("map", map_page(make_map(clusters, std::vector<Comparison>(clusters.size(), eight)), ""));
  Comparison five = eight;
  five.variants.resize(5);
  look("map-of-four",
       map_page(make_map({"equal", "jitter", "slow-worker", "slow-link"}, {five, five, five, five}),
                ""),
       true);
}

INSTANTIATE_TEST_SUITE_P(Widths, PageInBrowser, testing::Values(1200, 390));

}  // namespace
}  // namespace syncopate::bench
