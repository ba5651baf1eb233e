# add_isa_kernels(<target> [CONTRACT] <file>...) compiles each file once per instruction set into <target>, with
# SYNCOPATE_ISA naming the namespace (v2, v3, v4). Such files include no standard library templates: the linker
# keeps one copy of an inline template, and a copy compiled for AVX-512 would fail on other machines.
# CONTRACT lets a * b + c become one instruction, in files whose results need not be equal for every slice of an array.
function(add_isa_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "CONTRACT" "" "")
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)  # makes names unique if several folders add to one target
  foreach(isa v2 v3 v4)
    set(objects ${target}_${folder}_kernels_${isa})
    if(ARG_CONTRACT)
      string(APPEND objects _contract)
    endif()
    add_library(${objects} OBJECT ${ARG_UNPARSED_ARGUMENTS})
    target_link_libraries(${objects} PRIVATE syncopate_settings)
    # Without this option GCC contracts across inlined calls, which changes bits.
    set_target_properties(${objects} PROPERTIES UNITY_BUILD OFF)
    target_compile_definitions(${objects} PRIVATE SYNCOPATE_ISA=${isa})
    target_compile_options(${objects} PRIVATE -O3 -march=x86-64-${isa} -fno-math-errno -fno-trapping-math -Wno-psabi
                                              -Wno-maybe-uninitialized)  # GCC bug 105593: false warnings in intrinsics
    if(isa STREQUAL v4)
      target_compile_options(${objects} PRIVATE -mprefer-vector-width=512)
    endif()
    target_compile_options(${objects} PRIVATE -ffp-contract=$<IF:$<BOOL:${ARG_CONTRACT}>,fast,off>)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()
