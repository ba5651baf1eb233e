#include "bench/compare/report/page.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "models/base/errors.h"
#include "tests/bench/compare/report/made_up.h"
#include "tests/bench/compare/report/well_formed.h"

namespace syncopate::bench {
namespace {

const std::string kEvil = "<script>alert(\"x\")</script> & 'co'";

// Everything from one to the next of the other, both included. Not a regular expression: the
// library's recursion runs out of stack on a page.
std::vector<std::string> all_between(const std::string& html, const std::string& begin,
                                     const std::string& end) {
  std::vector<std::string> found;
  for (std::size_t at = html.find(begin); at != std::string::npos; at = html.find(begin, at)) {
    const std::size_t behind = html.find(end, at);
    if (behind == std::string::npos) break;
    found.push_back(html.substr(at, behind + end.size() - at));
    at = behind + end.size();
  }
  return found;
}

// Samples, workers and a worker's number are their own units.
bool names_its_unit(const std::string& title) {
  return title == "samples trained" || title == "worker" || title == "workers" ||
         (title.ends_with(")") && title.find('(') != std::string::npos);
}

std::size_t count_of(const std::string& text, const std::string& words) {
  std::size_t count = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    ++count;
  }
  return count;
}

TEST(Page, IsWellFormedXml) {
  EXPECT_EQ(flaw_in_xml(html_page(with_everything({"mirrored", kEvil}))), "");
}

TEST(Page, HasEveryPlot) {
  const std::string html = html_page(with_everything({"mirrored", kEvil}));
  for (const char* title :
       {"Test accuracy against samples", "Test accuracy against time", "Test loss against samples",
        "Test loss against time", "Time to 95 % test accuracy", "Throughput against workers",
        "Staleness", "time went", "Bytes of a worker", "predicted and measured"}) {
    EXPECT_NE(html.find(title), std::string::npos) << title;
  }
}

TEST(Page, GivesEveryPlotTitlesOfItsAxesWithUnits) {
  const auto plots =
      all_between(html_page(with_everything({"mirrored", kEvil})), "<svg class=\"plot\"", "</svg>");
  // Four curves, target, throughput, one staleness panel, one of times, bytes, prediction.
  ASSERT_EQ(plots.size(), 10U);
  for (const std::string& plot : plots) {
    EXPECT_EQ(flaw_in_xml(plot), "");
    const std::string opening = "class=\"title\">";
    const auto titles = all_between(plot, opening, "<");
    EXPECT_FALSE(titles.empty()) << plot;
    for (const std::string& title : titles) {
      const std::string words = title.substr(opening.size(), title.size() - opening.size() - 1);
      EXPECT_TRUE(names_its_unit(words)) << words;
    }
  }
}

TEST(Page, GivesEveryPlotALegend) {
  const std::string html = html_page(with_everything({"mirrored", kEvil}));
  for (const std::string& figure : all_between(html, "<div class=\"grid\">", "</div>")) {
    EXPECT_EQ(count_of(figure, "<figure>"), count_of(figure, "<ul class=\"legend\">"));
  }
  // Panels share one.
  for (const std::string& panels : all_between(html, "<section class=\"panels\">", "</section>")) {
    EXPECT_EQ(count_of(panels, "<ul class=\"legend\">"), 1U);
  }
}

TEST(Page, NeedsNoNetworkAndNoScript) {
  const std::string html = html_page(with_everything({"mirrored", kEvil}));
  EXPECT_EQ(count_of(html, "http"), count_of(html, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("@import"), std::string::npos);
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_EQ(html.find("url("), std::string::npos);
}

TEST(Page, ShowsLabelsAndReasonsAsTheyAre) {
  EXPECT_NE(html_page(with_everything({"mirrored", kEvil}))
                .find("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;co&#39;"),
            std::string::npos);
}

TEST(Page, BeginsWithTheRecommendationAndNamesTheMachine) {
  Comparison comparison = with_everything({"mirrored", kEvil});
  comparison.machines = {{.host = "node<7>", .cpus = 2, .version = "0.1.0", .date = "today"}};
  comparison.threads_per_worker = 3;
  const std::string html = html_page(comparison);
  EXPECT_EQ(flaw_in_xml(html), "");
  const std::size_t use = html.find("<p class=\"verdict\">Use ");
  EXPECT_LT(use, html.find("<dl>"));
  EXPECT_NE(html.find("node&lt;7&gt;: 2 CPUs, no GPU; syncopate 0.1.0, today"), std::string::npos);
  EXPECT_NE(html.find("2 workers of 3 threads shared 2 CPUs"), std::string::npos);
}

TEST(Page, DrawsAThinLinePerSeedAndAThickMean) {
  const auto plots =
      all_between(html_page(with_everything({"mirrored", kEvil})), "<svg class=\"plot\"", "</svg>");
  EXPECT_EQ(count_of(plots[0], " seed\""), 6U);
  EXPECT_EQ(count_of(plots[0], " mean\""), 2U);
}

TEST(Page, LeavesOutPlotsWithoutData) {
  const std::string html =
      html_page(made_up_comparison({ComparedVariant{"a", 1, {pending_run()}}}));
  EXPECT_EQ(html.find("class=\"plot\""), std::string::npos);
  EXPECT_EQ(flaw_in_xml(html), "");
}

TEST(Page, BearsNumbersThatAreNone) {
  Comparison comparison = made_up_comparison({ComparedVariant{
      "diverged", 1, {made_up_run(1, {0.1, NAN, 0.1}, 0.1), made_up_run(2, {NAN, NAN}, 0.1)}}});
  const std::string html = html_page(comparison);
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_EQ(html.find("inf"), std::string::npos);
  EXPECT_EQ(flaw_in_xml(html), "");
}

TEST(Report, LeavesItsThreeFilesAndNothingElse) {
  const auto dir =
      std::filesystem::temp_directory_path() / ("syncopate_page_" + std::to_string(getpid()));
  std::filesystem::create_directory(dir);
  write_report(dir, with_everything({"mirrored", kEvil}));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    names.push_back(entry.path().filename().string());
  }
  std::ifstream in(dir / "report.html");
  const std::string html{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove_all(dir);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"curves.csv", "report.html", "runs.csv"}));
  EXPECT_EQ(html, html_page(with_everything({"mirrored", kEvil})));
  EXPECT_THROW(write_report(dir, with_everything({"mirrored", kEvil})), FileError);
}

}  // namespace
}  // namespace syncopate::bench
