# add_isa_kernels(<target> [CONTRACT] <file>...) compiles each file once per instruction set into <target>, with
# SYNCOPATE_ISA naming the namespace (v2, v3, v4). Such files include no standard library templates: an inline
# template compiled for AVX-512 could be the copy that the linker keeps for everybody.
# CONTRACT allows a * b + c to become one instruction: for products and sums whose result no slice has to repeat.
function(add_isa_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "CONTRACT" "" "")
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)  # several folders may add to one target
  foreach(isa v2 v3 v4)
    set(objects ${target}_${folder}_kernels_${isa})
    if(ARG_CONTRACT)
      string(APPEND objects _contract)
    endif()
    add_library(${objects} OBJECT ${ARG_UNPARSED_ARGUMENTS})
    target_link_libraries(${objects} PRIVATE syncopate_settings)
    # Contraction across a call that is inlined would change bits.
    set_target_properties(${objects} PROPERTIES UNITY_BUILD OFF)
    target_compile_definitions(${objects} PRIVATE SYNCOPATE_ISA=${isa})
    target_compile_options(${objects} PRIVATE -O3 -march=x86-64-${isa} -fno-math-errno -fno-trapping-math -Wno-psabi
                                              -Wno-maybe-uninitialized)  # GCC 12's own intrinsics: its bug 105593
    if(isa STREQUAL v4)
      target_compile_options(${objects} PRIVATE -mprefer-vector-width=512)
    endif()
    target_compile_options(${objects} PRIVATE -ffp-contract=$<IF:$<BOOL:${ARG_CONTRACT}>,fast,off>)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()
