#!/usr/bin/env python3
"""Makes resize.txt: small pictures resized by tf.image.resize (bilinear, without antialiasing).

Run with TensorFlow 2: python3 make_resize_golden.py > resize.txt
Each case is two lines: "in HEIGHT WIDTH CHANNELS VALUE...", then "out HEIGHT WIDTH VALUE..." in 1/1000.
"""
import numpy as np
import tensorflow as tf

random = np.random.default_rng(1)
CASES = [
    ((1, 1, 3), (3, 2)), ((2, 2, 1), (5, 7)), ((5, 7, 3), (5, 7)), ((5, 7, 3), (2, 3)), ((7, 5, 3), (14, 10)),
    ((9, 4, 1), (3, 11)), ((13, 17, 3), (4, 5)), ((6, 6, 1), (3, 3)), ((3, 3, 3), (1, 1)), ((10, 3, 3), (9, 4)),
]
for (height, width, channels), size in CASES:
    picture = random.integers(0, 256, (height, width, channels), dtype=np.uint8)
    resized = tf.image.resize(picture.astype(np.float32), size, method="bilinear", antialias=False).numpy()
    print("in", height, width, channels, *picture.flatten())
    print("out", *size, *np.rint(resized.flatten() * 1000).astype(int))
