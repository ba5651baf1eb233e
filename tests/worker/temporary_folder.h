// The folder of tests is in tests/support.
#pragma once

#include "tests/support/temporary_folder.h"
