#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/verdict.h"
#include "bench/compare/report/whole_file.h"
#include "models/base/errors.h"

namespace syncopate::bench {

void keep_verdict(const std::filesystem::path& dir, const Verdict& verdict) {
  using Json = nlohmann::ordered_json;
  const std::filesystem::path file = dir / "comparison.json";
  std::ifstream in(file, std::ios::binary);
  Json comparison = Json::parse(in, nullptr, false);
  if (!comparison.is_object()) throw FileError(file.string() + ": does not describe a comparison");
  Json sentences = verdict.answer;
  for (const std::string& remark : verdict.remarks) sentences.push_back(remark);
  comparison["recommended"] = verdict.recommended ? Json(*verdict.recommended) : Json(nullptr);
  comparison["verdict"] = sentences;
  write_whole(file, comparison.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace syncopate::bench
