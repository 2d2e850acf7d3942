"""What the backend of torch.compile says of graphs that it does not run."""

from __future__ import annotations

from ...graph.errors import ModelError


class FallbackWarning(UserWarning):
    """A graph, or a call of it, is run by torch."""


class TrainingGraphError(ModelError):
    """A graph whose gradients are needed was to be refused."""

    def __init__(self) -> None:
        super().__init__(
            "torch.compile: a graph whose gradients are needed; expected one that is evaluated "
            "only, as training='refuse' asks.",
            code="torch-training",
            hints=("with torch.no_grad(): ... computes none.",),
        )


class NotForEngines(ModelError):
    """A graph whose values no engine takes."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(
            f"torch.compile: {what}; expected dense tensors of the CPU, of sizes that arguments "
            "tell.",
            code="torch-values",
            hints=(hint,),
        )
