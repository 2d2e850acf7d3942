"""Write the programs of this folder: for each family of primitives one of many calls, and models,
with what they are given and what JAX computes.

    python tests/graph/importers/jaxpr/make_programs.py [FAMILY ... | networks]

Needs jax and flax (the files here are of jax 0.10.2, flax 0.12.8); nothing else of the tests does,
but for those that trace a function themselves. Run it where `import tilewright` works.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import jax
import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from networks import NETWORKS  # noqa: E402
from stored import save  # noqa: E402

from tilewright.graph.importers.jaxpr.program import JaxProgram  # noqa: E402
from tilewright.graph.importers.jaxpr.traced import traced  # noqa: E402

FAMILIES = tuple(
    path.stem for path in sorted(HERE.glob("calls/*.py")) if path.stem not in ("__init__", "given")
)


def write(name: str) -> None:
    """One family: all its calls, one behind the other."""
    family = import_module(f"calls.{name}")
    names = list(family.GIVEN)

    def function(*arrays: jax.Array) -> list[object]:
        given = dict(zip(names, arrays, strict=True))
        return [jax.tree.leaves(call(given)) for call in family.CALLS]

    arrays = tuple(family.GIVEN.values())
    _saved(HERE / f"{name}.npz", function, arrays, {})


def _saved(
    path: Path,
    function: Callable[..., object],
    args: tuple[object, ...],
    operators: dict[str, int],
) -> None:
    program = traced(function, args)
    assert isinstance(program, JaxProgram)
    wanted = [np.asarray(one) for one in jax.tree.leaves(jax.jit(function)(*args))]
    save(path, program, jax.tree.leaves(args), wanted, operators)


def write_networks() -> None:
    """The networks, each with what is to be recognised in it."""
    (HERE / "models").mkdir(exist_ok=True)
    for name, make in NETWORKS.items():
        network = make()
        path = HERE / "models" / f"{name}.npz"
        _saved(path, network.function, network.args, network.expected)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or (*FAMILIES, "networks"):
        if chosen == "networks":
            write_networks()
        else:
            write(chosen)
