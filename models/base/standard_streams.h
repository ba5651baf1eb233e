// Makes the standard streams of a program safe when they are closed or when nothing reads them.
// `main` makes the only object.
#pragma once

#include <memory>

namespace syncopate {

// While an object lives, std::cout and std::cerr write through it. Thread-safe.
// - std::cout loses nothing: a write waits for the reader. When a request to stop arrives
//   (worker/train/stop_signal.h), a waiting write is abandoned after one second, and std::cout is
//   then in a failed state.
// - std::cerr, which carries progress and notes, must not stop the work: lines are dropped after
//   five seconds without a reader, or one second after a request to stop. When the reader
//   continues, one line says how many lines were dropped.
class StandardStreams {
 public:
  // Opens /dev/null in place of each standard descriptor that is closed, in a mode in which reading
  // and writing still fail. Otherwise the next opened files would get these descriptors, and output
  // would be written into the files. Ignores SIGPIPE and SIGXFSZ, so that a write to a pipe without
  // a reader, or beyond the limit on file sizes, fails with an error instead of ending the process.
  // Call it before the program opens a file.
  StandardStreams();
  StandardStreams(const StandardStreams&) = delete;
  StandardStreams& operator=(const StandardStreams&) = delete;
  ~StandardStreams();

  // Flushes std::cout. Returns false if output was lost. Returns true if the reader of standard
  // output, such as `head`, has closed its end of the pipe.
  static bool is_output_complete();

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace syncopate
