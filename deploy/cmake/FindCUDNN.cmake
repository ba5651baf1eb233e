# Finds cuDNN 9, which has no CMake package. Defines CUDNN::cudnn, the small library that loads the others.
# It looks, in this order, in CUDNN_ROOT; in SYNCOPATE_NVIDIA_WHEELS, the folder `nvidia` of Python's packages, which has
# libcudnn.so.9 without a link libcudnn.so; and in the CUDA toolkit.
find_path(CUDNN_INCLUDE_DIR cudnn_version.h
  HINTS ${CUDNN_ROOT} ${SYNCOPATE_NVIDIA_WHEELS}/cudnn ${CUDAToolkit_TARGET_DIR} ${CUDAToolkit_INCLUDE_DIRS}
  PATH_SUFFIXES include)
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9
  HINTS ${CUDNN_ROOT} ${SYNCOPATE_NVIDIA_WHEELS}/cudnn ${CUDAToolkit_TARGET_DIR} ${CUDAToolkit_LIBRARY_DIR}
  PATH_SUFFIXES lib lib64)
foreach(header cudnn_version.h cudnn_version_v9.h)
  if(CUDNN_INCLUDE_DIR AND EXISTS ${CUDNN_INCLUDE_DIR}/${header} AND NOT CUDNN_VERSION)
    file(STRINGS ${CUDNN_INCLUDE_DIR}/${header} lines REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]")
    string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
    list(JOIN numbers "." CUDNN_VERSION)
  endif()
endforeach()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CUDNN REQUIRED_VARS CUDNN_LIBRARY CUDNN_INCLUDE_DIR VERSION_VAR CUDNN_VERSION
  REASON_FAILURE_MESSAGE "give CUDNN_ROOT, or SYNCOPATE_NVIDIA_WHEELS")
if(CUDNN_FOUND AND NOT TARGET CUDNN::cudnn)
  add_library(CUDNN::cudnn UNKNOWN IMPORTED)
  set_target_properties(CUDNN::cudnn PROPERTIES IMPORTED_LOCATION ${CUDNN_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES ${CUDNN_INCLUDE_DIR})
endif()
