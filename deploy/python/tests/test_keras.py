"""Networks and data of Keras."""

import numpy as np
import pytest
from conftest import bars

import pysyncopate as ps

keras = pytest.importorskip("keras", reason="keras is not installed")
pytest.importorskip("tf2onnx", reason="tf2onnx is not installed")
tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

FEW = {"epochs": 3, "progress": False, "batch_size": 32}


def network():
    layers = keras.layers
    x = keras.Input((12, 12, 1))
    y = layers.BatchNormalization()(layers.Conv2D(8, 3, padding="same")(x))
    y = layers.ReLU()(y)
    y = layers.Add()([y, layers.Conv2D(8, 1, use_bias=False)(x)])
    y = layers.Flatten()(layers.MaxPooling2D()(layers.Dropout(0.2)(y)))
    return keras.Model(x, layers.Dense(4, activation="softmax")(y))


def test_scores_are_those_of_the_program():
    model = network()
    before = model.get_weights()
    run = ps.train(model, bars(), **FEW)
    assert run.accuracy > 0.5
    assert all(np.array_equal(*pair) for pair in zip(before, model.get_weights()))
    fresh = run.load_into(network())
    assert np.abs(fresh.predict(bars()[0], verbose=0) - run.predict(bars()[0])).max() < 1e-6


def test_trains_batch_norm_and_dropout():
    run = ps.train(network(), bars(), **FEW)
    names = [name.rsplit(".", 1)[-1] for name in run.weights()]
    assert "running_mean" in names
    assert names.count("bias") == 3  # convolution, batch norm, dense
    network_file = (run.checkpoint.parents[1] / "network" / "net.json").read_text()
    assert '"rate": 0.2' in network_file


def test_a_data_set_gives_the_weights_of_its_arrays():
    model = network()
    dataset = tf.data.Dataset.from_tensor_slices(bars()).batch(50)
    hashes = {ps.train(model, data, test=data, **FEW).hash for data in (bars(), dataset)}
    assert len(hashes) == 1


def test_keeps_the_number_of_outputs():
    model = keras.Sequential([keras.Input((12, 12, 1)), keras.layers.Flatten(), keras.layers.Dense(3)])
    with pytest.raises(ps.UsageError, match="one per class of the data; found \\[3\\]"):
        ps.train(model, bars(), **FEW)


def test_refuses_weights_of_another_model():
    other = keras.Sequential([keras.Input((12, 12, 1)), keras.layers.Flatten(), keras.layers.Dense(4)])
    run = ps.train(network(), bars(), **FEW)
    with pytest.raises(ps.SyncopateError, match="do not correspond"):
        run.load_into(other)
