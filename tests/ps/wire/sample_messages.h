// One message with every kind of body, no field left as it is by itself.
#pragma once

#include <vector>

#include "ps/wire/message.h"

namespace syncopate::ps::wire {

std::vector<MessageT> sample_messages();

}  // namespace syncopate::ps::wire
