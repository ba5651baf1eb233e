# Finds libzmq's C interface. Defines ZeroMQ::libzmq. Its pkg-config file is not used: it names the headers of libraries
# that zmq.h does not include, and a second configuration passes them in another order, which compiles all of ps again.
find_path(ZEROMQ_INCLUDE_DIR zmq.h)
find_library(ZEROMQ_LIBRARY zmq)
mark_as_advanced(ZEROMQ_INCLUDE_DIR ZEROMQ_LIBRARY)
if(ZEROMQ_INCLUDE_DIR)
  file(STRINGS ${ZEROMQ_INCLUDE_DIR}/zmq.h lines REGEX "define ZMQ_VERSION_(MAJOR|MINOR|PATCH) [0-9]")
  string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
  list(JOIN numbers "." ZeroMQ_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZeroMQ REQUIRED_VARS ZEROMQ_LIBRARY ZEROMQ_INCLUDE_DIR VERSION_VAR ZeroMQ_VERSION
  REASON_FAILURE_MESSAGE "install libzmq3-dev, or run deploy/quickstart.sh")
if(ZeroMQ_FOUND AND NOT TARGET ZeroMQ::libzmq)
  add_library(ZeroMQ::libzmq UNKNOWN IMPORTED)
  set_target_properties(ZeroMQ::libzmq PROPERTIES IMPORTED_LOCATION ${ZEROMQ_LIBRARY}
                                                  INTERFACE_INCLUDE_DIRECTORIES ${ZEROMQ_INCLUDE_DIR})
endif()
