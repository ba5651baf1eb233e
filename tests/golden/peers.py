#!/usr/bin/env python3
"""Computes logits and gradients with torchvision or Keras, for peers_test.cc, which runs this script.

    peers.py torch|keras|keras-fcn FOLDER    (ResNet-50 of torchvision, of Keras, and fcn as Keras layers)

For each of two sets of random weights it writes FOLDER/NAME.weights.safetensors, by the line of Python that --help
documents (fcn: with the names and layouts of PyTorch), and FOLDER/NAME.expected.safetensors. "logits" has batch norm shifts around zero, images and their logits
in evaluation mode. "gradients" has labels, and the loss and its gradients in training mode; its shifts are 6, so that
no input of a ReLU is negative: rounding cannot move one across the kink, where the derivative jumps. All is computed
in float64. Exit code 77: the packages are not installed.
"""
import os
import sys

os.environ["JAX_ENABLE_X64"] = "1"
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

CLASSES = 10
IMAGES = 4
SIZE = 64
MEAN = (0.485, 0.456, 0.406)
STDDEV = (0.229, 0.224, 0.225)
SHIFTS = {"logits": 0.0, "gradients": 6.0}


def draw(random, name, shape, shift):
    """Returns a tensor's values, which are exact in float32. `name` is PyTorch's or Keras's."""
    last = name.replace("/", ".").rsplit(".", 1)[-1]
    is_norm = "bn" in name or "downsample.1" in name
    if last in ("running_var", "moving_variance", "gamma") or (is_norm and last == "weight"):
        values = random.uniform(0.7, 1.3, shape)
    elif last in ("beta",) or (is_norm and last == "bias"):
        values = shift + 0.1 * random.standard_normal(shape)
    elif last in ("bias", "running_mean", "moving_mean"):
        values = 0.1 * random.standard_normal(shape)
    else:  # a kernel: [out, in, h, w] and [out, in] of PyTorch, [h, w, in, out] and [in, out] of Keras
        inputs = np.prod(shape[:-1] if last == "kernel" else shape[1:])
        values = random.standard_normal(shape) * np.sqrt(2.0 / inputs)
        if name.startswith(("fc", "predictions")):
            values *= 0.03  # without it softmax is saturated
    return values.astype(np.float32).astype(np.float64)


def samples(random):
    images = random.integers(0, 256, (IMAGES, SIZE, SIZE, 3))
    labels = np.arange(IMAGES)  # equal labels would have gradients that batch norm removes
    x = (images / 255.0 - np.float32(MEAN).astype(np.float64)) / np.float32(STDDEV).astype(np.float64)
    return images, labels, x


def save(folder, name, **tensors):
    numpy_save({key: np.ascontiguousarray(value) for key, value in tensors.items()},
               os.path.join(folder, name + ".expected.safetensors"))


def as_tensors(gradients):
    return {"gradient/" + key: value.astype(np.float32) for key, value in gradients.items()}


def with_torch(folder):
    torch.set_num_threads(2)
    for name, shift in SHIFTS.items():
        random = np.random.default_rng(1)
        model = torchvision.models.resnet50(weights=None, num_classes=CLASSES)
        for key, tensor in model.state_dict().items():
            if tensor.dim() > 0:
                tensor.copy_(torch.from_numpy(draw(random, key, tuple(tensor.shape), shift)))
        FILE = os.path.join(folder, name + ".weights.safetensors")
        safetensors.torch.save_file(model.state_dict(), FILE)
        images, labels, x = samples(random)
        x = torch.from_numpy(x.transpose(0, 3, 1, 2).copy())
        model.double().train(name == "gradients")
        logits = model(x)
        loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(labels))
        loss.backward()
        save(folder, name, images=images.astype(np.float32), labels=labels.astype(np.float32),
             logits=logits.detach().numpy(), loss=np.array([loss.item()]),
             **as_tensors({key: value.grad.numpy() for key, value in model.named_parameters()}
                          if name == "gradients" else {}))


