#!/usr/bin/env python3
"""Exports networks of Keras as ONNX, converts them, and trains them beside the originals on the same samples.

    keras_peer.py SYNCOPATE FOLDER [NETWORK...]    (unet squeeze; SYNCOPATE is the program)

`unet` is a functional U-Net whose maps are enlarged by UpSampling2D and joined by Concatenate, with a class for each
pixel; `squeeze` has padded, depthwise and squeeze-and-excitation layers. The data set is one batch, so that the order of
samples does not matter. Prints the losses of 10 steps with momentum, their largest relative difference, that of a weight
tensor (L2) after them, and the largest difference of a probability between onnxruntime, which runs the network as
export --onnx writes it, and the trained original. Fails if one is above its limit. onnx_peer_test.cc runs it. Exit code
77: the packages are not installed.
"""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
sys.dont_write_bytecode = True  # the folder belongs to the source tree
import onnx_peer  # noqa: E402

SIDE = 16
COUNT = 8
RATE = 0.02


def conv(x, channels, kernel=3, **flags):
    # Biases of zeros would be left out of the file, and then not be trained.
    biases = keras.initializers.RandomNormal(stddev=0.1, seed=5)
    layer = keras.layers.DepthwiseConv2D(kernel, bias_initializer=biases, **flags) if channels == 0 else \
        keras.layers.Conv2D(channels, kernel, bias_initializer=biases, **flags)
    return layer(x)


def unet():
    layers = keras.layers
    x = layers.Input((SIDE, SIDE, 3))
    wide = conv(x, 8, padding="same", activation="relu")
    middle = conv(layers.MaxPooling2D()(wide), 16, padding="same", activation="relu")
    deep = conv(layers.MaxPooling2D()(middle), 24, padding="same", activation="relu")
    y = layers.Concatenate()([layers.UpSampling2D(interpolation="bilinear")(deep), middle])
    y = conv(y, 16, padding="same", activation="silu")
    y = layers.Concatenate()([layers.UpSampling2D()(y), wide])
    y = conv(y, 8, padding="same", activation="relu")
    return keras.Model(x, conv(y, onnx_peer.CLASSES, 1))


def squeeze():
    layers = keras.layers
    x = layers.Input((SIDE, SIDE, 3))
    y = layers.ReLU()(conv(layers.ZeroPadding2D(1)(x), 16, strides=2))
    y = layers.MaxPooling2D(3, 1)(layers.ZeroPadding2D(1)(y))
    y = layers.ReLU(max_value=6.0)(conv(y, 0, padding="same"))
    gate = layers.Reshape((1, 1, 16))(layers.GlobalAveragePooling2D()(y))
    gate = conv(conv(gate, 4, 1, activation="relu"), 16, 1, activation="hard_sigmoid")
    y = layers.Multiply()([y, gate])
    y = layers.Rescaling(0.5, offset=0.25)(conv(y, 8, padding="same", activation="silu"))
    y = layers.Dense(12, activation="tanh", bias_initializer="random_normal")(layers.Flatten()(y))
    return keras.Model(x, layers.Dense(onnx_peer.CLASSES, bias_initializer="random_normal")(y))


def write_label_maps(folder, x, y):
    def bytes_feature(tensor):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.serialize_tensor(tensor).numpy()]))
    for split in ("train", "valid", "test"):
        path = os.path.join(folder, split)
        os.makedirs(path, exist_ok=True)
        for name, content in (("output_types", {"xs": "float32", "labels": "int32"}),
                              ("output_shape", {"xs": list(x.shape[1:]), "labels": [SIDE, SIDE, 1]})):
            with open(os.path.join(path, name + ".json"), "w", encoding="utf-8") as file:
                json.dump(content, file)
        with tf.io.TFRecordWriter(os.path.join(path, "0.records")) as writer:
            for image, labels in zip(x, y):
                features = {"xs": bytes_feature(tf.constant(image)),
                            "labels": bytes_feature(tf.constant(labels[..., None], tf.int32))}
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def samples(folder, gives_maps):
    random = np.random.default_rng(3)
    x = random.standard_normal((COUNT, SIDE, SIDE, 3)).astype(np.float32)
    if gives_maps:
        y = random.integers(0, onnx_peer.CLASSES, (COUNT, SIDE, SIDE))
        write_label_maps(folder, x, y)
        return x, y, "otbtf:" + folder
    y = np.arange(COUNT) % onnx_peer.CLASSES
    os.makedirs(folder, exist_ok=True)
    for split in ("train", "test"):
        np.save(os.path.join(folder, f"x_{split}.npy"), x)
        np.save(os.path.join(folder, f"y_{split}.npy"), y)
    return x, y, "npy:" + folder


