"""Exports Keras models as they train, and puts weights back into them. Requires the TensorFlow backend.
Keras exports models for inference: batch norms are folded into other layers, dropout and biases of zeros disappear.
So this module exports the model with other implementations of these layers, and with tiny biases in place of zeros.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pysyncopate.arrays import Array
from pysyncopate.programs import SyncopateError, needs

_TINY_BIAS = 1e-30
_FIRST_MARK = 0x3F000000  # the bits of 0.5; each following number is the next larger f32


def _batch_norm(layer: Any) -> Callable[..., Any]:
    tf = needs("tensorflow")

    def call(x: Any, training: Any = None, mask: Any = None) -> Any:
        channels = x.shape[-1]
        maps = x if len(x.shape) == 4 else tf.reshape(x, [-1, 1, 1, channels])
        gamma = layer.gamma if layer.scale else tf.ones([channels])
        beta = layer.beta if layer.center else tf.zeros([channels])
        values = (gamma, beta, layer.moving_mean, layer.moving_variance)
        y, *_ = tf.compat.v1.nn.fused_batch_norm(maps, *values, epsilon=layer.epsilon, is_training=False)
        return y if len(x.shape) == 4 else tf.reshape(y, [-1, channels])

    return call


def _dropout(layer: Any) -> Callable[..., Any]:
    tf = needs("tensorflow")
    # TensorFlow keeps this operation and its text; _switch_on() replaces it.
    return lambda x, training=None: tf.raw_ops.CheckNumerics(tensor=x, message=str(layer.rate))


def _switch_on(graph: Any, node: Any, name: str, _: Any) -> None:
    """Makes tf2onnx write a dropout with its rate, as in training."""
    rate = np.array(float(node.get_attr_str("message")), "float32")
    constants = {"rate": rate, "training": np.array(True)}
    added = [graph.make_const(f"{name}_{key}", value).output[0] for key, value in constants.items()]
    node.type = "Dropout"
    del node.attr["message"]
    graph.replace_inputs(node, [node.input[0], *added])


@contextlib.contextmanager
def _as_in_training(model: Any) -> Iterator[None]:
    keras = needs("keras")
    optimizers = needs("tf2onnx.optimizer", "tf2onnx")._optimizers
    all_optimizers = dict(optimizers)
    optimizers.pop("remove_back_to_back", None)  # folds batch norms into convolutions
    calls = {keras.layers.BatchNormalization: _batch_norm, keras.layers.Dropout: _dropout}
    weights = model.get_weights()
    layers = list(model._flatten_layers(include_self=False))
    try:
        for layer in layers:
            if type(layer) in calls:
                layer.call = calls[type(layer)](layer)
            bias = getattr(layer, "bias", None)
            if bias is not None and not np.any(bias.numpy()):
                bias.assign(np.full(bias.shape, _TINY_BIAS, "float32"))
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("call", None)
        model.set_weights(weights)
        optimizers.clear()
        optimizers.update(all_optimizers)


def export(model: Any, path: Path) -> None:
    """Writes an ONNX file of the model in training. Changes nothing in the model."""
    keras = needs("keras")
    if keras.backend.backend() != "tensorflow":
        raise SyncopateError("a Keras model needs the TensorFlow backend: KERAS_BACKEND=tensorflow")
    tf, tf2onnx = needs("tensorflow"), needs("tf2onnx")
    if len(getattr(model, "inputs", [])) != 1:
        raise SyncopateError("expected a Sequential or functional Keras model with one input")
    signature = [tf.TensorSpec([None, *model.inputs[0].shape[1:]], tf.float32, name="x")]
    with _as_in_training(model):
        function = tf.function(lambda x: model(x, training=False), input_signature=signature)
        handlers: dict[str, Any] = {"CheckNumerics": (_switch_on, [])}
        tf2onnx.convert.from_function(function, signature, custom_op_handlers=handlers, output_path=str(path))


def _split(flat: Array, model: Any) -> list[Array]:
    """Returns an array of all numbers as the weights of a model."""
    weights = model.get_weights()
    parts = np.split(flat, np.cumsum([array.size for array in weights])[:-1])
    return [part.reshape(array.shape) for part, array in zip(parts, weights)]


@contextlib.contextmanager
def marked(model: Any) -> Iterator[None]:
    """Gives each number in the weights of a model a mark of its own, until the end of the block."""
    before = model.get_weights()
    marks = np.arange(sum(array.size for array in before), dtype="uint32") + np.uint32(_FIRST_MARK)
    try:
        model.set_weights(_split(marks.view("float32"), model))
        yield
    finally:
        model.set_weights(before)


def place(model: Any, marked_weights: dict[str, Array], weights: dict[str, Array]) -> None:
    """Puts the weights of a program into a model. marked_weights: those of the marked model, which show the places."""
    shapes = [[value.shape for value in side.values()] for side in (marked_weights, weights)]
    sizes = [array.size for array in model.get_weights()]
    marks = np.concatenate([value.view("uint32").ravel() for value in marked_weights.values()])
    places = marks.astype("int64") - _FIRST_MARK
    if shapes[0] != shapes[1] or not np.array_equal(np.sort(places), np.arange(sum(sizes))):
        raise SyncopateError("the weights of the program and this Keras model do not correspond; give the same model")
    flat = np.empty(len(places), "float32")
    flat[places] = np.concatenate([value.ravel() for value in weights.values()])
    model.set_weights(_split(flat, model))
