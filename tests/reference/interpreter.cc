#include "tests/reference/interpreter.h"

#include <utility>

namespace syncopate::reference {
namespace {

std::size_t at(int index) { return static_cast<std::size_t>(index); }

void accumulate(Values& sum, const Values& term) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
}

// An Interpreter evaluates a graph and keeps the value and the gradient of every node.
class Interpreter {
 public:
  Interpreter(const Graph& graph, const Variables& variables, const Samples& samples,
              double loss_divisor, Mode mode, const Rounding& rounding)
      : graph_(graph),
        variables_(variables),
        samples_(samples),
        loss_divisor_(loss_divisor),
        mode_(mode),
        rounding_(rounding),
        moments_(graph.nodes.size()) {
    result_.state = variables.state;
  }

  Result run() {
    for (const Node& node : graph_.nodes) {
      node_ = &node;
      outputs_.push_back(std::visit([&](const auto& op) { return forward(op); }, node.operation));
      if (rounding_) rounding_(static_cast<int>(number()), outputs_.back().values);
    }
    if (mode_ == Mode::kTrain) backward_all();
    return std::move(result_);
  }

 private:
  const Map& x(std::size_t i = 0) const { return outputs_[at(node_->inputs.at(i))]; }
  Map& dx(std::size_t i = 0) { return gradients_[at(node_->inputs.at(i))]; }
  const Values& parameter(std::size_t i) const {
    return variables_.parameters[at(node_->parameters.at(i))];
  }
  Values& dparameter(std::size_t i) { return result_.gradients[at(node_->parameters.at(i))]; }
  std::size_t number() const { return static_cast<std::size_t>(node_ - graph_.nodes.data()); }

  Map with_bias(Map product, const Values& bias) {
    if (bias.empty()) return product;
    if (rounding_) rounding_(static_cast<int>(number()), product.values);
    for (std::size_t i = 0; i < product.values.size(); ++i) {
      product.values[i] += bias[i % bias.size()];
    }
    return product;
  }
  Map forward(const InputOp& op) {
    Map raw = make_map(samples_.size(), node_->shape);
    raw.values = samples_.x;
    return input(raw, op);
  }
  Map forward(const Conv2dOp& op) {
    return with_bias(conv2d(x(), op, parameter(0), {}, node_->shape),
                     op.bias ? parameter(1) : Values{});
  }
  Map forward(const ConvTranspose2dOp& op) {
    return with_bias(conv_transpose2d(x(), op, parameter(0), {}, node_->shape),
                     op.bias ? parameter(1) : Values{});
  }
  Map forward(const BatchNormOp& op) {
    Values& running_mean = result_.state[at(node_->state.at(0))];
    Values& running_variance = result_.state[at(node_->state.at(1))];
    Moments& moments = moments_[number()];
    moments = {running_mean, running_variance};
    if (mode_ == Mode::kTrain && x().n > 0) {
      const Moments running = moments;
      moments = batch_moments(x());
      const Moments updated = updated_statistics(running, moments, op, x().n * x().h * x().w);
      running_mean = updated.mean;
      running_variance = updated.variance;
    }
    return batch_norm(x(), moments, op, parameter(0), parameter(1));
  }
  Map forward(const LayerNormOp& op) { return layer_norm(x(), op, parameter(0), parameter(1)); }
  Map forward(const DropoutOp& op) {
    return mode_ == Mode::kTrain ? dropout(x(), op, node_->name, samples_.keys) : x();
  }
  Map forward(const ReluOp& /*op*/) { return relu(x()); }
  Map forward(const ActivationOp& op) { return activate(x(), op); }
  Map forward(const AveragePoolOp& op) { return average_pool(x(), op, node_->shape); }
  Map forward(const MultiplyOp& /*op*/) { return multiply(x(0), x(1)); }
  Map forward(const ConcatOp& /*op*/) {
    std::vector<const Map*> inputs;
    for (std::size_t i = 0; i < node_->inputs.size(); ++i) inputs.push_back(&x(i));
    return concat(inputs);
  }
  Map forward(const SliceOp& op) { return channels_of(x(), op.first, node_->shape.back()); }
  Map forward(const UpsampleOp& op) { return upsample2d(x(), op, node_->shape); }
  Map forward(const SoftmaxOp& /*op*/) { return softmax(x()); }
  Map forward(const ReshapeOp& /*op*/) { return with_shape(x(), node_->shape); }
  Map forward(const TransposeOp& op) { return transpose(x(), op.order); }
  Map forward(const ReduceMeanOp& /*op*/) { return reduce_mean(x(), node_->shape); }
  Map forward(const MatmulOp& /*op*/) { return matmul(x(0), x(1)); }
  Map forward(const MaxPoolOp& op) { return max_pool(x(), op, node_->shape); }
  Map forward(const GlobalAveragePoolOp& /*op*/) { return global_average_pool(x()); }
  Map forward(const FlattenOp& /*op*/) { return with_shape(x(), node_->shape); }
  static Map with_shape(const Map& x, const Shape& shape) {
    Map y = make_map(x.n, shape);
    y.values = x.values;
    return y;
  }
  Map forward(const DenseOp& op) {
    const Map product =
        dense(x(), parameter(0), Values(static_cast<std::size_t>(node_->shape.back())));
    return op.bias ? with_bias(product, parameter(1)) : product;
  }
  Map forward(const AddOp& /*op*/) { return add(x(0), x(1)); }
  Map forward(const ShortcutOp& op) { return shortcut(x(), op, node_->shape); }
  Map forward(const LossOp& op) {
    const Loss loss = loss_of(op);
    result_.logits = x().values;
    result_.loss = loss.loss;
    result_.metric = loss.metric;
    return loss.dlogits;  // for the backward pass; the loss has no output
  }
  Loss loss_of(const LossOp& op) const {
    const double smoothing = mode_ == Mode::kTrain ? static_cast<double>(op.label_smoothing) : 0.0;
    switch (op.kind) {
      case LossKind::kSoftmaxCrossEntropy:
        return softmax_cross_entropy(x(), samples_.labels, loss_divisor_, smoothing);
      case LossKind::kBinaryCrossEntropy:
        return binary_cross_entropy(x(), samples_.numbers, loss_divisor_);
      case LossKind::kLaterStages: {
        Loss given{.loss = 0.0, .metric = 0.0, .dlogits = x()};
        given.dlogits.values.assign(samples_.numbers.begin(), samples_.numbers.end());
        return given;
      }
      case LossKind::kMeanSquaredError:
        break;
    }
    return mean_squared_error(x(), samples_.numbers, loss_divisor_);
  }

