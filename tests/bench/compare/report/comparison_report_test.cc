#include "bench/compare/report/comparison_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>

#include "bench/compare/report/comparison_plots.h"
#include "models/base/errors.h"
#include "tests/bench/compare/report/made_up.h"
#include "tests/support/as_words.h"
#include "tests/support/contains.h"
#include "tests/support/temporary_folder.h"

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
        "Test loss against time", "Throughput", "Where the workers&#39; time went",
        "Staleness of gradients", "Bytes per worker",
        "Communication of a step: predicted and measured"}) {
    EXPECT_EQ(count_of(html, fmt::format("<figcaption>{}</figcaption>", title)), 1U) << title;
  }
  EXPECT_EQ(count_of(html, "class=\"plot\""), 9U);
}

TEST(Page, NamesTheSplitThatDecidesWhenTheTargetIsReached) {
  Comparison comparison = with_everything({"mirrored", kMarkup});
  comparison.chance = Chance{.classes = 4, .test_samples = 256, .validation_samples = 64};
  const std::string html = html_page(comparison);
  for (const char* text :
       {"Validation loss against time", "Validation accuracy, %; soonest of one worker",
        "evaluated once on the test set of 256 samples, after training; the target is judged on "
        "the validation set"}) {
    EXPECT_TRUE(contains(html, text));
  }
}

std::map<std::string, std::string> plots_by_name(const Comparison& comparison) {
  std::map<std::string, std::string> plots;
  for (auto* make : {learning_plots, time_plots, communication_plots}) {
    for (const NamedPlot& plot : make(comparison)) plots[plot.name] = plot.picture.file();
  }
  return plots;
}

TEST(Plots, HaveTitlesOfTheirAxesWithUnits) {
  const auto plots = plots_by_name(with_everything({"mirrored", kMarkup}));
  const std::map<std::string, std::vector<std::string>> titles = {
      {"accuracy-samples", {"Test accuracy (%)", "samples trained"}},
      {"accuracy-seconds", {"Test accuracy (%)", "training time (s)"}},
      {"loss-samples", {"Test loss (nats per sample)", "samples trained"}},
      {"loss-seconds", {"Test loss (nats per sample)", "training time (s)"}},
      {"throughput", {"Throughput (samples/s)"}},
      {"worker-time", {"Share of a worker&#39;s time in steps, mean of the workers (%)"}},
      {"staleness", {"Share of the gradients (%)", "staleness (versions)"}},
      {"bytes", {"Megabytes (10⁶ bytes) of a run, mean of workers and seeds"}},
      {"communication", {"Communication time per step (ms)"}}};
  ASSERT_EQ(plots.size(), titles.size());
  for (const auto& [name, texts] : titles) {
    for (const std::string& text : texts) {
      EXPECT_EQ(count_of(plots.at(name), ">" + text + "</text>"), 1U) << name << ": " << text;
    }
  }
}

TEST(Plots, NameTheirVariantsAndParts) {
  auto plots = plots_by_name(with_everything({"mirrored", "async"}));
  for (const char* name :
       {"accuracy-samples", "accuracy-seconds", "loss-samples", "loss-seconds", "throughput"}) {
    for (const char* text : {">mirrored</text>", ">async</text>"}) {
      EXPECT_EQ(count_of(plots[name], text), 1U) << name << text;
    }
  }
  for (const char* text : {">async</text>", ">compute</text>", ">exposed communication</text>",
                           ">waiting for workers</text>", ">waiting for input</text>"}) {
    EXPECT_EQ(count_of(plots["worker-time"], text), 1U) << text;
  }
  EXPECT_EQ(count_of(plots["staleness"], ">async: median 1, largest 2</text>"), 1U);
  EXPECT_EQ(count_of(plots["bytes"], ">received</text>"), 1U);
  EXPECT_EQ(count_of(plots["communication"], ">predicted from the link</text>"), 1U);
}

TEST(Plots, StackThePartsOfTheWorkersTime) {
  auto plots = plots_by_name(with_everything({"mirrored", "async"}));
  // Both workers of "async" compute for 6 of their 10 seconds.
  for (const char* tip :
       {"compute: 60.0 %", "exposed communication: 10.0 %", "waiting for workers: 20.0 %",
        "waiting for input: 5.0 %", "other: 5.0 %"}) {
    EXPECT_EQ(count_of(plots["worker-time"], tip), 1U) << tip;
  }
}