def losses_of_keras(model, x, y):
    optimizer = keras.optimizers.SGD(learning_rate=RATE, momentum=0.9)
    losses = []
    for _ in range(onnx_peer.STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(y, model(x, training=True), from_logits=True))
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        losses.append(float(loss))
    return losses


def difference_of_weights(program, checkpoint, files, before, model):
    """The largest relative L2 of a parameter. Names and layouts differ, so a tensor is found by its first values, and the
    values are compared in the order of the first ones. Biases of the same first values are told apart by the last."""
    onnx_peer.call([program, "export", "--checkpoint", checkpoint, files[2] + ".out"])
    first, last = onnx_peer.read_safetensors(files[2]), onnx_peer.read_safetensors(files[2] + ".out")
    worst = 0.0
    for start, variable in zip(before, model.trainable_variables):
        wanted = variable.numpy().ravel()[np.argsort(start, axis=None, kind="stable")]
        found = [last[name].ravel()[np.argsort(tensor, axis=None, kind="stable")] for name, tensor in first.items()
                 if np.array_equal(np.sort(tensor, axis=None), np.sort(start, axis=None))]
        worst = max(worst, min(np.linalg.norm(ours - wanted) for ours in found) / np.linalg.norm(wanted))
    return worst


def difference_of_scores(program, checkpoint, file, x, model):
    """The largest difference of a probability between onnxruntime and the model."""
    onnx_peer.call([program, "export", "--onnx", "--checkpoint", checkpoint, file])
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {session.get_inputs()[0].name: x.transpose(0, 3, 1, 2).copy()})[0]
    if logits.ndim == 4:
        logits = logits.transpose(0, 2, 3, 1)
    return float(tf.reduce_max(tf.abs(tf.nn.softmax(logits) - tf.nn.softmax(model(x)))))


def compare(program, folder, name):
    keras.utils.set_random_seed(7)
    model = {"unet": unet, "squeeze": squeeze}[name]()
    x, y, data = samples(os.path.join(folder, name), name == "unet")
    model(x[:1])  # export asks for a model that was called
    files = [os.path.join(folder, name + suffix) for suffix in (".onnx", ".json", ".safetensors")]
    model.export(files[0], format="onnx", verbose=False)
    before = [variable.numpy().copy() for variable in model.trainable_variables]
    expected = losses_of_keras(model, x, y)
    found = onnx_peer.losses_of_syncopate(program, files, data, COUNT, RATE)
    if len(found) != onnx_peer.STEPS:
        sys.exit(f"{name}: {len(found)} steps")
    checkpoint = os.path.join(files[1] + ".run", f"checkpoint-{onnx_peer.STEPS:012}.safetensors")
    differences = {"losses": max(abs(a - b) / b for a, b in zip(found, expected)),
                   "weights": difference_of_weights(program, checkpoint, files, before, model),
                   "scores": difference_of_scores(program, checkpoint, files[0] + ".out", x, model)}
    print(f"{name}: losses {expected[0]:.5f} to {expected[-1]:.5f} of Keras, {found[0]:.5f} to {found[-1]:.5f} here; "
          "largest differences " + ", ".join(f"{what} {value:.1e}" for what, value in differences.items()), flush=True)
    return all(value <= onnx_peer.LIMITS[what] for what, value in differences.items())


if __name__ == "__main__":
    try:
        import keras
        import numpy as np
        import onnxruntime
        import tensorflow as tf
        import tf2onnx  # noqa: F401
    except ImportError as error:
        print(error)
        sys.exit(77)
    names = sys.argv[3:] or ["unet", "squeeze"]
    sys.exit(0 if all([compare(sys.argv[1], sys.argv[2], name) for name in names]) else 1)
