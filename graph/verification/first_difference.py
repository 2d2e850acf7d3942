"""Which value within a model is the first to differ from another system's.

Engines whose values within are outputs, some at a time, are compared with the other system value by
value: only what is kept is stored, all else is fused as it would be. So a difference that is found
is that of an engine which keeps these values. Where none of them differs and the model's output
does, the fault is in what keeping values takes apart, fusion or the plan of the memory; engines
that end at a value, with all before it fused as in the model, are bisected then, for the first that
is wrong.

The node that is named is compiled once more, alone, and given what the other system gave it: where
it differs there, too, it is at fault by itself; where it does not, errors of the nodes before it
have added up, or decide otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, NodeProto

from ...runtime.arrays import Array
from ...tir.dtype import dtype as as_dtype
from ...tir.errors import TilewrightError
from ...tir.text.display import printable
from ..importers.onnx.importer import import_onnx
from ..importers.onnx.nested import reads_of
from ..importers.onnx.node import node_name
from .cutting import inner_values, node_alone, with_outputs
from .differences import ValueDifference
from .setting import EngineSetting, compared_outputs
from .systems import OtherSystem

_KEPT = 32  # values that one engine keeps


@dataclass(frozen=True, slots=True)
class ValueRange:
    """A value that a node reads or computes, as the other system has it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    low: str
    high: str
    unlike: int  # elements that are NaN or infinite

    def __str__(self) -> str:
        text = f"{self.name}: {self.dtype}{list(self.shape)}"
        if self.low:
            text += f", {self.low} to {self.high}"
        return printable(f"{text}, {self.unlike} NaN or infinite" if self.unlike else text)


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """A node whose value differs, with what it reads and computes. is_kept: in an engine that keeps
    the values before it; else in one that ends at it. alone: the value where the node alone is
    given what the other system gave it; None where that could not be run.
    """

    node: str
    operator: str
    value: ValueDifference
    inputs: tuple[ValueRange, ...]
    outputs: tuple[ValueRange, ...]
    is_kept: bool
    alone: ValueDifference | None

    def __str__(self) -> str:
        how = (
            "the first differing value of an engine whose values within are kept"
            if self.is_kept
            else "no value differs where all are kept, so that fusion or the plan of the memory "
            "is at fault; the first engine that differs ends here"
        )
        lines = [f"node '{self.node}' ({self.operator}): {how}", f"  {self.value}"]
        lines += [f"  reads {one}" for one in self.inputs]
        lines += [f"  computes {one}" for one in self.outputs]
        if self.alone is not None:
            word = "is equal" if self.alone.is_equal else f"differs, too: {self.alone}"
            lines.append(f"  the node alone, on what the other system gave it, {word}")
        return printable("\n".join(lines))

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class InnerComparison:
    """What became of the values within. compared: how many; left_out: those that no engine has as
    an output, or that the other system cannot give.
    """

    compared: int
    left_out: tuple[str, ...]
    first: FirstDifference | None

    def __str__(self) -> str:
        left = f", {len(self.left_out)} could not be kept" if self.left_out else ""
        head = f"{self.compared} value{'s' * (self.compared != 1)} within compared{left}; "
        return head + (str(self.first) if self.first is not None else "none differs")

    __repr__ = __str__


def compare_inside(
    model: ModelProto,
    system: OtherSystem,
    setting: EngineSetting,
    given: Mapping[str, Array],
    output: ValueDifference,
    tell: Callable[[str], object],
) -> InnerComparison:
    """Compare the values within a model on some inputs. output: the one that is furthest off."""
    search = _Search(model, system, setting, given, output.at, tell)
    value = search.first_kept()
    is_kept = value is not None
    if value is None and not output.is_equal:
        value = search.first_cut(output)
    first = None if value is None else search.told(value, is_kept)
    return InnerComparison(search.compared, tuple(search.left_out), first)


