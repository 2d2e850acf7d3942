"""What products of an engine compute with, as JSON and back."""

from __future__ import annotations

from dataclasses import asdict

from ...tir.json_reader import Json, Reader, cut_line
from .precision_report import LayerPrecision, LayerTimes, PrecisionReport, SliceScore


def precision_to_json(report: PrecisionReport) -> dict[str, Json]:
    """All of it as plain JSON values."""
    return {
        "layers": [_layer_to_json(one) for one in report.layers],
        "remarks": [cut_line(line) for line in report.remarks],
        "scores": [{**asdict(one), "name": cut_line(one.name)} for one in report.scores],
        "accuracy": [cut_line(line) for line in report.accuracy],
    }


def precision_from_json(data: Reader) -> PrecisionReport:
    """The report that `precision_to_json` wrote. Raises: IRError."""
    return PrecisionReport(
        tuple(_layer(item) for item in data["layers"].items()),
        tuple(item.line() for item in data["remarks"].items()),
        tuple(_score(item) for item in data["scores"].items()),
        tuple(item.line() for item in data["accuracy"].items()),
    )


def _layer_to_json(one: LayerPrecision) -> dict[str, Json]:
    lines = {name: cut_line(getattr(one, name)) for name in ("layer", "reason")}
    return {**asdict(one), **lines}


def _layer(data: Reader) -> LayerPrecision:
    return LayerPrecision(
        data["layer"].line(),
        data["precision"].text(),
        data["reason"].line(),
        data["error"].or_none(Reader.number),
        data["times"].or_none(_times),
    )


def _times(data: Reader) -> LayerTimes:
    return LayerTimes(
        narrow=data["narrow"].number(),
        floats=data["floats"].number(),
        is_estimate=data["is_estimate"].truth(),
    )


def _score(data: Reader) -> SliceScore:
    return SliceScore(
        data["metric"].text(),
        data["name"].line(),
        data["count"].integer(),
        data["exact"].number(),
        data["narrow"].number(),
        data["most_drop"].or_none(Reader.number),
    )
