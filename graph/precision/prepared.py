"""The graph on which precision is decided: the model in floats, before its layout changes.

Calibration says a range of each of its values, by name, so the names depend on the model alone.
"""

from __future__ import annotations

from ..ir.ir import Graph
from ..passes.batch_norm_folding import BatchNormFolding
from ..passes.common_subexpressions import CommonSubexpressions
from ..passes.constant_folding import ConstantFolding
from ..passes.control_flow import ControlFlow
from ..passes.dead_code import DeadCode
from ..passes.fast_norm_recognition import FastNormRecognition
from ..passes.gelu_recognition import GeluRecognition
from ..passes.identity_removal import IdentityRemoval
from ..passes.kept_axes import KeptAxes
from ..passes.layer_norm_recognition import LayerNormRecognition
from ..passes.mean_recognition import MeanRecognition
from ..passes.pad_folding import PadFolding
from ..passes.pipeline import PIPELINE, GraphPass, optimise
from ..passes.region_inputs import RegionInputs
from ..passes.softmax_recognition import SoftmaxRecognition

_KINDS = (
    *(IdentityRemoval, ConstantFolding, ControlFlow, RegionInputs, BatchNormFolding, PadFolding),
    *(CommonSubexpressions, KeptAxes, MeanRecognition, SoftmaxRecognition, LayerNormRecognition),
    *(FastNormRecognition, GeluRecognition, DeadCode),
)

PREPARING: tuple[GraphPass, ...] = tuple(one for one in PIPELINE if isinstance(one, _KINDS))
"""The passes of the pipeline that keep layout and heads, in its order."""


def prepared_graph(imported: Graph, *, check: bool = False) -> Graph:
    """A model as calibration sees it, and as precision is decided on it; its values have the same
    names in every process.

    check: compare the graph before and after each pass on random numbers.
    Raises: InternalError when `imported` is invalid.
    """
    return optimise(imported, PREPARING, check=check)[0]


def calibrated_values(prepared: Graph) -> tuple[str, ...]:
    """The values that have a range: those of float32 that are no constants, in order, inputs first.
    What is computed within branches and loops is none of them.
    """
    names = (*prepared.inputs, *(value for node in prepared.nodes for value in node.outputs))
    return tuple(name for name in names if prepared.types[name].dtype == "float32")
