"""Arguments that several verbs share, and how their texts are parsed."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Sequence
from typing import Protocol

from .constants import add_constants
from .errors import UsageError

_NAME = r"[^:,\s\[\]]*(?::[^:,\s\[\]]+)*?"  # may contain colons
_ONE = r"\d+(?:-\d+-\d+)?"  # a size, or the least, the usual and the largest one
_ENTRY = re.compile(rf"(?P<name>{_NAME}):(?P<size>\[[\d,\s-]*\]|{_ONE}(?:x{_ONE})*)(?:,|$)")


Size = int | tuple[int, int, int]  # or the least, the usual and the largest


class Verbs(Protocol):
    """The object that `add_subparsers` returns."""

    def add_parser(
        self,
        name: str,
        *,
        help: str,
        usage: str,
        description: str,
        epilog: str,
        formatter_class: type[argparse.HelpFormatter],
    ) -> argparse.ArgumentParser: ...


def add_verb(
    verbs: Verbs,
    name: str,
    summary: str,
    description: str,
    examples: str,
    takes: str = "",
    below: str = "",
) -> argparse.ArgumentParser:
    """Add the parser of a verb, with examples after the options. takes: the required arguments;
    below: the parent verb of an action.
    """
    return verbs.add_parser(
        name,
        help=summary,
        usage=" ".join(part for part in ("tilewright", below, name, takes, "[options]") if part),
        description="\n".join(textwrap.wrap(description, 79)),
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def described_by(documentation: str | None) -> str:
    """The description of a verb: the first paragraph of its module, without the verb's name."""
    first = (documentation or "").partition("\n\n")[0]
    text = " ".join(first.partition(": ")[2].split())
    return text[:1].upper() + text[1:]


def add_model(
    parser: argparse.ArgumentParser,
    *,
    optional: bool = False,
    archives: bool = True,
    engines: bool = False,
) -> None:
    """Add MODEL and the options of compilation. archives, engines: it may be one as well."""
    kinds = "an ONNX model" + (", or an archive of torch.export (.pt2)" if archives else "")
    parser.add_argument(
        "model",
        metavar="MODEL",
        nargs="?" if optional else None,
        help=kinds + ("; or an engine (.twe)" if optional or engines else ""),
    )
    add_compilation(parser)


def add_bound(parser: argparse.ArgumentParser, of: str, share: str) -> None:
    """Add `--atol` and `--rtol`: what outputs may be off by. of: what they are a share of; share:
    of the largest magnitude, by default.
    """
    parser.add_argument("--atol", type=float, metavar="A", help=f"allowed: A + R * |{of}|")
    parser.add_argument(
        "--rtol", type=float, metavar="R", help=f"default: {share} of the largest magnitude"
    )


def add_compilation(parser: argparse.ArgumentParser) -> None:
    """Add the options of compilation."""
    add_shapes(parser)
    parser.add_argument(
        "--target",
        metavar="TARGET",
        help="c:avx512, c:avx2, c:scalar, cuda (the GPU here), cuda:sm_90a (one that need not be "
        "here), or python (the interpreter); default: this machine's CPU",
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        metavar="T",
        help="error of outputs that you accept, as a share of their largest magnitude, from 1e-5: "
        "allows algorithms that round more (default: none of them)",
    )


def add_shapes(parser: argparse.ArgumentParser) -> None:
    """Add `--shapes` and `--constants`, what a model leaves open."""
    parser.add_argument(
        "--shapes",
        action="append",
        default=[],
        metavar="NAME:SIZES",
        help="sizes that the model leaves open: image:1x3x224x224 for an input, batch:1 for a "
        "symbol, mask:[8] for an input of one dimension; several with commas; batch:1-8-64: any "
        "size from 1 to 64, best at 8; `tilewright explain` says what is assumed of the others",
    )
    add_constants(parser)


def add_variants(parser: argparse.ArgumentParser) -> None:
    """Add `--specialise`, the sizes of variants."""
    parser.add_argument(
        "--specialise",
        action="append",
        default=[],
        metavar="NAME:SIZE",
        help="sizes that come often and get code of their own, a variant: batch:1,seq:20; given "
        "again, another one",
    )


def add_schedules(parser: argparse.ArgumentParser) -> None:
    """Add `--log` and `--require-tuned`, the source of schedules."""
    parser.add_argument(
        "--log", metavar="LOG", help="take schedules from a tuning log: see `tilewright tune`"
    )
    parser.add_argument(
        "--require-tuned",
        action="store_true",
        help="refuse a model with a kernel that the log has no tuned schedule for",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add `--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Add `--sizes`, of random inputs."""
    parser.add_argument(
        "--sizes",
        action="append",
        default=[],
        metavar="NAME:SIZE",
        help="of random inputs, where a run decides: batch:3,seq:17 (default: the usual ones)",
    )


def add_shape_log(parser: argparse.ArgumentParser) -> None:
    """Add `--shape-log`."""
    parser.add_argument(
        "--shape-log",
        metavar="FILE",
        help="add the sizes of all runs to this log, from which tw.frequent_sizes chooses some to "
        "compile for",
    )


def sizes_of(texts: Sequence[str], option: str = "--sizes") -> dict[str, int]:
    """Parse `--sizes`, or one `--specialise`. Raises: UsageError."""
    found = shapes_of(texts, option)
    sizes = {name: size for name, size in found.items() if isinstance(size, int)}
    wrong = next((name for name in found if name not in sizes), None)
    if wrong is not None:
        raise UsageError(
            f"{option}: '{wrong}' has several sizes; expected one.",
            code="cli-sizes",
            hints=(f"{option} batch:3,seq:17.",),
        )
    return sizes


def shapes_of(texts: Sequence[str], option: str = "--shapes") -> dict[str, Size | tuple[Size, ...]]:
    """Parse `--shapes`: a size for each symbol, sizes for each input; each may be a range.

    Raises: UsageError.
    """
    shapes: dict[str, Size | tuple[Size, ...]] = {}
    for text in texts:
        at = 0
        while at < len(text):
            match = _ENTRY.match(text, at)
            if match is None or not match["name"]:
                raise UsageError(
                    f"{option}: cannot read '{text[at:]}'; expected NAME:SIZES.",
                    code="cli-shapes",
                    hints=(
                        "--shapes image:1x3x224x224 for an input; --shapes batch:1 for a symbol.",
                    ),
                )
            shapes[match["name"]] = _size(match["size"])
            at = match.end()
    return shapes


def _size(text: str) -> Size | tuple[Size, ...]:
    if text.startswith("["):
        return tuple(map(_one, re.findall(_ONE, text)))
    sizes = tuple(map(_one, text.split("x")))
    return sizes if len(sizes) > 1 else sizes[0]


def _one(text: str) -> Size:
    low, *rest = map(int, text.split("-"))
    return (low, rest[0], rest[1]) if rest else low


def whole(text: str) -> int:
    """A whole number of at least 0, for argparse."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number")
    return int(text)


def counts(text: str) -> tuple[int, ...]:
    """Comma-separated whole numbers of at least 1, for argparse."""
    numbers = tuple(whole(part.strip()) for part in text.split(","))
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' holds a number below 1")
    return numbers


def seconds(text: str) -> float:
    """A number of seconds of at least 0, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return value