TEST(Plots, DrawAThinLinePerSeedAndAThickMean) {
  auto plots = plots_by_name(with_everything({"mirrored", kMarkup}));
  const auto paths = all_between(plots["accuracy-samples"], "<path", "/>");
  EXPECT_EQ(std::ranges::count_if(
                paths, [](auto& path) { return count_of(path, "stroke-width=\"0.6\"") == 1; }),
            6);
  EXPECT_EQ(std::ranges::count_if(paths,
                                  [](auto& path) {
                                    return count_of(path, "stroke-width=\"2.0\"") == 1 &&
                                           count_of(path, "L") > 0;
                                  }),
            2 + 2);  // two means, and their symbols in the legend
}

TEST(Page, NeedsNoNetworkAndNoScript) {
  const std::string html = html_page(with_everything({"mirrored", kMarkup}));
  EXPECT_EQ(count_of(html, "http"), count_of(html, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(lacks(html, "<script", "@import", "src=", "url("));
}

TEST(Page, EscapesLabelsAndReasons) {
  EXPECT_TRUE(contains(html_page(with_everything({"mirrored", kMarkup})),
                       "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; &#39;co&#39;"));
}

TEST(Page, BeginsWithTheRecommendationAndNamesTheMachine) {
  Comparison comparison = with_everything({"mirrored", kMarkup});
  comparison.machines = {{.host = "node<7>", .cpus = 2, .version = "0.1.0", .date = "today"}};
  comparison.threads_per_worker = 3;
  const std::string html = html_page(comparison);
  EXPECT_EQ(flaw_in_xml(html), "");
  EXPECT_LT(html.find("<p class=\"v\">"), html.find("<figure"));
  EXPECT_LT(html.find("<figure"), html.find("<table"));
  EXPECT_LT(html.find("Seconds to 95 % accuracy"), html.find("<dl>"));
  EXPECT_TRUE(contains(html, "node&lt;7&gt;: 2 CPUs, no GPU; syncopate 0.1.0, today",
                       "2 workers of 3 threads shared 2 CPUs"));
}

TEST(Page, LeavesOutPlotsWithoutData) {
  const std::string html =
      html_page(made_up_comparison({ComparedVariant{"a", 1, {pending_run()}}}));
  EXPECT_FALSE(contains(html, "class=\"plot\""));
  EXPECT_EQ(flaw_in_xml(html), "");
}

TEST(Page, LeavesOutNaN) {
  Comparison comparison = made_up_comparison({ComparedVariant{
      "diverged", 1, {made_up_run(1, {0.1, NAN, 0.1}, 0.1), made_up_run(2, {NAN, NAN}, 0.1)}}});
  const std::string html = html_page(comparison);
  EXPECT_TRUE(lacks(html, "nan", "inf"));
  EXPECT_EQ(flaw_in_xml(html), "");
}

class ComparisonReport : public testing::Test {
 protected:
  // Returns the files below the folder with their contents.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> texts;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path());
      texts[entry.path().lexically_relative(dir_).string()] = {std::istreambuf_iterator<char>(in),
                                                               {}};
    }
    return texts;
  }

  const TemporaryFolder dir_;
};

TEST_F(ComparisonReport, HasThePageItsPlotsAndFilesOfData) {
  const Comparison comparison = with_everything({"mirrored", kMarkup});
  write_comparison_report(dir_, comparison);
  std::vector<std::string> names;
  auto texts = files();
  for (const auto& [name, text] : texts) names.push_back(name);
  EXPECT_EQ(
      names,
      as_words("curves.csv plots/accuracy-samples.svg plots/accuracy-seconds.svg "
               "plots/accuracy.svg plots/bytes.svg plots/communication.svg plots/loss-samples.svg "
               "plots/loss-seconds.svg plots/staleness.svg plots/throughput.svg plots/time.svg "
               "plots/worker-time.svg report.html runs.csv staleness.csv workers.csv"));
  EXPECT_EQ(texts["report.html"], html_page(comparison));
  for (const std::string& name : names) {
    if (name == "report.html") continue;
    EXPECT_EQ(count_of(texts["report.html"], fmt::format("href=\"{}\"", name)), 1U) << name;
  }
}

