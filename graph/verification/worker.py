"""A process that tries models: one line of JSON in, one out; `python -m
tilewright.graph.verification.worker`.

A request names the files of a model and its inputs, the system to compare with (null: none), the
target, the shapes, and the bound; the answer is a list of one entry, {"outcome": ...}.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from ...runtime.arrays import Array
from ...tir.errors import TilewrightError
from .differences import ValueBound
from .setting import EngineSetting, compared_outputs, read_model
from .systems import system_named


def main() -> None:
    """Answer requests until there are no more."""
    for line in sys.stdin:
        print(json.dumps([{"outcome": outcome(json.loads(line))}]), flush=True)


def outcome(request: dict[str, object]) -> str:
    """What became of a model."""
    try:
        return "equal" if _is_equal(request) else "differs"
    except TilewrightError as error:
        return f"error {error.code}"
    except Exception as error:  # whatever it is, it is what is looked for
        return f"raised {type(error).__name__}"


def _is_equal(request: dict[str, object]) -> bool:
    """Compile the model, run it, and compare it. Raises: anything."""
    model = read_model(str(request["model"]), None)
    stated, target, shapes = request["bound"], request["target"], request["shapes"]
    assert isinstance(stated, list)
    assert isinstance(shapes, dict)
    assert target is None or isinstance(target, str)
    setting = EngineSetting(target, shapes, ValueBound(*stated))
    engine = setting.compiled(model)
    if request["against"] is None:
        return True
    with np.load(str(request["inputs"]), allow_pickle=False) as file:
        given: dict[str, Array] = {name: file[name] for name in file.files}
    taken = {name: given[name] for name in (spec.name for spec in engine.inputs)}
    run = system_named(str(request["against"])).load(model)
    found = compared_outputs(engine, run, taken, setting.bound, "")
    return all(one.is_equal for one in found)


if __name__ == "__main__":
    main()
