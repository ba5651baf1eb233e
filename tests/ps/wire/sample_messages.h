// Returns one message with every kind of body; every field differs from its default.
#pragma once

#include <vector>

#include "ps/wire/message.h"

namespace syncopate::ps::wire {

std::vector<MessageT> sample_messages();

}  // namespace syncopate::ps::wire
