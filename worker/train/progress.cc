// The progress display on the process's stderr: finds out what it is.
#include "worker/train/progress.h"

#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "models/base/unique_handle.h"
#include "worker/train/progress_line.h"

namespace syncopate {
namespace {

struct LocaleTraits {
  using Type = locale_t;
  static Type none() noexcept { return nullptr; }
  static void close(Type locale) noexcept { freelocale(locale); }
};

// The user's character set, without making it the process's: numbers keep their dots.
bool stderr_is_unicode() {
  const UniqueHandle<LocaleTraits> locale(newlocale(LC_CTYPE_MASK, "", nullptr));
  return locale && std::string_view(nl_langinfo_l(CODESET, locale.get())) == "UTF-8";
}

int stderr_columns() {
  constexpr int kDefaultColumns = 80;
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return size.ws_col;
}

// One write for the whole text, so that lines of several processes do not mix. A closed stderr is
// no reason to stop training.
void write_to_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

class SilentDisplay final : public ProgressDisplay {
 public:
  void update(const ProgressState& /*state*/) override {}
  void note(const std::string& /*line*/) override {}
  void finish() override {}
};

}  // namespace

std::unique_ptr<ProgressDisplay> make_progress_display(bool enabled) {
  ProgressOutput output = {.write = write_to_stderr,
                           .now = [] { return std::chrono::steady_clock::now(); },
                           .columns = stderr_columns,
                           .unicode = stderr_is_unicode()};
  if (enabled && isatty(STDERR_FILENO) != 0) return make_terminal_progress(std::move(output));
  return make_plain_progress(std::move(output), enabled);
}

std::unique_ptr<ProgressDisplay> make_silent_display() { return std::make_unique<SilentDisplay>(); }

}  // namespace syncopate
