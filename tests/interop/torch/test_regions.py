"""cond and while_loop of torch, by torch.export and by torch.compile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[torch]'")

from torch._higher_order_ops.while_loop import while_loop  # noqa: E402

from tilewright.graph.errors import UnsupportedOperator  # noqa: E402
from tilewright.interop.torch import backend  # noqa: E402

pytestmark = [
    pytest.mark.needs_cc,
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning"),
]


class Chosen(torch.nn.Module):  # type: ignore[misc, name-defined]
    """One of two layers, as the sum of the input says."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        y = torch.cond(x.sum() > 0, lambda x: self.one(x).relu(), lambda x: self.other(x) - 1, (x,))
        return y + 1


class Halved(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Halves while the sum is above a limit, and counts."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("factor", torch.tensor(0.5))

    def forward(self, x: Any, limit: Any) -> Any:
        def goes_on(x: Any, count: Any) -> Any:
            return x.sum() > limit

        def step(x: Any, count: Any) -> Any:
            return x * self.factor, count + 1

        return while_loop(goes_on, step, (x, torch.tensor(0)))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_branch_by_each_way(sign: int, tmp_path: Path) -> None:
    model = Chosen().eval()
    x = torch.rand(2, 4) * sign
    program = torch.export.export(model, (x,))
    torch.export.save(program, tmp_path / "m.pt2")
    with torch.no_grad():
        expected = model(x).numpy()
        compiled = torch.compile(
            model, backend=backend, fullgraph=True, options={"fallback": "refuse"}
        )
        np.testing.assert_allclose(compiled(x), expected, rtol=1e-5, atol=1e-6)
    for given in (program, tmp_path / "m.pt2"):
        engine = tw.compile(given)
        np.testing.assert_allclose(engine(x), expected, rtol=1e-5, atol=1e-6)
        assert "if (" in str(engine.source)


@pytest.mark.parametrize("limit", [100.0, 3.0, 0.01])
def test_a_loop_by_each_way(limit: float, tmp_path: Path) -> None:
    model = Halved().eval()
    given = torch.rand(3, 4), torch.tensor(limit)
    program = torch.export.export(model, given)
    torch.export.save(program, tmp_path / "m.pt2")
    expected = model(*given)
    with torch.no_grad():
        options = {"fallback": "refuse"}
        compiled = torch.compile(model, backend=backend, fullgraph=True, options=options)
        torch.testing.assert_close(compiled(*given), expected)
    for source in (program, tmp_path / "m.pt2"):
        x, count = tw.compile(source)(*given)
        np.testing.assert_allclose(x, expected[0], rtol=1e-5)
        assert count == expected[1]


def test_what_a_branch_cannot_do_is_told() -> None:
    class Unknown(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.cond(x.sum() > 0, lambda x: torch.fft.fft(x).abs(), lambda x: x + 0, (x,))

    with pytest.raises(UnsupportedOperator, match="fft"):
        tw.compile(Unknown().eval(), args=(torch.ones(4),))
