"""The passes of a compile as a value, which others change: `tw.PASSES`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ...tir.errors import TilewrightError, known_names
from ...tir.extensions import package_entry_points, package_title
from ..errors import ExtensionError, OperatorError
from ..extensions.entries import load, named_entry
from ..extensions.origin import PASSES as GROUP
from .pipeline import PIPELINE, GraphPass, pass_name


@dataclass(frozen=True, slots=True)
class Passes:
    """Passes in the order in which a model goes through them: `tw.compile(model, passes=...)`.

        passes = tw.PASSES.after(GeluRecognition, MyPass())

    Each method gives another value. A pass is a frozen dataclass with `keeps_rounding`, which takes
    a `Graph` and gives an equal one, the same object where nothing is to do (`GraphPass`). What a
    pass of yours made is always compared with what it was given, on random data; where they differ
    it is undone, and `engine.explain()` says so. `place` tells those of one class apart, from 1 on.
    """

    passes: tuple[GraphPass, ...]

    def __post_init__(self) -> None:
        for one in self.passes:
            _check_pass(one)

    def __iter__(self) -> Iterator[GraphPass]:
        return iter(self.passes)

    def __len__(self) -> int:
        return len(self.passes)

    def __repr__(self) -> str:
        return "\n".join(map(str, self.passes))

    def before(self, kind: type | str, *added: GraphPass, place: int | None = None) -> Passes:
        """With passes in front of the one of a class, or of the class of that name.

        Raises: OperatorError where there is none, or where there are several and no `place`.
        """
        at = self._find("before", kind, place)
        return Passes((*self.passes[:at], *added, *self.passes[at:]))

    def after(self, kind: type | str, *added: GraphPass, place: int | None = None) -> Passes:
        """With passes behind the one of a class. Raises: as `before`."""
        at = self._find("after", kind, place) + 1
        return Passes((*self.passes[:at], *added, *self.passes[at:]))

    def replace(self, kind: type | str, *added: GraphPass, place: int | None = None) -> Passes:
        """With passes in place of the one of a class. Raises: as `before`."""
        at = self._find("replace", kind, place)
        return Passes((*self.passes[:at], *added, *self.passes[at + 1 :]))

    def without(self, kind: type | str) -> Passes:
        """Without all passes of a class. Raises: OperatorError where there is none."""
        at = self._places("without", kind)
        return Passes(tuple(one for n, one in enumerate(self.passes) if n not in at))

    def named(self, name: str) -> Passes:
        """With what an installed package makes of these under a name: an entry point of the group
        `tilewright.passes`, a function that takes a `Passes` and gives another one. Packages change
        no compile that does not name them.

        Raises: ExtensionError where no package, or more than one, brings the name, or where that
        does not load, fails, or gives something else.
        """
        entry = named_entry(GROUP, name, "the passes")
        if entry is None:
            raise ExtensionError(
                f"passes: no installed package brings '{name}'; known are "
                f"{known_names(name, (one.name for one in package_entry_points(GROUP)))}.",
                code="passes-named",
                hints=(f"a package brings passes by an entry point of '{GROUP}'.",),
            )
        make, title = load(entry), f"'{name}' of {package_title(entry)}"
        try:
            made = make(self) if callable(make) else make
        except Exception as error:
            text = error.message if isinstance(error, TilewrightError) else str(error)
            raise ExtensionError(
                f"passes: {title} raised {type(error).__name__}: {text.rstrip('.')}.",
                code="passes-raised",
            ) from error
        if not isinstance(made, Passes):
            raise ExtensionError(
                f"passes: {title} gives {made!r}; expected a function from Passes to Passes.",
                code="passes-result",
                hints=("def mine(passes): return passes.after(GeluRecognition, Mine())",),
            )
        return made

    def _places(self, method: str, kind: type | str) -> list[int]:
        """Where passes of a class stand. Raises: OperatorError where none does."""
        name = kind if isinstance(kind, str) else kind.__name__
        found = [
            n
            for n, one in enumerate(self.passes)
            if (pass_name(one) == kind if isinstance(kind, str) else type(one) is kind)
        ]
        if not found:
            raise OperatorError(
                f"passes: {method}: no pass is {name}; known are "
                f"{known_names(name, map(pass_name, self.passes))}.",
                code="passes-kind",
            )
        return found

    def _find(self, method: str, kind: type | str, place: int | None) -> int:
        """Where the pass of a class stands. Raises: OperatorError."""
        found = self._places(method, kind)
        if len(found) == 1 and place in (None, 1):
            return found[0]
        if place is None or not 1 <= place <= len(found):
            name = kind if isinstance(kind, str) else kind.__name__
            raise OperatorError(
                f"passes: {method}: {len(found)} passes are {name}, and place is {place}; expected "
                f"1 to {len(found)}.",
                code="passes-place",
                hints=(f"{method}({name}, ..., place=1) is about the first one.",),
            )
        return found[place - 1]


def chosen_passes(passes: Iterable[GraphPass] | None) -> tuple[GraphPass, ...]:
    """The passes of a compile: the usual ones, or those that a caller gives.

    Raises: OperatorError.
    """
    return PASSES.passes if passes is None else Passes(tuple(passes)).passes


def _check_pass(one: object) -> None:
    """Refuse what is no pass. Raises: OperatorError."""
    if isinstance(one, type):
        problem = "a class; expected a value of it"
    elif not callable(one):
        problem = "not callable; expected a function of a Graph"
    elif not isinstance(getattr(one, "keeps_rounding", None), bool):
        problem = "without keeps_rounding; expected True or False"
    else:
        return
    raise OperatorError(
        f"passes: {one!r} is {problem}.",
        code="passes-pass",
        hints=(
            "keeps_rounding: ClassVar[bool] = False says that sums may be taken in another order; "
            "a strict build leaves such a pass out.",
        ),
    )


PASSES = Passes(PIPELINE)
