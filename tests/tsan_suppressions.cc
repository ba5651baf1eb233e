// What ThreadSanitizer is not to report, in every test program that is built with it.

// Debian's libzmq is not instrumented: its threads hand messages to ours by atomic operations that
// the sanitizer does not see, and its buffers seem to be written and read at once. What it does
// inside is passed over; the second line is for our reads of its buffers. Races with no frame of
// the library on either side are still reported.
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libzmq.so\nrace:libzmq.so\n";
}
