// How two comparisons differ, and how two runs of one name differ, in words. Both are compared as
// JSON: the first line of a run's file, or comparison.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace syncopate::bench {

// Returns how two comparisons differ in what all runs of a comparison have in common; "" if they do
// not differ. found: the comparison that exists. wanted: the planned comparison.
std::string difference_of_comparisons(const nlohmann::ordered_json& found,
                                      const nlohmann::ordered_json& wanted);

// Returns how the run that exists differs from the run that is planned under its name; "" if the
// result of the existing run can be kept.
std::string difference_of_run(const nlohmann::ordered_json& found,
                              const nlohmann::ordered_json& wanted);

// Returns a field of an object; null if it is missing.
nlohmann::ordered_json value_at(const nlohmann::ordered_json& object, const char* key);

// Returns a JSON value as words of a message: a list with blanks, "none" for nothing.
std::string words_of(const nlohmann::ordered_json& value);

}  // namespace syncopate::bench
