#include "bench/compare/report/terminal_report.h"

#include <algorithm>
#include <ostream>
#include <vector>

#include "bench/compare/report/facts.h"
#include "bench/compare/report/outcome_words.h"
#include "bench/compare/report/tables.h"
#include "bench/plots/terminal_table.h"

namespace syncopate::bench {
void print_facts(std::ostream& out, const std::vector<Fact>& facts) {
  constexpr std::size_t kSubject = 12;
  for (const Fact& fact : facts) {
    const std::size_t gap = kSubject - std::min(kSubject - 1, fact.subject.size());
    print_paragraph(out, fact.text, fact.subject + std::string(gap, ' '));
  }
}

void print_outcome(std::ostream& out, const Outcome& outcome) {
  print_columns(out, answer_table(outcome));
  print_paragraph(out, setting_sentence(outcome));
  const std::vector<Fact> warnings = shown_warnings(outcome);
  if (!warnings.empty()) out << '\n';
  print_facts(out, warnings);
  out << '\n';
  print_paragraph(out, verdict_sentence(outcome));
  print_paragraph(out, accuracy_sentence(accuracy_losses(outcome), outcome.rows));
  print_paragraph(out, next_sentence(outcome));
}

void print_explanation(std::ostream& out, const Outcome& outcome) {
  print_columns(out, results_table(outcome));
  const Table tests = tests_table(outcome);
  if (!tests.rows.empty()) print_columns(out << '\n', tests);
  out << '\n';
  print_facts(out, facts_of(outcome));
}

}  // namespace syncopate::bench
