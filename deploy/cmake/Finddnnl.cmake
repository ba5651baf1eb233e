# Finds oneDNN without oneDNN's own package file, which aborts the configuration if OpenCL's headers are missing.
# Defines DNNL::dnnl. It looks in DNNL_ROOT first.
find_path(DNNL_INCLUDE_DIR dnnl.h HINTS ${DNNL_ROOT} PATH_SUFFIXES include)
find_library(DNNL_LIBRARY dnnl HINTS ${DNNL_ROOT} PATH_SUFFIXES lib)
if(DNNL_INCLUDE_DIR AND EXISTS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
  file(STRINGS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers "." dnnl_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(dnnl REQUIRED_VARS DNNL_LIBRARY DNNL_INCLUDE_DIR VERSION_VAR dnnl_VERSION
  REASON_FAILURE_MESSAGE "install libdnnl-dev, or run deploy/quickstart.sh")
if(dnnl_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
endif()
