# add_proto_messages(<library> <message>...)
# Makes a library of the messages in <message>.proto of the current folder. The caller has found Protobuf.
function(add_proto_messages library)
  set(generated ${PROJECT_BINARY_DIR}/generated)
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(sources)
  foreach(message IN LISTS ARGN)
    set(outputs ${generated}/${folder}/${message}.pb.cc ${generated}/${folder}/${message}.pb.h)
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${generated}/${folder}
      COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${generated} ${folder}/${message}.proto
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      DEPENDS ${message}.proto
      COMMENT "Generating ${folder}/${message}.pb.h"
      VERBATIM)
    list(APPEND sources ${outputs})
  endforeach()
  # Generated code is compiled without this project's warnings, and one file at a time: its files have equal local names.
  add_library(${library} STATIC ${sources})
  set_target_properties(${library} PROPERTIES UNITY_BUILD OFF)
  target_include_directories(${library} SYSTEM PUBLIC $<BUILD_INTERFACE:${generated}>)
  target_link_libraries(${library} PUBLIC protobuf::libprotobuf-lite)
endfunction()
