// The only owner of a C handle, such as a file descriptor or a oneDNN primitive. The owner closes
// the handle exactly once, even when an exception is thrown.
#pragma once

#include <utility>

namespace syncopate {

// Traits must define `using Type`, `static Type none()` and `static void close(Type) noexcept`.
template <typename Traits>
class UniqueHandle {
 public:
  using Type = typename Traits::Type;

  UniqueHandle() noexcept = default;
  explicit UniqueHandle(Type handle) noexcept : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(other.release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { reset(); }

  Type get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != Traits::none(); }
  Type release() noexcept { return std::exchange(handle_, Traits::none()); }
  void reset(Type handle = Traits::none()) noexcept {
    if (handle_ != Traits::none()) Traits::close(handle_);
    handle_ = handle;
  }

 private:
  Type handle_ = Traits::none();
};

}  // namespace syncopate