def with_keras(folder):
    keras.config.set_floatx("float64")
    for name, shift in SHIFTS.items():
        random = np.random.default_rng(2)
        model = keras.applications.ResNet50(weights=None, classes=CLASSES, classifier_activation=None,
                                            input_shape=(SIZE, SIZE, 3))
        for weight in model.weights:
            weight.assign(draw(random, weight.path, tuple(weight.shape), shift))
        FILE = os.path.join(folder, name + ".weights.safetensors")
        numpy_save({w.path: keras.ops.convert_to_numpy(w) for w in model.weights}, FILE)
        images, labels, x = samples(random)
        x = jax.numpy.asarray(x)
        states = [v.value for v in model.non_trainable_variables]

        def loss_of(trained):
            logits, _ = model.stateless_call(trained, states, x, training=name == "gradients")
            losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
            return keras.ops.mean(losses), logits

        trained = [v.value for v in model.trainable_variables]
        if name == "gradients":
            (loss, logits), gradients = jax.value_and_grad(loss_of, has_aux=True)(trained)
        else:
            (loss, logits), gradients = loss_of(trained), []
        save(folder, name, images=images.astype(np.float32), labels=labels.astype(np.float32),
             logits=np.asarray(logits), loss=np.array([float(loss)]),
             **as_tensors({v.path: np.asarray(g) for v, g in zip(model.trainable_variables, gradients)}))


def fcn_of_keras(keras):
    """The network of the guides: stride 2 four times, doubled four times, "same" padding everywhere."""
    layers = keras.layers
    x = inputs = keras.Input((SIZE, SIZE, 4))
    maps = []
    for i, channels in enumerate((16, 32, 64, 64)):
        x = layers.Conv2D(channels, 3, strides=2, padding="same", activation="relu", name=f"conv{i + 1}")(x)
        maps.append(x)
    for i, channels in enumerate((64, 32, 16)):
        x = layers.Conv2DTranspose(channels, 3, strides=2, padding="same", activation="relu",
                                   name=f"tconv{i + 1}")(x)
        x = layers.Add()([x, maps[2 - i]])
    return keras.Model(inputs, layers.Conv2DTranspose(2, 3, strides=2, padding="same", name="tconv4")(x))


def pytorch_name(path):
    return path.replace("/kernel", ".weight").replace("/bias", ".bias")


def pytorch_layout(path, values):
    """[h, w, in, out] of Conv2D to [out, in, h, w]; [h, w, out, in] of Conv2DTranspose to [in, out, h, w]."""
    return np.asarray(values) if path.endswith("bias") else np.asarray(values).transpose(3, 2, 0, 1)


def with_keras_fcn(folder):
    keras.config.set_floatx("float64")
    random = np.random.default_rng(3)
    model = fcn_of_keras(keras)
    assert model.count_params() == 120962
    for weight in model.weights:
        weight.assign(draw(random, weight.path, tuple(weight.shape), 0.0))
    images = random.integers(0, 256, (IMAGES, SIZE, SIZE, 4))
    labels = random.integers(0, 2, (IMAGES, SIZE, SIZE))
    x = jax.numpy.asarray((images / 255.0 - np.float64(np.float32(0.4))) / 0.25)

    def loss_of(trained):
        logits, _ = model.stateless_call(trained, [], x, training=True)
        losses = keras.losses.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        return keras.ops.mean(losses), logits

    trained = [v.value for v in model.trainable_variables]
    (loss, logits), gradients = jax.value_and_grad(loss_of, has_aux=True)(trained)
    values = {v.path: g for v, g in zip(model.trainable_variables, gradients)}
    for name in SHIFTS:
        numpy_save({pytorch_name(v.path): np.ascontiguousarray(pytorch_layout(v.path, v.value).astype(np.float32))
                    for v in model.weights}, os.path.join(folder, name + ".weights.safetensors"))
        save(folder, name, images=images.astype(np.float32), labels=labels.astype(np.float32),
             logits=np.asarray(logits), loss=np.array([float(loss)]),
             **as_tensors({pytorch_name(path): pytorch_layout(path, g) for path, g in values.items()}))


if __name__ == "__main__":
    try:
        import numpy as np
        import safetensors
        from safetensors.numpy import save_file as numpy_save
        if sys.argv[1] == "torch":
            import safetensors.torch
            import torch
            import torchvision
        else:
            import jax
            import keras
            if keras.backend.backend() != "jax":
                raise ImportError("Keras does not use JAX")
    except ImportError as error:
        print(error)
        sys.exit(77)
    {"torch": with_torch, "keras": with_keras, "keras-fcn": with_keras_fcn}[sys.argv[1]](sys.argv[2])
