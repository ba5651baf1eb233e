// What a run writes later, tried when it starts: a mistake is better known now than after an epoch.
#pragma once

#include <filesystem>

namespace syncopate {

// --checkpoint-dir: makes the folder where there is none, and it takes files. Throws FileError.
void make_checkpoint_folder(const std::filesystem::path& folder);

// --record: `file` can be written; one that is there stays as it is. Throws FileError.
void try_record(const std::filesystem::path& file);

}  // namespace syncopate
