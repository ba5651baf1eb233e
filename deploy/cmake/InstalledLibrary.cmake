# Installs the component `development`: what a program needs that trains a network and data of its own (deploy/program.h).
# find_package(syncopate) then gives the target syncopate::syncopate.

# The public headers: what such a program includes, and what these headers include. tests/architecture checks that.
set(SYNCOPATE_PUBLIC_HEADERS
  deploy/program.h
  models/base/enum_names.h models/base/errors.h
  models/base/random.h
  models/graph/activation.h
  models/graph/graph.h
  models/graph/network_input.h
  models/graph/padding.h
  models/tensor/buffer.h
  models/tensor/parameter_arena.h
  models/tensor/tensor.h
  models/zoo/zoo.h
  worker/input/dataset.h
  worker/input/draw.h
  worker/input/sample.h
  worker/run/workload.h)

set(libraries syncopate_deploy syncopate_worker syncopate_image syncopate_strategies syncopate_ps syncopate_models)
set(SYNCOPATE_HAS_PROTOBUF OFF)
foreach(messages syncopate_records_proto syncopate_onnx_proto)
  if(TARGET ${messages})
    set(SYNCOPATE_HAS_PROTOBUF ON)
    list(APPEND libraries ${messages})
  endif()
endforeach()
set(component COMPONENT development EXCLUDE_FROM_ALL)
set(package lib/cmake/syncopate)

# What programs link. Programs that use the library find its modules where they are installed.
add_library(syncopate_library INTERFACE)
set_target_properties(syncopate_library PROPERTIES EXPORT_NAME syncopate)
target_compile_features(syncopate_library INTERFACE cxx_std_20)
target_include_directories(syncopate_library INTERFACE $<INSTALL_INTERFACE:include/syncopate>)
target_link_libraries(syncopate_library INTERFACE syncopate_deploy Threads::Threads)
target_link_options(syncopate_library INTERFACE
                    $<INSTALL_INTERFACE:LINKER:-rpath,$<INSTALL_PREFIX>/${SYNCOPATE_MODULE_DESTINATION}>)

foreach(header IN LISTS SYNCOPATE_PUBLIC_HEADERS)
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${header} DESTINATION include/syncopate/${folder} ${component})
endforeach()
install(TARGETS syncopate_library ${libraries} EXPORT syncopate ARCHIVE DESTINATION lib ${component})
install(EXPORT syncopate NAMESPACE syncopate:: FILE syncopateTargets.cmake DESTINATION ${package} ${component})

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/syncopateConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_CURRENT_LIST_DIR}/syncopateConfig.cmake.in syncopateConfig.cmake @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/syncopateConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/syncopateConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/Finddnnl.cmake
        DESTINATION ${package} ${component})
