// The page of an answer: the question, the verdict, one figure, and everything else folded. Its
// first screen is understood at a glance.
#pragma once

#include <string>
#include <vector>

namespace syncopate::bench {

// A part of the page that is closed until a reader opens it.
struct Fold {
  std::string title;
  std::string extent;  // how much it has, such as "12 of them"
  std::string html;    // an empty fold is left out
};

struct AnswerPage {
  std::string title;  // plain text, as the next three
  std::string setting;
  std::string verdict;
  std::string accuracy;
  bool has_answer = true;  // false: the verdict names nothing to use
  std::string figure;      // HTML, as the next two
  std::string below;
  std::vector<Fold> folds;
};

// Returns the page, which is HTML and also well-formed XML.
std::string answer_page(const AnswerPage& page);

// Returns the text as HTML, with numbers joined to their units and intervals in one piece.
std::string joined_html(const std::string& text);

}  // namespace syncopate::bench
