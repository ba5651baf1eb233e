// Writes the initial corpus of csv_fuzzer into the folder that the argument names.
#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

int main(int /*argc*/, char** argv) {
  const std::filesystem::path folder = argv[1];
  constexpr std::array<std::string_view, 4> kTexts = {"1,2.5,0\n-3,4e1,2\n",
                                                      "width,\"height\",class\r\n1,2,0\r\n\r\n",
                                                      "\xEF\xBB\xBF"
                                                      "a,b\n+1,2",
                                                      "1;2\n"};
  for (std::size_t i = 0; i < kTexts.size(); ++i) {
    std::ofstream(folder / std::to_string(i), std::ios::binary) << kTexts.at(i);
  }
  return 0;
}
