from __future__ import annotations

import numpy as np
import pytest

from tilewright.runtime.engine.interpreted_program import InterpretedProgram
from tilewright.runtime.model.model import Model, StoredModel
from tilewright.tir.errors import IRError

from ...tiny_engine import tiny_engine
from ...tiny_program import M, N, constants, expected, image, tiny


def test_a_model_computes_in_float64() -> None:
    y = Model(tiny(), constants())({"x": image()})["y"]
    assert y.dtype == np.float64
    np.testing.assert_allclose(y, expected(image()), rtol=1e-13, atol=1e-13)


def test_a_model_computes_in_its_own_types_where_asked() -> None:
    y = Model(tiny(), constants()).in_own_types({"x": image()})["y"]
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected(image()), rtol=1e-5, atol=1e-5)


def test_a_model_of_products_and_sums_decides_nothing() -> None:
    assert not Model(tiny(), constants()).decides


def test_a_stored_model_is_read_when_it_is_needed() -> None:
    stored = Model(tiny(), constants()).stored()
    assert np.array_equal(stored({"x": image()})["y"], stored.model()({"x": image()})["y"])
    with pytest.raises(IRError, match="json-syntax"):
        StoredModel("", {})({"x": image()})


def test_the_interpreter_runs_a_model() -> None:
    artifact = tiny_engine("python").parts.artifact
    frame = InterpretedProgram(artifact, Model(tiny(), constants())).frame(4)
    y = np.zeros((N, M), np.float32)
    frame.point([image()], [y])
    assert frame.run(4) == 1
    np.testing.assert_allclose(y, expected(image()), rtol=1e-5, atol=1e-5)
