# add_program_commit(<library> <header> <function>)
# Makes a library with the function syncopate::bench::<function>() of <header>, which returns the commit that was built. A
# script looks for the commit in each build. It changes one source file, and only if the commit has changed.
function(add_program_commit library header function)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${function}.cc)
  find_package(Git QUIET)
  add_custom_target(${library}_source
    COMMAND ${CMAKE_COMMAND} -D GIT=${GIT_EXECUTABLE} -D ROOT=${PROJECT_SOURCE_DIR} -D SOURCE=${source} -D HEADER=${header}
            -D FUNCTION=${function} -P ${PROJECT_SOURCE_DIR}/deploy/cmake/WriteCommit.cmake
    BYPRODUCTS ${source}
    COMMENT "Looking for the commit"
    VERBATIM)
  add_library(${library} STATIC ${source})
  set_target_properties(${library} PROPERTIES UNITY_BUILD OFF)
  target_include_directories(${library} PUBLIC ${PROJECT_SOURCE_DIR})
  add_dependencies(${library} ${library}_source)
endfunction()
