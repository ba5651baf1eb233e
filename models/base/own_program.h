// Finds the program that this process runs, and how to start it again. /proc/self/exe does not name
// the program's file if the program was started through the C library's loader. The scripts in a
// bundle start programs in this way; a bundle is a folder made by deploy/bundle.sh.
#pragma once

#include <filesystem>

namespace syncopate {

// Returns the absolute path of the program's file. Throws FileError if the kernel does not provide
// the path.
std::filesystem::path own_file();

// Returns the absolute path of the file to execute in order to start this program again. This is
// own_file(), except in a bundle: there, own_file() is programs/NAME, and this function returns the
// path of the script bin/NAME. Throws FileError as own_file() does.
std::filesystem::path own_program();

}  // namespace syncopate