  void backward_all() {
    for (const Map& output : outputs_) {
      Map& zeros = gradients_.emplace_back(output);
      zeros.values.assign(zeros.values.size(), 0.0);
    }
    for (const Values& value : variables_.parameters) result_.gradients.emplace_back(value.size());
    for (std::size_t i = graph_.nodes.size(); i-- > 0;) {
      node_ = &graph_.nodes[i];
      std::visit([&](const auto& op) { backward(op, gradients_[number()]); }, node_->operation);
    }
  }

  void backward(const InputOp& /*op*/, const Map& /*dy*/) {}
  void backward(const Conv2dOp& op, const Map& dy) {
    const ConvGradients gradients = conv2d_backward(x(), op, parameter(0), dy);
    accumulate(dx().values, gradients.x.values);
    accumulate(dparameter(0), gradients.weight);
    if (op.bias) accumulate(dparameter(1), gradients.bias);
  }
  void backward(const ConvTranspose2dOp& op, const Map& dy) {
    const ConvGradients gradients = conv_transpose2d_backward(x(), op, parameter(0), dy);
    accumulate(dx().values, gradients.x.values);
    accumulate(dparameter(0), gradients.weight);
    if (op.bias) accumulate(dparameter(1), gradients.bias);
  }
  void backward(const BatchNormOp& op, const Map& dy) {
    const BatchNormGradients gradients =
        batch_norm_backward(x(), moments_[number()], op, parameter(0), dy);
    accumulate(dx().values, gradients.x.values);
    accumulate(dparameter(0), gradients.scale);
    accumulate(dparameter(1), gradients.shift);
  }
  void backward(const LayerNormOp& op, const Map& dy) {
    const BatchNormGradients gradients = layer_norm_backward(x(), op, parameter(0), dy);
    accumulate(dx().values, gradients.x.values);
    accumulate(dparameter(0), gradients.scale);
    accumulate(dparameter(1), gradients.shift);
  }
  void backward(const DropoutOp& op, const Map& dy) {
    accumulate(dx().values, dropout(dy, op, node_->name, samples_.keys).values);
  }
  void backward(const ReluOp& /*op*/, const Map& dy) {
    accumulate(dx().values, relu_backward(x(), dy).values);
  }
  void backward(const ActivationOp& op, const Map& dy) {
    accumulate(dx().values, activate_backward(x(), op, dy).values);
  }
  void backward(const AveragePoolOp& op, const Map& dy) {
    accumulate(dx().values, average_pool_backward(x(), op, dy).values);
  }
  void backward(const MultiplyOp& /*op*/, const Map& dy) {
    const bool has_factors = x(0).values.size() != x(1).values.size();
    accumulate(dx(0).values, multiply(dy, x(1)).values);
    accumulate(dx(1).values,
               (has_factors ? channel_products(dy, x(0)) : multiply(dy, x(0))).values);
  }
  void backward(const ConcatOp& /*op*/, const Map& dy) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
      accumulate(dx(i).values, channels_of(dy, first, x(i).c).values);
      first += x(i).c;
    }
  }
  void backward(const SliceOp& op, const Map& dy) {
    const auto from = static_cast<std::size_t>(op.first);
    const auto width = static_cast<std::size_t>(x().c);
    const auto count = static_cast<std::size_t>(dy.c);
    for (std::size_t k = 0; k < dy.values.size(); ++k) {
      dx().values[k / count * width + from + k % count] += dy.values[k];
    }
  }
  void backward(const UpsampleOp& op, const Map& dy) {
    accumulate(dx().values, upsample2d_backward(x(), op, dy).values);
  }
  void backward(const SoftmaxOp& /*op*/, const Map& dy) {
    accumulate(dx().values, softmax_backward(outputs_[number()], dy).values);
  }
  void backward(const ReshapeOp& /*op*/, const Map& dy) { accumulate(dx().values, dy.values); }
  void backward(const TransposeOp& op, const Map& dy) {
    accumulate(dx().values, transpose_backward(x(), op.order, dy).values);
  }
  void backward(const ReduceMeanOp& /*op*/, const Map& dy) {
    accumulate(dx().values, reduce_mean_backward(x(), dy).values);
  }
  void backward(const MatmulOp& /*op*/, const Map& dy) {
    const MatmulGradients gradients = matmul_backward(x(0), x(1), dy);
    accumulate(dx(0).values, gradients.a.values);
    accumulate(dx(1).values, gradients.b.values);
  }
  void backward(const MaxPoolOp& op, const Map& dy) {
    accumulate(dx().values, max_pool_backward(x(), op, dy).values);
  }
  void backward(const GlobalAveragePoolOp& /*op*/, const Map& dy) {
    accumulate(dx().values, global_average_pool_backward(x(), dy).values);
  }
  void backward(const FlattenOp& /*op*/, const Map& dy) { accumulate(dx().values, dy.values); }
  void backward(const DenseOp& op, const Map& dy) {
    const DenseGradients gradients = dense_backward(x(), parameter(0), dy);
    accumulate(dx().values, gradients.x.values);
    accumulate(dparameter(0), gradients.weight);
    if (op.bias) accumulate(dparameter(1), gradients.bias);
  }
  void backward(const AddOp& /*op*/, const Map& dy) {
    accumulate(dx(0).values, dy.values);
    accumulate(dx(1).values, dy.values);
  }
  void backward(const ShortcutOp& op, const Map& dy) {
    accumulate(dx().values, shortcut_backward(x(), op, dy).values);
  }
  void backward(const LossOp& /*op*/, const Map& /*dy*/) {
    accumulate(dx().values, outputs_[number()].values);
  }

  const Graph& graph_;
  const Variables& variables_;
  const Samples& samples_;
  const double loss_divisor_;
  const Mode mode_;
  const Rounding& rounding_;
  std::vector<Moments> moments_;  // the moments that batch norm used, per node
  const Node* node_ = nullptr;    // the node that is being evaluated
  std::vector<Map> outputs_;
  std::vector<Map> gradients_;
  Result result_;
};

}  // namespace

Result run(const Graph& graph, const Variables& variables, const Samples& samples,
           double loss_divisor, Mode mode, const Rounding& rounding) {
  return Interpreter(graph, variables, samples, loss_divisor, mode, rounding).run();
}

}  // namespace syncopate::reference
