"""The source of a probe of an instruction that adds products to lanes: chains of it on whole
vectors, as many as the probe of multiply-adds has, written in the expressions of code generation.
"""

from __future__ import annotations

from ...codegen.isa.isa import isa
from ...tir.instructions.tensor_intrinsics import TensorIntrinsic
from ...tir.target.target import Target

_FACTOR = "0x3f3f3f3f"  # 63 as bytes, 0.75 as bfloat16: sums stay normal numbers
_SOURCE = """
#define DECLARE_{name}(n) {held} {name}_##n = ({held}){start};
#define STEP_{name}(n) {name}_##n = ({held}){step};
#define COLLECT_{name}(n) sum = {add};
void tw_probe_{name}(void *const *args, const struct tw_team *team, int thread, int threads)
{{
    long iterations = *(const long *)args[0];
    float *result = (float *)args[1] + thread * STRIDE;
    {bits} factor = {factor};
    {total} sum = {zero};
    (void)team, (void)threads;
    EACH(DECLARE_{name})
    for (long i = 0; i < iterations; i++) {{
        EACH(STEP_{name})
    }}
    EACH(COLLECT_{name})
    {store};
}}
"""


def dot_probe(intrinsic: TensorIntrinsic, target: Target) -> str:
    """The C function `tw_probe_<name>` of an instruction that the target has, to follow probes.c;
    args = {long iterations, float *result}.
    """
    assert intrinsic.carried is not None
    own, lanes = isa(target), intrinsic.lanes_on(target)[0]
    total = intrinsic.define(lanes).outputs[0].type.with_lanes(lanes)
    carried = intrinsic.carried.with_lanes(min(lanes, target.lanes(intrinsic.carried)))
    kind, chain = own.types[total], f"({own.types[total]}){intrinsic.name}_##n"
    return _SOURCE.format(
        name=intrinsic.name,
        held=own.held.get(total, kind),
        total=kind,
        bits=own.types[carried],
        start=own.apply("broadcast", total, "n"),
        step=own.apply(intrinsic.name, total, chain, "factor", "factor"),
        add=own.apply("add", total, "sum", chain),
        factor=own.apply("broadcast", carried, _FACTOR),
        zero=own.apply("zero", total),
        store=own.apply("store", total, "result", "sum"),
    )