TEST_F(ComparisonReport, HasPlotsThatAreFilesOfTheirOwn) {
  write_comparison_report(dir_, with_everything({"mirrored", kMarkup}));
  int plots = 0;
  for (const auto& [name, text] : files()) {
    if (!name.ends_with(".svg")) continue;
    ++plots;
    EXPECT_EQ(flaw_in_xml(text), "") << name;
    EXPECT_TRUE(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=")) << name;
    EXPECT_EQ(count_of(text, "http"), 1U) << name;
    for (const char* reference : {"class=", "style", "href", "url(", "<script", "<image", "nan"}) {
      EXPECT_EQ(count_of(text, reference), 0U) << name << " has " << reference;
    }
  }
  EXPECT_EQ(plots, 11);
}

TEST_F(ComparisonReport, LeavesOtherFilesAlone) {
  std::filesystem::create_directory(dir_ / "plots");
  std::ofstream(dir_ / "plots" / "mine.svg") << "mine";
  write_comparison_report(dir_, with_everything({"mirrored", kMarkup}));
  EXPECT_EQ(files()["plots/mine.svg"], "mine");
}

TEST_F(ComparisonReport, NeedsAFolder) {
  const Comparison comparison = with_everything({"mirrored", kMarkup});
  EXPECT_THROW(write_comparison_report(dir_ / "absent", comparison), FileError);
  std::ofstream(dir_ / "plots") << "a file";
  EXPECT_THROW(write_comparison_report(dir_, comparison), FileError);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Comparison done_failed_and_pending() {
  ComparedVariant variant = made_up_variant("a, \"b\"", 2, {10}, {0.97});
  variant.servers = 1;
  variant.runs[0].result->summary.test.loss = NAN;
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
            "200,0,0,0,0,,cafe,3,3,30");
  EXPECT_EQ(lines[2],
            "\"a, \"\"b\"\"\",2,runs/failed.jsonl,failed,2,it broke,,,,,,,,,,,,,,,,,,3,3,");
  EXPECT_EQ(lines[3], "\"a, \"\"b\"\"\",2,runs/pending.jsonl,pending,,,,,,,,,,,,,,,,,,,,3,3,");
}

TEST(RunsCsv, HasTheSameNumberOfFieldsInEveryRow) {
  Comparison comparison = done_failed_and_pending();
  comparison.variants[0].label = "plain";
  for (const std::string& line : lines_of(runs_csv(comparison))) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 25) << line;
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

// Returns the sum of a column of numbers.
double sum_of(const std::string& csv, const std::string& column) {
  const auto split = [](const std::string& line) {
    std::istringstream in(line);
    std::vector<std::string> fields;
    for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
    return fields;
  };
  const auto lines = lines_of(csv);
  const auto heads = split(lines.front());
  const auto at = std::ranges::find(heads, column) - heads.begin();
  double sum = 0.0;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto fields = split(lines[i]);
    EXPECT_EQ(fields.size(), heads.size()) << lines[i];
    sum += std::stod(fields.at(static_cast<std::size_t>(at)));
  }
  return sum;
}

TEST(WorkersCsv, HasTheTimesOfEveryWorker) {
  const std::string csv = workers_csv(with_everything({"mirrored", "async"}));
  const auto lines = lines_of(csv);
  ASSERT_EQ(lines.size(), 1U + 3 * 2);
  EXPECT_EQ(lines[1], "async,1,0,100,150,10,6,1,2,0.5,4000000,5000000");
  EXPECT_EQ(sum_of(csv, "samples"), 6 * 150);
  EXPECT_EQ(sum_of(csv, "seconds"), 6 * 10);
  EXPECT_EQ(sum_of(csv, "compute_seconds"), 6 * 6);
  EXPECT_EQ(sum_of(csv, "bytes_received"), 6 * 5e6);
}

TEST(StalenessCsv, CountsEveryGradientOnce) {
  Comparison comparison = with_everything({"mirrored", "async"});
  auto& histogram = comparison.variants[1].runs[0].result->summary.staleness[1].histogram;
  for (const std::uint64_t staleness : {64U, 65U, 1000U}) histogram.add(staleness);
  const std::string csv = staleness_csv(comparison);
  EXPECT_EQ(sum_of(csv, "count"), 6 * 5 + 3);
  const auto lines = lines_of(csv);
  ASSERT_EQ(lines.size(), 1U + 6 * 3 + 2);
  EXPECT_EQ(lines[2], "async,1,0,1,1,3");
  EXPECT_EQ(lines[7], "async,1,1,64,67,2");
  EXPECT_EQ(lines[8], "async,1,1,992,1023,1");
}

}  // namespace
}  // namespace syncopate::bench
