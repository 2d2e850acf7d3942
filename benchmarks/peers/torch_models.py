"""torch.compile as a peer of whole models: the networks that `benchmarks.export` wrote as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.cli.compare.peers import Package, PeerSession
from tilewright.runtime.arrays import Array


@dataclass(frozen=True, slots=True)
class TorchCompile(Package):
    """torch.compile with frozen weights, which oneDNN then gets in its own layouts, of the network
    from which the file `model` was exported: files of another script have other weights.

    model: the file's name without its suffix, as `benchmarks.export` chose it.
    """

    name: str = "torch.compile"
    requirement: str = "torch"
    model: str = ""

    def settings(self, threads: int) -> Mapping[str, str]:
        return {"set_num_threads": str(threads), "freezing": "True"}

    def load(
        self,
        model: str | bytes,
        inputs: Mapping[str, Array],
        outputs: Sequence[str],
        threads: int,
    ) -> PeerSession:
        """The network of `self.model`; of the ONNX model nothing is read."""
        import torch  # an optional dependency

        from ..export import network  # which needs torch and transformers

        torch.set_num_threads(threads)
        name, _, batch = self.model.partition("_batch")
        made = network(name, int(batch or 1))
        given = [torch.from_numpy(inputs[key]) for key in made.inputs]
        compiled = torch.compile(made.network, options={"freezing": True})
        found: dict[str, torch.Tensor] = {}

        def call() -> None:
            with torch.inference_mode():
                result = compiled(*given)
            tensors = (result,) if isinstance(result, torch.Tensor) else result
            found.update(zip(made.outputs, tensors, strict=True))

        return PeerSession(call, lambda: {key: found[key].numpy() for key in outputs})
