// How often server 0 was started in a job: a number in a file beside its snapshots. What it numbers
// after a start differs from what it numbered before, also when there was no snapshot in between.
#pragma once

#include <filesystem>
#include <string>

namespace syncopate::ps {

// Of earlier starts with this nonce; counts this one. 0 without a folder or a nonce. Throws
// FileError.
int count_starts(const std::filesystem::path& dir, const std::string& nonce);
// The job is over.
void forget_starts(const std::filesystem::path& dir);

}  // namespace syncopate::ps
