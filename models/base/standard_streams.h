// Standard input, output and error of a program, when they are closed or when nothing reads them.
// `main` makes the only object.
#pragma once

#include <memory>

namespace syncopate {

// While an object lives, std::cout and std::cerr write through it. Thread-safe.
// - std::cout loses nothing: a write waits for the reader. A write that waits when a request to
//   stop arrives (stop_signal.h) is given up after one second, and std::cout has failed.
// - std::cerr, which carries progress and notes, must not end the work: after five seconds without
//   a reader, or one second after a request to stop, lines are dropped. When there is a reader
//   again, one line says how many.
class StandardStreams {
 public:
  // Opens /dev/null in place of each standard descriptor that is closed, such that reading and
  // writing fail as before: the next files to be opened would take their numbers, and output would
  // go into those files. Ignores SIGPIPE and SIGXFSZ, so that a write to a pipe without a reader,
  // or beyond the limit on file sizes, fails with an error instead of ending the process. Call it
  // before the program opens a file.
  StandardStreams();
  StandardStreams(const StandardStreams&) = delete;
  StandardStreams& operator=(const StandardStreams&) = delete;
  ~StandardStreams();

  // Writes what std::cout holds. Returns false if output was lost, unless the reader of standard
  // output, such as `head`, has closed its end of the pipe.
  static bool is_output_complete();

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace syncopate
