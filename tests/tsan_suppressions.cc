// Lists the reports that ThreadSanitizer is to suppress, for every test program that is built with
// it.

// Debian's libzmq is not instrumented: its threads hand messages to this program's threads by
// atomic operations that the sanitizer does not see, and its buffers seem to be written and read at
// once. Races inside the library are suppressed by the first line, reads of its buffers by the
// second. Races with no frame of the library on either side are still reported.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libzmq.so\nrace:libzmq.so\n";
}
