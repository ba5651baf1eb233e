#include "bench/compare/report/comparison_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "bench/compare/report/comparison_plots.h"
#include "bench/compare/report/facts.h"
#include "bench/compare/report/method_facts.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/tables.h"
#include "bench/compare/report/tuning_report.h"
#include "bench/plots/document.h"
#include "bench/plots/text.h"
#include "models/base/replacing_file.h"

namespace syncopate::bench {
namespace {

std::string figures_html(const Outcome& outcome) {
  const auto figure = [&](const auto& draw) {
    return fmt::format("<figure>\n{}{}</figure>\n",
                       draw(outcome, FigureForm::kWide).element("wide"),
                       draw(outcome, FigureForm::kNarrow).element("narrow"));
  };
  if (!outcome.soonest) {  // the curves show how far from the target the runs ended
    std::vector<NamedPlot> plots = learning_plots(outcome.comparison);
    std::erase_if(plots, [](const NamedPlot& plot) { return plot.name != "accuracy-seconds"; });
    return plots_html(plots);
  }
  return fmt::format(
      "<div class=\"two\">\n{}{}</div>\n{}", figure(time_figure), figure(accuracy_figure),
      note_html(
          "Accuracy: a line is the mean over the seeds, and ends with its runs or some time after "
          "the last dot. A dot is a row's mean time to the target; it lies right of its line, "
          "because the target counts as reached at the next evaluation."));
}

std::vector<NamedPlot> all_plots(const Outcome& outcome) {
  std::vector<NamedPlot> plots;
  if (outcome.soonest) {
    plots.push_back({"time", time_figure(outcome, FigureForm::kWide)});
    plots.push_back({"accuracy", accuracy_figure(outcome, FigureForm::kWide)});
  }
  for (auto* make : {learning_plots, time_plots, communication_plots, tuning_plots}) {
    std::ranges::move(make(outcome.comparison), std::back_inserter(plots));
  }
  return plots;
}

std::string files_html(const Outcome& outcome) {
  std::vector<std::string> files;
  for (const NamedPlot& plot : all_plots(outcome)) files.push_back("plots/" + plot.name + ".svg");
  for (const char* name : {"runs", "curves", "workers", "staleness"}) {
    files.push_back(name + std::string(".csv"));
  }
  std::string html;
  for (const std::string& file : files) {
    html += fmt::format("{0}<a href=\"{1}\">{1}</a>", html.empty() ? "<p>" : ", ", file);
  }
  return html + "</p>\n";
}

std::string facts_html(const Outcome& outcome) {
  std::string html = "<dl>\n";
  for (const Fact& fact : facts_of(outcome)) {
    if (fact.subject == kTuningFact) continue;  // stands beside the curves of the search
    html += fact_html(fact.subject, joined_html(fact.text));
  }
  return html + "</dl>\n";
}

// A number in a CSV file has all its digits, so that it reads back unchanged.
std::string csv_value(double value) { return std::isfinite(value) ? fmt::format("{}", value) : ""; }
std::string csv_value(std::int64_t value) { return fmt::format("{}", value); }
std::string csv_value(const std::string& text) { return csv_field(text); }
template <typename T>
std::string csv_value(const std::optional<T>& value) {
  return value ? csv_value(*value) : "";
}

template <typename... Fields>
std::string csv_line(const Fields&... fields) {
  std::string text;
  ((text += csv_value(fields) + ","), ...);
  text.back() = '\n';
  return text;
}

std::string run_line(const Comparison& comparison, const ComparedVariant& variant,
                     const ComparedRun& run) {
  using Text = std::optional<std::string>;
  const std::string status = run.is_done() ? "done" : run.has_failed() ? "failed" : "pending";
  const Summary summary = run.result ? run.result->summary : Summary{};
  const auto known = [&](const auto& value) {  // if the run is done
    return run.is_done() ? std::optional(value) : std::nullopt;
  };
  const auto point = run.is_done() && comparison.target_accuracy
                         ? time_to_target(*run.result, *comparison.target_accuracy)
                         : std::nullopt;
  const auto& derived = comparison.derived_target;
  const auto [processes, cpus] = resources_of(comparison, variant);
  return csv_line(variant.label, std::int64_t{variant.workers}, run.file, status,
                  run.result ? Text(fmt::format("{}", run.result->seed)) : Text(),
                  run.has_failed() ? run.result->failure : Text(), known(summary.steps),
                  known(summary.samples), known(summary.seconds), known(summary.samples_per_second),
                  known(summary.train_loss), known(summary.test.metric.value),
                  known(summary.test.loss),
                  run.is_done() ? comparison.target_accuracy : std::nullopt,
                  derived ? known(derived->baseline) : Text(),
                  point ? std::optional(point->seconds) : std::nullopt,
                  point ? std::optional(point->samples) : std::nullopt,
                  known(summary.staleness_mean), known(summary.staleness_max),
                  known(summary.input_wait_fraction), known(summary.communication_exposed_fraction),
                  run.is_done() ? run.result->predicted_communication_seconds : std::nullopt,
                  known(summary.weights_hash), std::int64_t{processes}, std::int64_t{cpus},
                  point ? std::optional(point->seconds * cpus) : std::nullopt);
}

// Calls use(variant, result) for every run that has ended.
template <typename Use>
void for_each_result(const Comparison& comparison, Use use) {
  for (const ComparedVariant& variant : comparison.variants) {
    for (const ComparedRun& run : variant.runs) {
      if (run.result) use(variant, *run.result);
    }
  }
}

std::string tuning_html(const Comparison& comparison) {
  if (!comparison.is_tuned()) return "";
  return fmt::format("<p>{}.</p>\n{}{}", html_text(tuning_words(comparison)),
                     html_of(tuning_table(comparison)), plots_html(tuning_plots(comparison)));
}

}  // namespace

std::string html_page(const Outcome& outcome) {
  const Comparison& comparison = outcome.comparison;
  const Table tests = tests_table(outcome);
  const std::string next = next_sentence(outcome);
  return answer_page(
      {.title = question_of(outcome),
       .setting = setting_sentence(outcome),
       .verdict = verdict_sentence(outcome),
       .accuracy = accuracy_sentence(accuracy_losses(outcome), outcome.rows),
       .has_answer = outcome.answer.has_winners(),
       .figure = figures_html(outcome),
       .below = html_of(answer_table(outcome)) + warnings_html(shown_warnings(outcome)) +
                (next.empty() ? "" : fmt::format("<p class=\"next\">{}</p>\n", html_text(next))),
       .folds = {
           {"Results", "all numbers of each variant", html_of(results_table(outcome))},
           {"How it was decided", count_text(static_cast<int>(tests.rows.size()), "test"),
            tests.rows.empty() ? "" : html_of(tests)},
           {"Method and conditions", "what the numbers are, machine, command", facts_html(outcome)},
           {"Tuning", "the values that were tried", tuning_html(comparison)},
           {"Learning", "curves of all runs", plots_html(learning_plots(comparison))},
           {"Where time went", "throughput, parts of the workers' time, staleness",
            plots_html(time_plots(comparison))},
           {"Communication", "bytes of messages; on links, also times",
            plots_html(communication_plots(comparison))},
           {"Files", "plots and data", files_html(outcome)}}});
}

std::string runs_csv(const Comparison& comparison) {
  std::string text =
      "label,workers,file,status,seed,failure,steps,samples,seconds,samples_per_second,train_loss,"
      "test_accuracy,test_loss,target_accuracy,target_of,seconds_to_target,samples_to_target,"
      "staleness_mean,staleness_max,input_wait_fraction,communication_exposed_fraction,"
      "predicted_communication_seconds,weights_hash,processes,cpus,cpu_seconds_to_target\n";
  for (const ComparedVariant& variant : comparison.variants) {
    for (const ComparedRun& run : variant.runs) text += run_line(comparison, variant, run);
  }
  return text;
}

std::string curves_csv(const Comparison& comparison) {
  std::string text =
      "label,workers,seed,kind,step,samples,seconds,loss,accuracy,samples_per_second\n";
  const std::optional<double> no_value;
  const std::string split(comparison.watched_split());
  for_each_result(comparison, [&](const ComparedVariant& variant, const RunResult& run) {
    const std::int64_t workers = variant.workers;
    const auto seed = fmt::format("{}", run.seed);
    for (const CurvePoint& point : run.curve) {
      text += csv_line(variant.label, workers, seed, split, point.step, point.samples,
                       point.seconds, point.loss, point.accuracy, no_value);
    }
    for (const StepMetrics& point : run.training) {
      text +=
          csv_line(variant.label, workers, seed, std::string("train"), point.step, point.samples,
                   point.seconds, point.loss, no_value, point.samples_per_second);
    }
  });
  return text;
}

std::string workers_csv(const Comparison& comparison) {
  std::string text =
      "label,seed,worker,steps,samples,seconds,compute_seconds,communication_exposed_seconds,"
      "peers_wait_seconds,input_wait_seconds,bytes_sent,bytes_received\n";
  for_each_result(comparison, [&](const ComparedVariant& variant, const RunResult& run) {
    for (const WorkerMetrics& times : run.times) {
      text += csv_line(variant.label, fmt::format("{}", run.seed), std::int64_t{times.worker},
                       times.steps, times.samples, times.seconds, times.compute_seconds,
                       times.communication_exposed_seconds, times.peers_wait_seconds,
                       times.input_wait_seconds, times.bytes_sent, times.bytes_received);
    }
  });
  return text;
}

std::string staleness_csv(const Comparison& comparison) {
  std::string text = "label,seed,worker,from,to,count\n";
  for_each_result(comparison, [&](const ComparedVariant& variant, const RunResult& run) {
    for (const WorkerStaleness& worker : run.summary.staleness) {
      const std::vector<std::int64_t>& counts = worker.histogram.counts();
      for (std::size_t range = 0; range < counts.size(); ++range) {
        if (counts[range] == 0) continue;
        text += fmt::format("{},{},{},{},{},{}\n", csv_field(variant.label), run.seed,
                            worker.worker, ps::StalenessHistogram::least_of(range),
                            ps::StalenessHistogram::least_of(range + 1) - 1, counts[range]);
      }
    }
  });
  return text;
}

void write_comparison_report(const std::filesystem::path& dir, const Outcome& outcome) {
  const Comparison& comparison = outcome.comparison;
  replace_file(dir / "report.html", html_page(outcome));
  std::error_code ignored;  // a plot's file then cannot be written, and the error names it
  std::filesystem::create_directory(dir / "plots", ignored);
  for (const NamedPlot& plot : all_plots(outcome)) {
    replace_file(dir / "plots" / (plot.name + ".svg"), plot.picture.file());
  }
  replace_file(dir / "runs.csv", runs_csv(comparison));
  replace_file(dir / "curves.csv", curves_csv(comparison));
  replace_file(dir / "workers.csv", workers_csv(comparison));
  replace_file(dir / "staleness.csv", staleness_csv(comparison));
}

}  // namespace syncopate::bench
