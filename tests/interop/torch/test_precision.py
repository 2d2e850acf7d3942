"""Modules whose products have narrower types: by torch.compile, and compiled as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.graph.errors import ModelFileError
from tilewright.graph.options import OptionError
from tilewright.runtime.machine.host import host_target

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")

from tilewright.interop.torch.errors import FallbackWarning  # noqa: E402
from tilewright.interop.torch.options import TorchOptions  # noqa: E402

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.skipif(
        not (host_target().isa == "avx2" or "vnni" in host_target().features),
        reason="this CPU multiplies floats faster than bytes",
    ),
]
PLAIN = {"fallback": "refuse", "verify": "kernels"}


def network() -> Any:
    """Convolutions, a normalisation, a residual sum, a mean, classes."""
    nn = torch.nn

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16)
            self.second, self.last = nn.Conv2d(16, 16, 3, padding=1), nn.Linear(16, 10)

        def forward(self, x: Any) -> Any:
            a = torch.relu(self.norm(self.first(x)))
            b = torch.relu(self.second(a) + a)
            return self.last(b.mean((2, 3)))

    torch.manual_seed(0)
    return Network().eval()


@pytest.fixture(scope="module")
def module() -> Any:
    return network()


@pytest.fixture(scope="module")
def x() -> Any:
    return torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def known(module: Any, x: Any) -> tw.Calibration:
    return tw.calibrate(module, [x.numpy()], args=(x,), smooth=None, equalise=False)


def off(found: Any, exact: Any) -> float:
    """The root mean square of the difference, over that of the exact scores."""
    return float(((found - exact) ** 2).mean().sqrt() / (exact**2).mean().sqrt())


def test_torch_compile_takes_the_calibration_of_the_module(
    module: Any, x: Any, known: tw.Calibration, tmp_path: Path
) -> None:
    with torch.no_grad():
        exact = module(x)
        results = []
        for calibration in (known, known.save(tmp_path / "c.npz"), str(tmp_path / "c.npz")):
            torch._dynamo.reset()
            options = {**PLAIN, "precision": "int8", "calibration": calibration}
            results.append(torch.compile(module, backend="tilewright", options=options)(x))
    assert 1e-4 < off(results[0], exact) < 0.03
    assert all(torch.equal(one, results[0]) for one in results)
    # as the engine of the module itself
    engine = tw.compile(module, args=(x,), precision="int8", calibration=known, verify="kernels")
    own = torch.from_numpy(np.array(engine(x.numpy())))
    assert off(results[0], own) < 0.02
    kinds = [one.precision for one in engine.explain().precision.layers]
    assert kinds == ["bytes"] * 3


def test_torch_compile_takes_16_bits(module: Any, x: Any) -> None:
    torch._dynamo.reset()
    options = {**PLAIN, "precision": {"addmm": "float16"}}
    with torch.no_grad():
        found, exact = torch.compile(module, backend="tilewright", options=options)(x), module(x)
    assert 1e-6 < off(found, exact) < 1e-3
    engine = tw.compile(module, args=(x,), precision={"linear": "float16"}, verify="kernels")
    assert [one.layer for one in engine.explain().precision.rounded] == ["linear"]


def test_a_calibration_of_another_module_is_told(x: Any, known: tw.Calibration) -> None:
    torch._dynamo.reset()
    torch.manual_seed(5)
    other = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3)).eval()
    options = {"precision": "int8", "calibration": known}
    with torch.no_grad():
        with pytest.warns(FallbackWarning, match="calibration-model"):
            torch.compile(other, backend="tilewright", options=options)(x)
        torch._dynamo.reset()
        options["fallback"] = "refuse"
        with pytest.raises(Exception, match="expected one of the same products and weights"):
            torch.compile(other, backend="tilewright", options=options)(x)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"precision": "auto", "calibration": None}, "precision='auto'"),
        ({"precision": "int8", "accuracy": 0.01}, "accuracy=..."),
    ],
)
def test_what_an_accuracy_decides_is_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(OptionError) as caught:
        TorchOptions.of(options)
    assert str(caught.value) == (
        f"OptionError: torch.compile: option {named} is decided by measuring a whole model on "
        "data, and torch hands over graphs as it meets them; expected the types of products. "
        "[torch-accuracy]\n"
        "  Hint: tilewright.compile(module, args=(x,), precision=..., accuracy=...) is held to "
        "one.\n"
        "  Hint: options={'precision': 'int8', 'calibration': tilewright.calibrate(module, data, "
        "args=(x,))} takes bytes in all products that can."
    )


def test_options_that_contradict_each_other_are_refused(
    known: tw.Calibration, tmp_path: Path
) -> None:
    with pytest.raises(OptionError, match=r"\[compile-calibration\]"):
        TorchOptions.of({"precision": "int8"})
    with pytest.raises(OptionError, match=r"\[compile-no-bytes\]"):
        TorchOptions.of({"calibration": known})
    with pytest.raises(OptionError, match=r"\[compile-precision-strict\]"):
        TorchOptions.of({"precision": "float16", "strict": True})
    with pytest.raises(OptionError, match=r"\[compile-calibration-type\]"):
        TorchOptions.of({"precision": "int8", "calibration": 3})
    with pytest.raises(ModelFileError, match=r"\[calibration-file\]"):
        TorchOptions.of({"precision": "int8", "calibration": tmp_path / "none.npz"})
