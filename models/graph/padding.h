// The zeros that a convolution adds around a map. This is a separate header because the backends'
// convolution shapes include it.
#pragma once

namespace syncopate {

// The number of rows or columns of zeros on each side. A single number applies to every side. With
// TensorFlow's "same", an odd number of rows or columns is divided so that the bottom and the right
// get the larger part; PyTorch's layers pad all sides equally.
struct Padding {
  constexpr Padding(int each = 0) : Padding(each, each, each, each) {}
  constexpr Padding(int t, int l, int b, int r) : top(t), left(l), bottom(b), right(r) {}
  bool operator==(const Padding&) const = default;

  constexpr bool is_one_number() const { return top == left && top == bottom && top == right; }
  // Returns the number of rows and of columns that are added to the map.
  constexpr int rows() const { return top + bottom; }
  constexpr int columns() const { return left + right; }

  int top;
  int left;
  int bottom;
  int right;
};

}  // namespace syncopate
