#include "worker/input/dataset.h"

#include <array>
#include <filesystem>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr std::array<DatasetRow, 4> kDatasets = {{
    {"digits", "digits", "drawn digits, 28x28 grey, 60,000 + 10,000, made here", open_digits},
    {"mnist", "mnist:DIR", "the four IDX files of MNIST, plain or .gz", open_mnist},
    {"cifar10", "cifar10:DIR", "CIFAR-10, binary version, plain, .gz or .zst", open_cifar10},
    {"synthetic", "synthetic:CxHxW:CLASSES[:SAMPLES]",
     "noise on a pattern per class, made in memory", open_synthetic},
}};

}  // namespace

std::span<const DatasetRow> datasets() noexcept { return kDatasets; }

DataSplits open_dataset(std::string_view specification, const DataOptions& options) {
  const std::size_t colon = specification.find(':');
  const std::string_view name = specification.substr(0, colon);
  const bool has_argument = colon != std::string_view::npos;
  const std::string_view argument = has_argument ? specification.substr(colon + 1) : "";
  std::string known;
  for (const DatasetRow& row : kDatasets) {
    if (row.name == name) {
      const bool wants_argument = row.pattern != row.name;
      if (wants_argument != !argument.empty() || (has_argument && !wants_argument)) {
        throw UsageError("--data '" + std::string(specification) + "'; expected " +
                         std::string(row.pattern));
      }
      return row.open(argument, options);
    }
    known += (known.empty() ? "" : ", ") + std::string(row.pattern);
  }
  throw UsageError("no dataset is called '" + std::string(name) + "'; expected one of " + known);
}

void check_is_folder(std::string_view data_name, std::string_view folder) {
  std::error_code error;
  if (std::filesystem::is_directory(folder, error)) return;
  throw UsageError(std::string(data_name) + ": there is no folder " + std::string(folder) +
                   "; expected --data " + std::string(data_name) +
                   ":DIR with the dataset's files in DIR");
}

}  // namespace syncopate
