#include "ps/coordinator/text_exchange.h"

#include <utility>

namespace syncopate::ps {

void TextExchange::on_exchange(int worker, const wire::ExchangeT& exchange) {
  // The worker sent this text before it received RollBack, and will send its texts again.
  if (job_.worker(worker).must_roll_back) return;
  // A worker waits for one round of texts at a time, so its texts of earlier rounds are obsolete.
  for (auto& [round, texts] : open_) texts.erase(worker);
  std::erase_if(open_, [](const auto& round) { return round.second.empty(); });
  const auto answered = answered_.find(exchange.round);
  if (answered != answered_.end()) {
    answered->second[worker] = exchange.text;
    return answer(worker, exchange.round, answered->second);
  }
  open_[exchange.round][worker] = exchange.text;
}

void TextExchange::clear() {
  open_.clear();
  answered_.clear();
}

void TextExchange::advance() {
  for (auto round = open_.begin(); round != open_.end();) {
    bool is_complete = true;
    for (int w = 0; w < job_.num_workers(); ++w) {
      if (job_.is_present(w) && !round->second.contains(w)) is_complete = false;
    }
    if (!is_complete) {
      ++round;
      continue;
    }
    for (int w = 0; w < job_.num_workers(); ++w) {
      if (job_.is_admitted(w)) answer(w, round->first, round->second);
    }
    // Synchronous workers repeat at most the last round of texts, after a reconnect.
    if (job_.is_synchronous()) answered_.clear();
    answered_.insert_or_assign(round->first, std::move(round->second));
    round = open_.erase(round);
  }
}

void TextExchange::answer(int worker, std::uint64_t round, const Texts& texts) {
  wire::ExchangedT exchanged;
  exchanged.round = round;
  for (int w = 0; w < job_.num_workers(); ++w) {
    auto text = std::make_unique<wire::TextT>();
    const auto given = texts.find(w);
    if (given != texts.end()) text->text = given->second;
    exchanged.texts.push_back(std::move(text));
  }
  job_.send_to_worker(worker, std::move(exchanged));
}

}  // namespace syncopate::ps
