"""Write the models of this folder: what Keras's own export gives, and what Keras computes.

    python tests/graph/importers/onnx/keras/make_models.py

Needs tensorflow and tf2onnx (the files here are of Keras 3.15.1, TensorFlow 2.21.0, tf2onnx
1.17.0); nothing else of the tests does.
"""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
from keras import layers

HERE = Path(__file__).parent


def encoder() -> keras.Model:
    """A block of a transformer, whose gelu becomes a node Erfc, of which ONNX knows nothing."""
    x = keras.Input((6, 16), name="x")
    y = layers.LayerNormalization()(x)
    seen = layers.Add()([x, layers.MultiHeadAttention(2, 8)(y, y)])
    y = layers.Dense(32, activation="gelu")(layers.LayerNormalization()(seen))
    y = layers.Add()([seen, layers.Dense(16)(y)])
    return keras.Model(x, layers.GlobalAveragePooling1D()(y), name="encoder")


def recurrent() -> keras.Model:
    """An LSTM in both directions, whose states have as many rows as a call brings."""
    x = keras.Input((7, 5), name="x")
    return keras.Model(x, layers.Bidirectional(layers.LSTM(6))(x), name="recurrent")


def image() -> keras.Model:
    """Convolutions, norms and pools of an image, whose channels are last."""
    x = keras.Input((16, 16, 3), name="x")
    y = layers.Conv2D(8, 3, padding="same")(x)
    y = layers.MaxPooling2D()(layers.ReLU()(layers.BatchNormalization()(y)))
    y = layers.GroupNormalization(4)(layers.SeparableConv2D(8, 3)(y))
    y = layers.Conv2DTranspose(4, 3, strides=2, padding="same")(y)
    return keras.Model(x, layers.Dense(10, activation="softmax")(layers.Flatten()(y)), name="image")


def write(model: keras.Model) -> None:
    """The file, and values of two batches."""
    arrays = {}
    for n, batch in enumerate((2, 5)):
        shape = (batch, *model.input_shape[1:])
        x = np.random.default_rng(n).standard_normal(shape).astype(np.float32)
        arrays |= {f"in{n}": x, f"out{n}": np.asarray(model(x))}
    model.export(HERE / f"{model.name}.onnx", format="onnx", verbose=False)
    np.savez_compressed(HERE / f"{model.name}.npz", **arrays)


if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    for made in (encoder(), recurrent(), image()):
        write(made)
