# Sets how everything is compiled: C++20, warnings as errors, no floating-point contraction, sanitizers on request.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(SYNCOPATE_SANITIZE "" CACHE STRING "Sanitizers: 'address,undefined' or 'thread'; empty for none")
option(SYNCOPATE_WERROR "Warnings are errors" ON)

# Several source files are compiled as one: their headers are read once, which makes a whole build about four times as
# fast. Names in unnamed namespaces are therefore unique within a library.
option(SYNCOPATE_UNITY "Compile several source files as one" ON)
set(CMAKE_UNITY_BUILD ${SYNCOPATE_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 10)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# A program leaves out the functions that it does not call.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG -ffunction-sections -fdata-sections")
set(CMAKE_EXE_LINKER_FLAGS_RELEASE -Wl,--gc-sections)

# Every target of this project links syncopate_settings.
add_library(syncopate_settings INTERFACE)
target_include_directories(syncopate_settings INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(syncopate_settings INTERFACE -Wall -Wextra -Wshadow -Wno-missing-field-initializers)
if(SYNCOPATE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # In a unity build a class may have members from the unnamed namespace of another file, and GCC 12 inlines more: it then
  # warns falsely that the value of an empty std::optional is used.
  target_compile_options(syncopate_settings INTERFACE -Wno-subobject-linkage -Wno-maybe-uninitialized)
endif()
if(SYNCOPATE_WERROR)
  target_compile_options(syncopate_settings INTERFACE -Werror)
endif()
if(SYNCOPATE_SANITIZE)
  target_compile_options(syncopate_settings INTERFACE -fsanitize=${SYNCOPATE_SANITIZE} -fno-omit-frame-pointer
                                                      -fno-sanitize-recover=all)
  target_link_options(syncopate_settings INTERFACE -fsanitize=${SYNCOPATE_SANITIZE})
endif()
find_package(Threads REQUIRED)
target_link_libraries(syncopate_settings INTERFACE Threads::Threads)

# All code outside kernels/ runs on any x86-64-v2 machine. Contraction is off, so that all machines compute equal bits.
add_library(syncopate_baseline INTERFACE)
target_link_libraries(syncopate_baseline INTERFACE syncopate_settings)
target_compile_options(syncopate_baseline INTERFACE -march=x86-64-v2 -ffp-contract=off)

find_program(SYNCOPATE_CCACHE ccache)
if(SYNCOPATE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SYNCOPATE_CCACHE})
endif()
