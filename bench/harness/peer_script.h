// Where the scripts of bench/peers/ are: beside an installed program, or where they were written.
#pragma once

#include <filesystem>
#include <string_view>

namespace syncopate::bench {

// file: "torch_step.py". Whether it is there is for whoever starts it to find out.
std::filesystem::path peer_script(std::string_view file);

}  // namespace syncopate::bench
