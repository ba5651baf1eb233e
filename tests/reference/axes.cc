// Implements upsampling, softmax, transpose, mean and products of matrices in double precision.
#include <algorithm>
#include <cmath>

#include "tests/reference/operations.h"

namespace syncopate::reference {
namespace {

// Calls visit(n, h, w, c) for every element of a map.
template <typename Visit>
void for_each_element(const Map& map, const Visit& visit) {
  for (std::int64_t n = 0; n < map.n; ++n) {
    for (std::int64_t h = 0; h < map.h; ++h) {
      for (std::int64_t w = 0; w < map.w; ++w) {
        for (std::int64_t c = 0; c < map.c; ++c) visit(n, h, w, c);
      }
    }
  }
}

Map like(const Map& x) { return make_map(x.n, {x.h, x.w, x.c}); }

// The weight of row `in` of a map of `size` rows in row `out` of the upsampled map.
double share_of(std::int64_t in, std::int64_t out, std::int64_t size, const UpsampleOp& op) {
  if (op.mode == Interpolation::kNearest) return out / op.scale == in ? 1.0 : 0.0;
  const double place = (static_cast<double>(out) + 0.5) / op.scale - 0.5;
  const double inside = std::clamp(place, 0.0, static_cast<double>(size - 1));
  return std::max(0.0, 1.0 - std::abs(inside - static_cast<double>(in)));
}

// Calls visit(row, weight) for the rows of the map that an upsampled row depends on.
template <typename Visit>
void for_each_share(std::int64_t out, std::int64_t size, const UpsampleOp& op, const Visit& visit) {
  for (std::int64_t in = 0; in < size; ++in) {
    const double share = share_of(in, out, size, op);
    if (share > 0.0) visit(in, share);
  }
}

}  // namespace

Map upsample2d(const Map& x, const UpsampleOp& operation, const Shape& out_shape) {
  Map y = make_map(x.n, out_shape);
  for_each_element(y, [&](auto n, auto h, auto w, auto c) {
    for_each_share(h, x.h, operation, [&](std::int64_t row, double bottom) {
      for_each_share(w, x.w, operation, [&](std::int64_t column, double right) {
        y.at(n, h, w, c) += bottom * right * x.at(n, row, column, c);
      });
    });
  });
  return y;
}

Map upsample2d_backward(const Map& x, const UpsampleOp& operation, const Map& dy) {
  Map dx = like(x);
  for_each_element(dy, [&](auto n, auto h, auto w, auto c) {
    for_each_share(h, x.h, operation, [&](std::int64_t row, double bottom) {
      for_each_share(w, x.w, operation, [&](std::int64_t column, double right) {
        dx.at(n, row, column, c) += bottom * right * dy.at(n, h, w, c);
      });
    });
  });
  return dx;
}

Map softmax(const Map& x) {
  Map y = like(x);
  for_each_element(x, [&](auto n, auto h, auto w, auto c) {
    double sum = 0.0;
    for (std::int64_t k = 0; k < x.c; ++k) sum += std::exp(x.at(n, h, w, k) - x.at(n, h, w, c));
    y.at(n, h, w, c) = 1.0 / sum;
  });
  return y;
}

Map softmax_backward(const Map& y, const Map& dy) {
  Map dx = like(y);
  for_each_element(y, [&](auto n, auto h, auto w, auto c) {
    for (std::int64_t k = 0; k < y.c; ++k) {
      const double slope = y.at(n, h, w, k) * ((k == c ? 1.0 : 0.0) - y.at(n, h, w, c));
      dx.at(n, h, w, c) += slope * dy.at(n, h, w, k);
    }
  });
  return dx;
}

Map transpose(const Map& x, const std::array<int, 3>& order) {
  const std::array<std::int64_t, 3> sides = {x.h, x.w, x.c};
  const auto side = [&](std::size_t axis) { return sides[static_cast<std::size_t>(order[axis])]; };
  Map y = make_map(x.n, {side(0), side(1), side(2)});
  for_each_element(y, [&](auto n, auto h, auto w, auto c) {
    const std::array<std::int64_t, 3> out = {h, w, c};
    std::array<std::int64_t, 3> in{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      in[static_cast<std::size_t>(order[axis])] = out[axis];
    }
    y.at(n, h, w, c) = x.at(n, in[0], in[1], in[2]);
  });
  return y;
}

Map transpose_backward(const Map& x, const std::array<int, 3>& order, const Map& dy) {
  std::array<int, 3> back{};
  for (int axis = 0; axis < 3; ++axis) {
    back[static_cast<std::size_t>(order[static_cast<std::size_t>(axis)])] = axis;
  }
  Map dx = like(x);
  dx.values = transpose(dy, back).values;
  return dx;
}

Map reduce_mean(const Map& x, const Shape& out_shape) {
  Map y = make_map(x.n, out_shape);
  const double count = static_cast<double>(x.h * x.w * x.c) / static_cast<double>(y.h * y.w * y.c);
  for_each_element(x, [&](auto n, auto h, auto w, auto c) {
    y.at(n, h % y.h, w % y.w, c % y.c) += x.at(n, h, w, c) / count;
  });
  return y;
}

Map reduce_mean_backward(const Map& x, const Map& dy) {
  Map dx = like(x);
  const double count =
      static_cast<double>(x.h * x.w * x.c) / static_cast<double>(dy.h * dy.w * dy.c);
  for_each_element(x, [&](auto n, auto h, auto w, auto c) {
    dx.at(n, h, w, c) = dy.at(n, h % dy.h, w % dy.w, c % dy.c) / count;
  });
  return dx;
}

Map matmul(const Map& a, const Map& b) {
  Map y = make_map(a.n, {a.h, a.w, b.c});
  for_each_element(y, [&](auto n, auto matrix, auto row, auto column) {
    for (std::int64_t k = 0; k < a.c; ++k) {
      y.at(n, matrix, row, column) += a.at(n, matrix, row, k) * b.at(n, matrix, k, column);
    }
  });
  return y;
}

MatmulGradients matmul_backward(const Map& a, const Map& b, const Map& dy) {
  MatmulGradients gradients{like(a), like(b)};
  for_each_element(dy, [&](auto n, auto matrix, auto row, auto column) {
    for (std::int64_t k = 0; k < a.c; ++k) {
      const double gradient = dy.at(n, matrix, row, column);
      gradients.a.at(n, matrix, row, k) += gradient * b.at(n, matrix, k, column);
      gradients.b.at(n, matrix, k, column) += gradient * a.at(n, matrix, row, k);
    }
  });
  return gradients;
}

}  // namespace syncopate::reference
