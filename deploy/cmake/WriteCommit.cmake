# Writes a C++ function that returns the commit of the checkout ROOT, with "-dirty" if tracked files have changes. Without
# git, or if ROOT is not the top folder of a checkout, as in an unpacked archive, the function returns "".
set(commit "")
if(GIT)
  set(ENV{GIT_OPTIONAL_LOCKS} 0)
  execute_process(COMMAND ${GIT} -C ${ROOT} rev-parse --show-toplevel OUTPUT_VARIABLE top RESULT_VARIABLE failed
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH ${ROOT} root)
  if(NOT failed AND top STREQUAL root)
    execute_process(COMMAND ${GIT} -C ${ROOT} describe --always --exclude=* --abbrev=12 --dirty OUTPUT_VARIABLE commit
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
endif()
file(CONFIGURE OUTPUT ${SOURCE} @ONLY CONTENT [[
#include "@HEADER@"

namespace syncopate::bench {

std::string_view @FUNCTION@() noexcept { return "@commit@"; }

}  // namespace syncopate::bench
]])
