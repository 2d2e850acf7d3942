"""The worker of `reduce` with faults put in on purpose, which models ask for by their operators: a
Softplus of ONNX's reference is off, and a Softsign that is compiled ends the process.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from onnx.reference.ops.op_softplus import Softplus

from tilewright.graph.verification import worker
from tilewright.graph.verification.setting import EngineSetting


def main() -> None:
    """Put the faults in, then answer."""
    right, compiled = Softplus._run, EngineSetting.compiled

    def off(self: Softplus, x: Any) -> tuple[Any]:
        return (right(self, x)[0] * x.dtype.type(1.25),)

    def crashing(self: EngineSetting, model: Any, **how: Any) -> Any:
        if any(node.op_type == "Softsign" for node in model.graph.node):
            os.kill(os.getpid(), signal.SIGSEGV)
        return compiled(self, model, **how)

    Softplus._run = off
    EngineSetting.compiled = crashing  # type: ignore[method-assign]
    worker.main()


if __name__ == "__main__":
    main()
