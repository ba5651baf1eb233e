// One function per row of the table behind --data (dataset.cc): what follows the colon in, both
// splits out. They throw what open_dataset promises.
#pragma once

#include <string_view>

#include "worker/input/dataset.h"

namespace syncopate {

DataSplits open_digits(std::string_view argument, const DataOptions& options);
DataSplits open_mnist(std::string_view folder, const DataOptions& options);
DataSplits open_cifar10(std::string_view folder, const DataOptions& options);
DataSplits open_synthetic(std::string_view argument, const DataOptions& options);

// Throws UsageError, naming the --data form, unless `folder` is one.
void check_is_folder(std::string_view data_name, std::string_view folder);

}  // namespace syncopate
