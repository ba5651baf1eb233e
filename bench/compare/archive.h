// Packs a comparison into one file, as a supplement of a paper: `syncopate-bench report --archive`.
#pragma once

#include <filesystem>

namespace syncopate::bench {

// Throws UsageError if the file exists, or if its name does not end with .tar.gz.
void require_new_archive(const std::filesystem::path& file);

// Packs the comparison, or the map of several clusters, in the folder `dir`: descriptions, runs,
// pages, plots and tables, and a README.txt with the command and the hashes. Other files of the
// folder are left out. The archive contains one folder with the name of the archive. Starts the
// program tar. Throws FileError; then there is no archive.
void write_archive(const std::filesystem::path& dir, const std::filesystem::path& file);

}  // namespace syncopate::bench
