"""ONNX's own node tests: how many are right by tilewright, onnxruntime, OpenVINO and ONNX's
reference evaluator, in one run.

    python -m benchmarks.conformance [SYSTEM ...] [--write]

A case is right where a system gives the expected outputs, in type, shape and, within the case's
tolerances, value; refused where it says that it cannot; wrong otherwise. "tilewright" is what its
interpreter of graphs gives, "engines" what compiled engines give (an hour); of some cases they know
the value of an input when the model is read (constants=). Each system has a process of its own,
begun anew behind a case that ends it or takes two minutes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper
from onnx.backend.test.case.test_case import TestCase
from onnx.reference import ReferenceEvaluator

import tilewright as tw
from tests.graph.importers.onnx_cases import array, check_output, flat, load_cases, read
from tilewright.graph.reference.reference import evaluate

from . import report

Inputs = Mapping[str, Any]
Call = Callable[[TestCase, Inputs], list[Any]]
SECONDS = 120  # for a case, or to load all
NARROW = {
    *("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0"),
    *("FLOAT4E2M1", "INT2", "UINT2", "INT4", "UINT4"),
}
WIDE: dict[int, int] = {
    getattr(TensorProto, name): TensorProto.INT32 if "INT" in name else TensorProto.FLOAT
    for name in NARROW
}
HEAD = ("system", "right", "wrong", "refused", "ends the process")
DRAWN = ("test_bernoulli", "test_training_dropout")  # whose values nobody can expect
PEERS = ("onnxruntime", "openvino", "reference")
VERDICTS = ("right", "wrong", "refused", "ended")


def by_interpreter(case: TestCase, inputs: Inputs) -> list[Any]:
    graph, _ = read(case)
    given = flat(inputs, inputs.values())
    results = evaluate(graph, {name: given[name] for name in graph.inputs}, dtype=None)
    return [results[name] for name in graph.outputs]


def by_engine(case: TestCase, inputs: Inputs) -> list[Any]:
    graph, _ = read(case)
    engine, given = tw.compile(graph, cache=False), flat(inputs, inputs.values())
    results = engine.run({name: given[name] for name in graph.inputs})
    return [results[name] for name in graph.outputs]


def by_onnxruntime(case: TestCase, inputs: Inputs) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    model, feeds = exchanged(case.model, inputs)
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def by_openvino(case: TestCase, inputs: Inputs) -> list[Any]:
    import openvino

    core = openvino.Core()
    model, feeds = exchanged(case.model, inputs)
    compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
    found = compiled(feeds)
    return [found[output] for output in compiled.outputs]


def by_reference(case: TestCase, inputs: Inputs) -> list[Any]:
    model: ModelProto = case.model
    return list(ReferenceEvaluator(model).run(None, dict(inputs)))


def exchanged(model: ModelProto, inputs: Inputs) -> tuple[ModelProto, dict[str, Any]]:
    """The model with a Cast at each input and output of a type that NumPy does not have by itself,
    and its inputs: other systems take no such arrays. Both ways are exact.
    """
    made, feeds = ModelProto(), dict(inputs)
    made.CopyFrom(model)
    graph = made.graph
    before, behind = [], []
    for item in graph.input:
        wide = WIDE.get(item.type.tensor_type.elem_type)
        if wide is not None and item.name in feeds:
            given = f"{item.name}/given"
            to = item.type.tensor_type.elem_type
            before.append(helper.make_node("Cast", [given], [item.name], to=to))
            feeds[given] = feeds.pop(item.name).astype(helper.tensor_dtype_to_np_dtype(wide))
            item.name, item.type.tensor_type.elem_type = given, wide
    for item in graph.output:
        wide = WIDE.get(item.type.tensor_type.elem_type)
        if wide is not None:
            behind.append(helper.make_node("Cast", [item.name], [f"{item.name}/taken"], to=wide))
            item.name, item.type.tensor_type.elem_type = behind[-1].output[0], wide
    nodes = [*before, *graph.node, *behind]
    graph.ClearField("node")
    graph.node.extend(nodes)
    return made, feeds


SYSTEMS: dict[str, Call] = {
    "tilewright": by_interpreter,
    "engines": by_engine,
    "onnxruntime": by_onnxruntime,
    "openvino": by_openvino,
    "reference": by_reference,
}


def find_verdict(call: Call, case: TestCase) -> tuple[str, str]:
    """What a system makes of a case, and its first words where it is not right."""
    names = [item.name for item in case.model.graph.input]
    is_drawn = case.name.startswith(DRAWN) and "zero_ratio" not in case.name
    try:
        for given, wanted in case.data_sets:
            inputs = {n: whole(v) for n, v in zip(names, given, strict=False) if v is not None}
            results = apart(call(case, inputs))
            expected = apart([whole(value) for value in wanted])
            try:
                if len(results) != len(expected):
                    raise AssertionError(f"{len(results)} outputs; expected {len(expected)}")
                for got, output in zip(results, expected, strict=True):
                    check_output(case, as_type(got, output), output, is_drawn=is_drawn)
            except (AssertionError, AttributeError, TypeError, ValueError) as error:
                return "wrong", " ".join(str(error).split())[:100]
    except Exception as error:  # whatever another system raises
        return "refused", f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
    return "right", ""


def apart(values: Sequence[Any]) -> list[Any]:
    """Results, the tensors of a sequence one by one."""
    listed = (value if isinstance(value, list) else [value] for value in values)
    return [one for each in listed for one in each]


def whole(value: Any) -> Any:
    """A value of a case: an array, or a list of them."""
    return [array(one) for one in value] if isinstance(value, list) else array(value)


def as_type(got: Any, expected: Any) -> Any:
    """A result that was taken in a wider type, in the type that is expected."""
    narrow = getattr(expected, "dtype", np.dtype("float32")).kind == "V"
    return np.asarray(got).astype(expected.dtype) if narrow else got


def serve(system: str, first: int, pipe: Connection) -> None:
    """In a process of its own: the verdicts on all cases from one on."""
    warnings.simplefilter("ignore")
    for case in load_cases()[first:]:
        pipe.send(find_verdict(SYSTEMS[system], case))


def verdicts(system: str, count: int) -> Iterator[tuple[str, str]]:
    """On each case, in order."""
    context, done = multiprocessing.get_context("spawn"), 0
    while done < count:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=serve, args=(system, done, theirs), daemon=True)
        worker.start()
        theirs.close()
        try:
            while done < count and ours.poll(SECONDS):
                yield ours.recv()
                done += 1
        except EOFError:
            pass
        if done < count:
            worker.kill()
            yield "ended", ""
            done += 1
        worker.join()


def main() -> None:
    """Count, print, and with --write keep the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("systems", nargs="*", default=["tilewright", *PEERS])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    names = [case.name for case in load_cases()]
    print(report.table(HEAD, []))
    found: dict[str, list[tuple[str, str]]] = {}
    for system in options.systems:
        found[system] = list(verdicts(system, len(names)))
        print(report.table(HEAD, [cells(system, found[system])]).splitlines()[-1], flush=True)
    if options.write:
        text = report.table(HEAD, [cells(*item) for item in found.items()])
        rows = [
            {"case": name, **{system: list(of[n]) for system, of in found.items()}}
            for n, name in enumerate(names)
        ]
        report.write("conformance", text, rows, ())


def cells(system: str, found: list[tuple[str, str]]) -> tuple[object, ...]:
    """The row of a system."""
    counts = Counter(verdict for verdict, _ in found)
    return system, *(counts[verdict] for verdict in VERDICTS)


if __name__ == "__main__":
    main()