class _Search:
    """Compares values of one model on one choice of inputs."""

    def __init__(
        self,
        model: ModelProto,
        system: OtherSystem,
        setting: EngineSetting,
        given: Mapping[str, Array],
        at: str,
        tell: Callable[[str], object],
    ) -> None:
        self.model, self.system, self.setting = model, system, setting
        self.given, self.at, self.tell = given, at, tell
        self.compared = 0
        self.left_out: list[str] = []

    def first_kept(self) -> ValueDifference | None:
        """The first value that differs in an engine which keeps it."""
        names = inner_values(self.model)
        for start in range(0, len(names), _KEPT):
            self.tell(f"values {start} to {min(start + _KEPT, len(names))} of {len(names)}")
            kept = list(self.keepable(names[start : start + _KEPT]))
            for value in self.compare(kept) if kept else ():
                self.compared += 1
                if not value.is_equal:
                    return value
        return None

    def keepable(self, names: Sequence[str]) -> Iterator[str]:
        """Those that a model may have as outputs, here and in the other system."""
        part = with_outputs(self.model, names)
        try:
            import_onnx(part, shapes=self.setting.shapes)
            self.system.load(part)(self.given)
            yield from names
        except TilewrightError:
            if len(names) == 1:
                self.left_out.append(names[0])
                return
            middle = len(names) // 2
            yield from self.keepable(names[:middle])
            yield from self.keepable(names[middle:])

    def compare(self, names: Sequence[str]) -> list[ValueDifference]:
        """An engine with these outputs beside the other system. Raises: TilewrightError."""
        part = with_outputs(self.model, names)
        engine, run = self.setting.compiled(part), self.system.load(part)
        return list(compared_outputs(engine, run, self.given, self.setting.bound, self.at))

    def first_cut(self, output: ValueDifference) -> ValueDifference:
        """The first value, by bisection, whose engine differs where it ends there."""
        part = with_outputs(self.model, [output.name])
        left_out = set(self.left_out)
        names = [name for name in inner_values(part) if name not in left_out]
        low, high, found = 0, names.index(output.name), output
        while low < high:
            middle = (low + high) // 2
            self.tell(f"{high - low + 1} values left")
            (value,) = self.compare([names[middle]])
            if value.is_equal:
                low = middle + 1
            else:
                high, found = middle, value
        return found

    def told(self, value: ValueDifference, is_kept: bool) -> FirstDifference:
        """The node of a value, what it reads and computes, and whether it differs alone."""
        node = next(one for one in self.model.graph.node if value.name in one.output)
        arrays = self.arrays(node)
        reads = [name for name in dict.fromkeys(reads_of(node)) if name in arrays]
        return FirstDifference(
            node_name(node),
            node.op_type,
            value,
            tuple(value_range(name, arrays[name]) for name in reads),
            tuple(value_range(name, arrays[name]) for name in node.output if name in arrays),
            is_kept,
            self.alone(node, value.name, {name: arrays[name] for name in reads}),
        )

    def arrays(self, node: NodeProto) -> dict[str, Array]:
        """What a node reads and computes in the other system, without its weights."""
        inner = set(inner_values(self.model))
        names = [name for name in (*reads_of(node), *node.output) if name in inner]
        run = self.system.load(with_outputs(self.model, list(dict.fromkeys(names))))
        given = {name: np.asarray(array) for name, array in self.given.items()}
        return {**given, **run(self.given)}

    def alone(
        self, node: NodeProto, name: str, arrays: Mapping[str, Array]
    ) -> ValueDifference | None:
        """The value where its node is a model; None where that cannot be run."""
        part = node_alone(self.model, node, arrays)
        try:
            engine = self.setting.closed_by(part).compiled(part)
            run = self.system.load(part)
            found = compared_outputs(engine, run, arrays, self.setting.bound, self.at)
            return next(one for one in found if one.name == name)
        except TilewrightError:
            return None


def value_range(name: str, array: Array) -> ValueRange:
    """The range of what is finite."""
    kind = as_dtype(array.dtype)
    wide = array.astype(np.float64)
    finite = wide[np.isfinite(wide)]
    low, high = (f"{finite.min():.6g}", f"{finite.max():.6g}") if finite.size else ("", "")
    return ValueRange(name, str(kind), array.shape, low, high, int(wide.size - finite.size))
