#include "deploy/doctor/finding.h"

#include <algorithm>
#include <string_view>

#include "models/base/formatted.h"

namespace syncopate {
namespace {

const char* name_of(Finding::Kind kind) {
  switch (kind) {
    case Finding::Kind::kError:
      return "ERROR";
    case Finding::Kind::kWarning:
      return "warning";
    case Finding::Kind::kNote:
      return "note";
    case Finding::Kind::kGood:
      return "ok";
  }
  return "";
}

}  // namespace

std::string describe(std::vector<Finding> findings) {
  std::ranges::stable_sort(findings, {}, &Finding::kind);
  std::string text;
  for (const Finding& finding : findings) {
    text += formatted("%-8s %-14s %s\n", name_of(finding.kind), finding.what.c_str(),
                      finding.line.c_str());
  }
  return text;
}

bool has_errors(const std::vector<Finding>& findings) {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.kind == Finding::Kind::kError; });
}

}  // namespace syncopate
