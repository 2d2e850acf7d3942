"""Models of scikit-learn, fitted to its own data sets, as ONNX files by skl2onnx, and rows that
they have not seen.

Needs `pip install scikit-learn skl2onnx "protobuf<7"`: skl2onnx 1.20 hands truth values over as
integers, which protobuf 7 does not take. Each takes seconds to fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from skl2onnx import to_onnx
from sklearn.base import ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC, SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tilewright.graph.types import Array

Data = tuple[Array, Array]
Maker = Callable[[], Any]  # of an estimator, of which nothing more is known


def _rounded() -> Data:
    """Irises in whole centimetres: categories."""
    x, y = load_iris(return_X_y=True)
    return np.round(x), y


def _holed() -> Data:
    """Irises of which some lengths are missing."""
    x, y = load_iris(return_X_y=True)
    return np.where(np.random.default_rng(0).random(x.shape) < 0.1, np.nan, x), y


def _plain(load: Callable[..., Any]) -> Callable[[], Data]:
    def data() -> Data:
        x, y = load(return_X_y=True)
        return x, y

    return data


DIGITS, IRIS, CANCER, DIABETES = map(
    _plain, (load_digits, load_iris, load_breast_cancer, load_diabetes)
)

SUBJECTS: dict[str, tuple[Maker, Callable[[], Data]]] = {
    "logistic_digits": (lambda: LogisticRegression(max_iter=300), DIGITS),
    "logistic_cancer": (lambda: _scaled(LogisticRegression()), CANCER),
    "linear_diabetes": (LinearRegression, DIABETES),
    "ridge_diabetes": (Ridge, DIABETES),
    "sgd_digits": (lambda: _scaled(SGDClassifier(random_state=0)), DIGITS),
    "linear_svc_digits": (LinearSVC, DIGITS),
    "svc_digits": (SVC, DIGITS),
    "svc_probability_iris": (lambda: SVC(probability=True, random_state=0), IRIS),
    "svc_probability_digits": (lambda: SVC(probability=True, random_state=0), DIGITS),
    "svc_polynomial_cancer": (lambda: _scaled(SVC(kernel="poly")), CANCER),
    "svr_diabetes": (SVR, DIABETES),
    "tree_iris": (lambda: DecisionTreeClassifier(random_state=0), IRIS),
    "tree_diabetes": (lambda: DecisionTreeRegressor(random_state=0), DIABETES),
    "forest_digits": (lambda: RandomForestClassifier(100, random_state=0), DIGITS),
    "forest_cancer": (lambda: RandomForestClassifier(100, random_state=0), CANCER),
    "forest_diabetes": (lambda: RandomForestRegressor(100, random_state=0), DIABETES),
    "forest_iris": (lambda: RandomForestClassifier(10, random_state=0), IRIS),
    "extra_digits": (lambda: ExtraTreesClassifier(100, random_state=0), DIGITS),
    "extra_diabetes": (lambda: ExtraTreesRegressor(100, random_state=0), DIABETES),
    "boosting_iris": (lambda: GradientBoostingClassifier(random_state=0), IRIS),
    "boosting_cancer": (lambda: GradientBoostingClassifier(random_state=0), CANCER),
    "boosting_diabetes": (lambda: GradientBoostingRegressor(random_state=0), DIABETES),
    "histograms_cancer": (lambda: HistGradientBoostingClassifier(random_state=0), CANCER),
    "histograms_diabetes": (lambda: HistGradientBoostingRegressor(random_state=0), DIABETES),
    "ada_iris": (lambda: AdaBoostClassifier(random_state=0), IRIS),
    "isolation_cancer": (lambda: IsolationForest(random_state=0), CANCER),
    "perceptron_digits": (lambda: _scaled(MLPClassifier((64,), random_state=0)), DIGITS),
    "perceptron_diabetes": (
        lambda: MLPRegressor(hidden_layer_sizes=(32,), max_iter=2000, random_state=0),
        DIABETES,
    ),
    "neighbours_digits": (KNeighborsClassifier, DIGITS),
    "neighbours_diabetes": (KNeighborsRegressor, DIABETES),
    "bayes_iris": (GaussianNB, IRIS),
    "components_digits": (lambda: PCA(16), DIGITS),
    "minmax_logistic_iris": (lambda: make_pipeline(MinMaxScaler(), LogisticRegression()), IRIS),
    "norm_logistic_digits": (lambda: make_pipeline(Normalizer(), LogisticRegression()), DIGITS),
    "polynomial_diabetes": (lambda: make_pipeline(PolynomialFeatures(2), Ridge()), DIABETES),
    "bins_iris": (
        lambda: make_pipeline(KBinsDiscretizer(4, encode="ordinal"), LogisticRegression()),
        IRIS,
    ),
    "imputed_iris": (lambda: make_pipeline(SimpleImputer(), LogisticRegression()), _holed),
    "categories_iris": (
        lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
        _rounded,
    ),
    "columns_iris": (
        lambda: make_pipeline(
            ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [2, 3])]),
            LogisticRegression(),
        ),
        IRIS,
    ),
}


def _scaled(estimator: object) -> object:
    return make_pipeline(StandardScaler(), estimator)


def fitted(name: str) -> tuple[onnx.ModelProto, Array]:
    """A model of three quarters of its data, whose number of rows is open, and the other rows."""
    make, load = SUBJECTS[name]
    x, y = load()
    known, unknown, labels, _ = train_test_split(x, y, random_state=0)
    estimator = make().fit(known.astype(np.float32), labels)
    rows = unknown.astype(np.float32)
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    zipped = isinstance(last, ClassifierMixin) and not isinstance(last, LinearSVC)
    options = {"zipmap": False} if zipped else None
    opsets = {"": 18, "ai.onnx.ml": 3}
    model = to_onnx(estimator, rows[:1], options=options, target_opset=opsets)
    return model, rows
