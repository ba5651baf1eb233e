#include "bench/compare/report/comparison_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "models/base/errors.h"
#include "tests/bench/compare/report/made_up.h"

namespace syncopate::bench {
namespace {

// Returns whether the text between two tags has no unescaped markup.
bool is_harmless(const std::string& text) {
  static const std::regex kEntity("&(lt|gt|amp|quot|#[0-9]+);");
  return std::regex_replace(text, kEntity, "").find_first_of("&<>") == std::string::npos;
}

bool are_attributes(const std::string& text) {
  static const std::regex kAttributes("(\\s+[A-Za-z][A-Za-z0-9-]*=\"[^\"<]*\")*\\s*");
  return std::regex_match(text, kAttributes);
}

// Returns "" for well-formed XML, otherwise a description of the flaw and its place. Finds tags
// that are not closed, attributes without quotes and text that was not escaped.
std::string flaw_in_xml(std::string_view text) {
  static const std::regex kTag("^(/?)([A-Za-z][A-Za-z0-9]*)([^]*?)(/?)$");
  std::vector<std::string> open;
  const auto near = [&](std::size_t at) { return " near: " + std::string(text.substr(at, 80)); };
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = std::min(text.find('<', at), text.size());
    const bool is_css = !open.empty() && open.back() == "style";
    const std::string between(text.substr(at, begin - at));
    if (!is_css && !is_harmless(between)) return "unescaped text" + near(at);
    if (begin == text.size()) break;
    const std::size_t end = text.find('>', begin);
    if (end == std::string_view::npos) return "a tag without end" + near(begin);
    const std::string inside(text.substr(begin + 1, end - begin - 1));
    at = end + 1;
    if (inside == "!DOCTYPE html") continue;
    std::smatch tag;
    if (!std::regex_match(inside, tag, kTag)) return "not a tag" + near(begin);
    if (!are_attributes(tag[3])) return "bad attributes" + near(begin);
    if (tag[1].length() > 0) {
      if (open.empty() || open.back() != tag[2]) return "closes what is not open" + near(begin);
      open.pop_back();
    } else if (tag[4].length() == 0) {
      open.push_back(tag[2]);
    }
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

const std::string kMarkup = "<script>alert(\"x\")</script> & 'co'";

// Returns every part of `html` from `begin` to the next `end`, both included. A regular expression
// would run out of stack on a page.
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

// The title of an axis needs a unit in parentheses, unless the axis counts samples or workers.
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
  EXPECT_EQ(flaw_in_xml(html_page(with_everything({"mirrored", kMarkup}))), "");
}

TEST(Page, HasEveryPlot) {
  const std::string html = html_page(with_everything({"mirrored", kMarkup}));
  for (const char* title :
       {"Test accuracy against samples", "Test accuracy against time", "Test loss against samples",
        "Test loss against time", "Time to 95 % test accuracy", ">Throughput<", "Staleness",
        "time went", "Bytes per worker", "predicted and measured"}) {
    EXPECT_NE(html.find(title), std::string::npos) << title;
  }
}

TEST(Page, NamesTheSplitThatDecidesWhenTheTargetIsReached) {
  Comparison comparison = with_everything({"mirrored", kMarkup});
  comparison.chance = Chance{.classes = 4, .test_samples = 256, .validation_samples = 64};
  const std::string html = html_page(comparison);
  for (const char* text :
       {"Validation loss against time", "Time to 95 % validation accuracy",
        "Times to the target are on the validation set, and the final accuracy is on the test "
        "set of 256 samples"}) {
    EXPECT_NE(html.find(text), std::string::npos) << text;
  }
}

TEST(Page, GivesEveryPlotTitlesOfItsAxesWithUnits) {
  const auto plots = all_between(html_page(with_everything({"mirrored", kMarkup})),
                                 "<svg class=\"plot\"", "</svg>");
  // The page has ten plots: four curves, target, throughput, staleness, times, bytes and
  // prediction.
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
  const std::string html = html_page(with_everything({"mirrored", kMarkup}));
  for (const std::string& figure : all_between(html, "<div class=\"grid\">", "</div>")) {
    EXPECT_EQ(count_of(figure, "<figure>"), count_of(figure, "<ul class=\"legend\">"));
  }
  // All panels in one section of the report share one legend.
  for (const std::string& panels : all_between(html, "<section class=\"panels\">", "</section>")) {
    EXPECT_EQ(count_of(panels, "<ul class=\"legend\">"), 1U);
  }
}

TEST(Page, NeedsNoNetworkAndNoScript) {
  const std::string html = html_page(with_everything({"mirrored", kMarkup}));
  EXPECT_EQ(count_of(html, "http"), count_of(html, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("@import"), std::string::npos);
  EXPECT_EQ(html.find("src="), std::string::npos);
  EXPECT_EQ(html.find("url("), std::string::npos);
}

TEST(Page, EscapesLabelsAndReasons) {
  EXPECT_NE(html_page(with_everything({"mirrored", kMarkup}))
                .find("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;co&#39;"),
            std::string::npos);
}

TEST(Page, BeginsWithTheRecommendationAndNamesTheMachine) {
  Comparison comparison = with_everything({"mirrored", kMarkup});
  comparison.machines = {{.host = "node<7>", .cpus = 2, .version = "0.1.0", .date = "today"}};
  comparison.threads_per_worker = 3;
  const std::string html = html_page(comparison);
  EXPECT_EQ(flaw_in_xml(html), "");
  EXPECT_LT(html.find("<p class=\"v\">"), html.find("<figure"));
  EXPECT_LT(html.find("<figure"), html.find("<table"));
  EXPECT_LT(html.find("Time to 95 % test accuracy"), html.find("<dl>"));
  EXPECT_NE(html.find("node&lt;7&gt;: 2 CPUs, no GPU; syncopate 0.1.0, today"), std::string::npos);
  EXPECT_NE(html.find("2 workers of 3 threads shared 2 CPUs"), std::string::npos);
}

TEST(Page, DrawsAThinLinePerSeedAndAThickMean) {
  const auto plots = all_between(html_page(with_everything({"mirrored", kMarkup})),
                                 "<svg class=\"plot\"", "</svg>");
  // The first two plots are the time to the target and the throughput.
  EXPECT_EQ(count_of(plots[2], " seed\""), 6U);
  EXPECT_EQ(count_of(plots[2], " mean\""), 2U);
}

TEST(Page, LeavesOutPlotsWithoutData) {
  const std::string html =
      html_page(made_up_comparison({ComparedVariant{"a", 1, {pending_run()}}}));
  EXPECT_EQ(html.find("class=\"plot\""), std::string::npos);
  EXPECT_EQ(flaw_in_xml(html), "");
}

TEST(Page, ShowsAtMostFiveWarningsAsRowsOfATable) {
  Comparison comparison = with_everything({"mirrored", kMarkup});
  comparison.variants.push_back(ComparedVariant{"a", 2, {pending_run()}});
  for (const char* label : {"b", "c", "d", "e", "f", "g"}) {
    comparison.variants.push_back(ComparedVariant{label, 2, {failed_run(1, "it broke")}});
  }
  const std::string html = html_page(comparison);
  const auto tables = all_between(html, "<table class=\"warnings\">", "</table>");
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(count_of(tables[0], "<tr>"), kShownWarnings);
}

TEST(Page, DrawsThroughputAgainstWorkersOnlyForVariantsThatDifferInNothingElse) {
  const auto page_of = [](const std::string& first, const std::string& second) {
    return html_page(
        made_up_comparison({made_up_variant(first, 1, {40, 41, 42}, {.97, .97, .97}),
                            made_up_variant(second, 4, {20, 21, 22}, {.97, .97, .97})}));
  };
  EXPECT_EQ(page_of("a", "b").find("Throughput against workers"), std::string::npos);
  EXPECT_NE(page_of("a", "b").find("<figcaption>Throughput</figcaption>"), std::string::npos);
  EXPECT_NE(page_of("a, 1 worker", "a, 4 workers").find("Throughput against workers"),
            std::string::npos);
}

TEST(Page, LeavesOutNaN) {
  Comparison comparison = made_up_comparison({ComparedVariant{
      "diverged", 1, {made_up_run(1, {0.1, NAN, 0.1}, 0.1), made_up_run(2, {NAN, NAN}, 0.1)}}});
  const std::string html = html_page(comparison);
  EXPECT_EQ(html.find("nan"), std::string::npos);
  EXPECT_EQ(html.find("inf"), std::string::npos);
  EXPECT_EQ(flaw_in_xml(html), "");
}

TEST(ComparisonReport, HasThePageItsFiguresAndTwoFilesOfData) {
  const auto dir =
      std::filesystem::temp_directory_path() / ("syncopate_report_" + std::to_string(getpid()));
  std::filesystem::create_directory(dir);
  write_comparison_report(dir, with_everything({"mirrored", kMarkup}));
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    names.push_back(entry.path().filename().string());
  }
  std::ifstream in(dir / "report.html");
  const std::string html{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove_all(dir);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"accuracy.svg", "curves.csv", "report.html",
                                             "runs.csv", "time.svg"}));
  EXPECT_EQ(html, html_page(with_everything({"mirrored", kMarkup})));
  EXPECT_THROW(write_comparison_report(dir, with_everything({"mirrored", kMarkup})), FileError);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Comparison done_failed_and_pending() {
  ComparedVariant variant = made_up_variant("a, \"b\"", 2, {10}, {0.97});
  variant.runs[0].result->summary.test_loss = NAN;
  variant.runs[0].result->summary.weights_hash = "cafe";
  variant.runs.push_back(failed_run(2, "it broke"));
  variant.runs.push_back(pending_run());
  return made_up_comparison({variant});
}

TEST(RunsCsv, HasARowForEveryRun) {
  const auto lines = lines_of(runs_csv(done_failed_and_pending()));
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[1],
            "\"a, \"\"b\"\"\",2,runs/seed1.jsonl,done,1,,3,300,15,20,0,0.97,,0.95,,10,"
            "200,0,0,0,0,,cafe");
  EXPECT_EQ(lines[2], "\"a, \"\"b\"\"\",2,runs/failed.jsonl,failed,2,it broke,,,,,,,,,,,,,,,,,");
  EXPECT_EQ(lines[3], "\"a, \"\"b\"\"\",2,runs/pending.jsonl,pending,,,,,,,,,,,,,,,,,,,");
}

TEST(RunsCsv, HasTheSameNumberOfFieldsInEveryRow) {
  Comparison comparison = done_failed_and_pending();
  comparison.variants[0].label = "plain";
  for (const std::string& line : lines_of(runs_csv(comparison))) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 22) << line;
  }
}

TEST(CurvesCsv, HasEveryPoint) {
  Comparison comparison = done_failed_and_pending();
  comparison.variants[0].label = "plain";
  comparison.variants[0].runs[0].result->training.push_back(
      {.step = 1, .loss = 2.25, .samples = 32, .seconds = 0.5, .samples_per_second = 64});
  const auto lines = lines_of(curves_csv(comparison));
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[1], "plain,2,1,test,1,100,5,0.5,0.5,");
  EXPECT_EQ(lines[4], "plain,2,1,train,1,32,0.5,2.25,,64");
}

}  // namespace
}  // namespace syncopate::bench
