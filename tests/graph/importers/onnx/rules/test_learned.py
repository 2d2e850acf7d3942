"""Linear models, support vectors, and what prepares features, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.graph.learned_models import agrees, learned_model, tensor
from tilewright.graph.compile import compile
from tilewright.graph.errors import ModelError, UnsupportedOperator
from tilewright.graph.importers.onnx.importer import import_onnx
from tilewright.graph.reference.reference import evaluate
from tilewright.graph.types import Array

RNG = np.random.default_rng(0)
ROWS, WIDTH = 24, 5


def numbers(*shape: int) -> list[float]:
    """Floats at random, in one list."""
    found: list[float] = RNG.normal(size=int(np.prod(shape))).astype(np.float32).tolist()
    return found


def rows(dtype: str = "float32") -> Array:
    return (4 * RNG.normal(size=(ROWS, WIDTH))).astype(dtype)


TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_models_agree(transform: str) -> None:
    for classes in (2, 3):
        for dtype in ("float32", "float64", "int64", "int32"):
            attributes: dict[str, object] = {
                "coefficients": [0.1 * n for n in numbers(classes, WIDTH)],
                "intercepts": numbers(classes),
                "classlabels_ints": [7, 3, 5][:classes],
                "post_transform": transform,
            }
            x = {"x": rows(dtype)}
            made = learned_model("LinearClassifier", attributes, x, ("label", "y"))
            agrees(made, x, tolerance=2e-5)
    attributes = {"coefficients": numbers(3, WIDTH), "targets": 3, "post_transform": transform}
    x = {"x": rows()}
    agrees(learned_model("LinearRegressor", attributes, x), x, tolerance=2e-5)


def test_one_score_stands_for_two_labels() -> None:
    x = {"x": rows()}
    attributes: dict[str, object] = {"coefficients": numbers(WIDTH), "intercepts": [0.5]}
    given = {**attributes, "classlabels_ints": [4, 9]}
    agrees(learned_model("LinearClassifier", given, x, ("label", "y")), x)
    agrees(learned_model("LinearRegressor", attributes, x), x)


KERNELS = (
    ("LINEAR", [0.0, 0.0, 0.0]),
    ("POLY", [0.1, 1.0, 3.0]),
    ("RBF", [0.05, 0.0, 0.0]),
    ("SIGMOID", [0.02, 0.1, 0.0]),
)


def machine(classes: int, kernel: str, parameters: list[float]) -> dict[str, object]:
    groups = [3, 4, 2, 5][:classes]
    pairs = classes * (classes - 1) // 2
    return {
        "kernel_type": kernel,
        "kernel_params": parameters,
        "vectors_per_class": groups,
        "support_vectors": numbers(sum(groups), WIDTH),
        "coefficients": numbers(classes - 1, sum(groups)),
        "rho": numbers(pairs),
        "classlabels_ints": [10 + n for n in range(classes)],
    }


@pytest.mark.parametrize(("kernel", "parameters"), KERNELS)
def test_support_vectors_agree(kernel: str, parameters: list[float]) -> None:
    x = {"x": rows()}
    for classes in (2, 3, 4):
        attributes = machine(classes, kernel, parameters)
        agrees(learned_model("SVMClassifier", attributes, x, ("label", "y")), x, tolerance=1e-5)
    regressor: dict[str, object] = {
        "kernel_type": kernel,
        "kernel_params": parameters,
        "n_supports": 7,
        "support_vectors": numbers(7, WIDTH),
        "coefficients": numbers(7),
        "rho": [0.25],
    }
    for one_class in (0, 1):
        given = {**regressor, "one_class": one_class}
        agrees(learned_model("SVMRegressor", given, x), x, tolerance=1e-5)


def test_probabilities_of_pairs_are_coupled() -> None:
    """A row is done where its error is small enough, as in onnxruntime."""
    x = {"x": rows()}
    for classes in (2, 3, 4):
        pairs = classes * (classes - 1) // 2
        attributes = {
            **machine(classes, "RBF", [0.05, 0, 0]),
            "prob_a": [-1.5] * pairs,
            "prob_b": [0.1] * pairs,
        }
        agrees(learned_model("SVMClassifier", attributes, x, ("label", "y")), x, tolerance=1e-5)


def test_machines_without_vectors_are_linear() -> None:
    x = {"x": rows()}
    attributes: dict[str, object] = {
        "coefficients": numbers(3, WIDTH),
        "rho": [0.5],
        "classlabels_ints": [1, 2, 3],
        "kernel_params": [0.0, 0.0, 0.0],
    }
    agrees(learned_model("SVMClassifier", attributes, x, ("label", "y")), x, tolerance=1e-5)
    regressor = {**attributes, "coefficients": numbers(WIDTH), "n_supports": 0}
    del regressor["classlabels_ints"]
    agrees(learned_model("SVMRegressor", regressor, x), x, tolerance=1e-5)


SPARSE = np.round(rows())
SPARSE[3] = 0
MISSING = np.where(RNG.random((ROWS, WIDTH)) < 0.3, np.nan, rows()).astype(np.float32)
WHOLE = RNG.integers(-2, 5, (ROWS, WIDTH))
PREPARED = [
    ("Scaler", {"offset": numbers(WIDTH), "scale": numbers(WIDTH)}, rows()),
    ("Scaler", {"offset": [0.5], "scale": [2.0]}, rows("float64")),
    ("Scaler", {"offset": [0.0], "scale": [2.0]}, WHOLE),
    *(("Normalizer", {"norm": norm}, SPARSE) for norm in ("MAX", "L1", "L2")),
    ("Normalizer", {"norm": "L1"}, WHOLE),
    ("Binarizer", {"threshold": 0.75}, rows()),
    ("Imputer", {"imputed_value_floats": numbers(WIDTH), "replaced_value_float": np.nan}, MISSING),
    ("Imputer", {"imputed_value_floats": [7.0], "replaced_value_float": 0.0}, SPARSE),
    ("Imputer", {"imputed_value_int64s": [9] * WIDTH, "replaced_value_int64": -2}, WHOLE),
    ("OneHotEncoder", {"cats_int64s": [-1, 3, 2]}, WHOLE),
    ("OneHotEncoder", {"cats_int64s": [3, -1], "zeros": 1}, SPARSE),
    ("OneHotEncoder", {"cats_int64s": list(range(-2, 5)), "zeros": 0}, WHOLE),
    ("FeatureVectorizer", {"inputdimensions": [WIDTH]}, WHOLE),
]


@pytest.mark.parametrize(("operator", "attributes", "array"), PREPARED)
def test_what_prepares_features_agrees(
    operator: str, attributes: dict[str, object], array: Array
) -> None:
    x = {"x": array}
    agrees(learned_model(operator, attributes, x), x)


def test_features_are_put_side_by_side_and_taken_out() -> None:
    x = {"x": rows(), "z": rows()[:, :2]}
    agrees(learned_model("FeatureVectorizer", {"inputdimensions": [WIDTH, 2]}, x), x)
    model = learned_model("FeatureVectorizer", {"inputdimensions": [WIDTH - 2, 4]}, x)
    found = evaluate(import_onnx(model, shapes={"n": ROWS}), x, dtype=None)["y"]
    cut = np.concatenate([x["x"][:, :-2], x["z"], np.zeros((ROWS, 2), np.float32)], axis=1)
    np.testing.assert_array_equal(found, cut)


@pytest.mark.parametrize("array", [rows(), WHOLE, WHOLE[:, 0]])
def test_columns_are_taken_out(array: Array) -> None:
    inputs = {"x": array, "places": np.array([2, 0, 2])}
    model = learned_model("ArrayFeatureExtractor", {}, inputs)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 3
    graph = import_onnx(model, shapes={"n": ROWS})
    found = evaluate(graph, inputs, dtype=None)["y"]
    np.testing.assert_array_equal(
        found, array[..., [2, 0, 2]].reshape(*array.shape[:-1] or (1,), 3)
    )


ENCODED = [
    ({"keys_int64s": [3, -1, 2], "values_floats": [0.5, 1.5, 2.5], "default_float": 9.0}, WHOLE),
    ({"keys_int64s": [3, -(1 << 40)], "values_int64s": [5, 6]}, WHOLE),
    ({"keys_floats": [1.0, np.nan, -2.0], "values_int64s": [5, 6, 7]}, np.round(MISSING)),
    ({"keys_floats": [1.0, -2.0], "values_floats": [5.5, 7.0]}, SPARSE),
]


@pytest.mark.parametrize(("attributes", "array"), ENCODED)
def test_labels_are_encoded(attributes: dict[str, object], array: Array) -> None:
    x = {"x": array}
    for version in (2, 4):
        agrees(learned_model("LabelEncoder", attributes, x, version=version), x)


def test_labels_are_encoded_by_tensors() -> None:
    attributes: dict[str, object] = {
        "keys_tensor": tensor(np.array([1, 4], np.int64)),
        "values_tensor": tensor(np.array([7, 8], np.int16)),
        "default_tensor": tensor(np.array([-3], np.int16)),
    }
    x = {"x": np.array([4, 1, 0, 9])}
    graph = import_onnx(learned_model("LabelEncoder", attributes, x, version=4), shapes={"n": 4})
    found = evaluate(graph, x, dtype=None)["y"]
    np.testing.assert_array_equal(found, np.array([8, 7, -3, -3], np.int16))


def test_a_category_that_there_is_not_ends_a_call() -> None:
    x = {"x": np.array([[1], [5]])}
    model = learned_model("OneHotEncoder", {"cats_int64s": [1, 2], "zeros": 0}, x)
    graph = import_onnx(model, shapes={"n": 2})
    engine = compile(graph, "python", cache=False)
    with pytest.raises(IndexError):
        engine.run(x)


def one(operator: str, **attributes: object) -> onnx.ModelProto:
    outputs = ("label", "y") if operator.endswith("Classifier") else ("y",)
    version = 2 if operator == "LabelEncoder" else 1
    return learned_model(operator, attributes, {"x": rows()}, outputs, version)


REFUSED = [
    (one("ZipMap", classlabels_int64s=[0, 1]), "it makes a map for each row", "'zipmap': False"),
    (
        one("CategoryMapper", cats_strings=["a"], cats_int64s=[1]),
        "reads or gives strings",
        "encode",
    ),
    (one("DictVectorizer", int64_vocabulary=[1]), "it reads maps", "encode"),
    (one("CastMap"), "it reads maps", "encode"),
    (one("LabelEncoder", keys_strings=["a"], values_int64s=[1]), "strings", "encode"),
    (one("OneHotEncoder", cats_strings=["a"]), "it reads or gives strings", "encode"),
    (
        one("LinearClassifier", coefficients=[0.0] * 10, classlabels_strings=["a", "b"]),
        "its labels are strings",
        "LabelEncoder",
    ),
    (one("Normalizer", norm="L3"), "norm is 'L3'; known are MAX, L1, L2", ""),
    (
        one(
            "SVMRegressor",
            coefficients=[0.0] * 5,
            rho=[0.0],
            kernel_type="X",
            n_supports=1,
            support_vectors=[0.0] * 5,
        ),
        "kernel_type is 'X'",
        "",
    ),
    (one("LinearRegressor", coefficients=[0.0] * 5, post_transform="SOFTMAX"), "of one target", ""),
    (
        one("LinearRegressor", coefficients=[0.0] * 5, post_transform="X"),
        "post_transform is 'X'",
        "",
    ),
]


@pytest.mark.parametrize(("model", "reason", "hint"), REFUSED)
def test_what_is_not_of_numbers_is_refused(model: onnx.ModelProto, reason: str, hint: str) -> None:
    with pytest.raises(UnsupportedOperator) as caught:
        import_onnx(model, shapes={"n": ROWS})
    text = str(caught.value)
    assert reason in text
    assert hint in text


def test_labels_that_are_strings_count_for_nothing_where_nobody_reads_them() -> None:
    attributes = {"coefficients": numbers(2, WIDTH), "classlabels_strings": ["a", "b"]}
    x = {"x": rows()}
    model = learned_model("LinearClassifier", attributes, x, ("", "y"))
    found = evaluate(import_onnx(model, shapes={"n": ROWS}), x, dtype=None)["y"]
    weights = np.array(attributes["coefficients"], np.float32).reshape(2, WIDTH)
    np.testing.assert_allclose(found, x["x"] @ weights.T, rtol=1e-4, atol=1e-5)


WRONG = [
    (
        one("LinearClassifier", coefficients=[0.0], classlabels_ints=[0, 1]),
        "model: node 'the_node' (LinearClassifier) has 1 coefficients and 0 intercepts; expected "
        "10 and 2 for 5 features and 2 targets. [onnx-linear-size]",
    ),
    (
        one("LinearRegressor", coefficients=[0.0], targets=0),
        "model: node 'the_node' (LinearRegressor) has 0 targets. [onnx-linear-targets]",
    ),
    (
        one(
            "LinearClassifier",
            coefficients=[0.0] * 15,
            intercepts=[0.0] * 3,
            classlabels_ints=[0, 1],
        ),
        "model: node 'the_node' (LinearClassifier) has 2 labels for 3 scores. [onnx-linear-labels]",
    ),
    (
        one("LinearClassifier", coefficients=[0.0] * 5),
        "model: node 'the_node' (LinearClassifier) has no labels. [onnx-labels]",
    ),
    (
        one("Scaler", offset=[0.0, 1.0], scale=[1.0]),
        "model: attribute 'offset' of node 'the_node' (Scaler) has 2 elements; expected 1 or 5. "
        "[onnx-per-feature]",
    ),
    (
        one("Imputer", imputed_value_floats=[0.0, 1.0]),
        "model: node 'the_node' (Imputer) has 2 values for float32[24, 5]; expected 1, or 1 for "
        "each feature. [onnx-imputer]",
    ),
    (
        one("FeatureVectorizer", inputdimensions=[1, 2]),
        "model: node 'the_node' (FeatureVectorizer) has 1 inputs of [1, 2] features; expected a "
        "number for each. [onnx-vectorizer]",
    ),
    (
        one("LabelEncoder", keys_int64s=[1, 2], values_int64s=[1]),
        "model: node 'the_node' (LabelEncoder) has 2 keys and 1 values; expected as many, and at "
        "least one. [onnx-label-encoder]",
    ),
    (
        one("SVMRegressor", coefficients=[0.0], rho=[0.0]),
        "model: attribute 'coefficients' of node 'the_node' (SVMRegressor) has 1 elements; "
        "expected 5. [onnx-vectors-size]",
    ),
    (
        one("SVMClassifier", coefficients=[0.0], vectors_per_class=[1], classlabels_ints=[0, 1]),
        "model: node 'the_node' (SVMClassifier) has vectors for 1 of 2 classes. "
        "[onnx-vectors-groups]",
    ),
    (
        learned_model("Normalizer", {}, {"x": np.zeros((2, 3, 4), np.float32)}),
        "model: node 'the_node' (Normalizer) has the input float32[24, 3, 4]; expected rows. "
        "[onnx-normalizer]",
    ),
    (
        learned_model(
            "LinearRegressor", {"coefficients": [0.0]}, {"x": np.zeros((2, 3, 4), np.float32)}
        ),
        "model: node 'the_node' (LinearRegressor) has the input float32[24, 3, 4]; expected rows "
        "of features. [onnx-learned-rank]",
    ),
    (
        learned_model("ArrayFeatureExtractor", {}, {"x": rows(), "places": np.zeros(24, np.int32)}),
        "model: node 'the_node' (ArrayFeatureExtractor) has the inputs float32[24, 5] and "
        "int32[24]; expected rows of features and int64. [onnx-extractor]",
    ),
    (
        one("OneHotEncoder"),
        "model: node 'the_node' (OneHotEncoder) has no categories. [onnx-categories]",
    ),
]


@pytest.mark.parametrize(("model", "message"), WRONG)
def test_what_does_not_fit_is_refused(model: onnx.ModelProto, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        import_onnx(model, shapes={"n": ROWS})
    assert f"{caught.value.message} [{caught.value.code}]" == message
