"""The errors of the whole package: one base, built from fields, rendered only when somebody reads
it.

A search catches thousands of refusals and prints none, so an error keeps its fields and `__str__`
does the work. Every kind of failure has its own `code`, a literal at the place that raises it; a
test holds one golden text per code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from .text.display import printable, sentence
from .text.html import plain
from .text.notebook_error import notebook_text, notebook_traceback

Where = str | Callable[[], str] | None


class TilewrightError(Exception):
    """Base of every error that tilewright raises on purpose.

    Rendered as one sentence, then where it happened, then notes, then what to do. Names in it are
    text, whatever characters they hold:

        ScheduleError: split: factors (4, 5) do not cover loop 'i': 4 * 5 = 20, extent 64.
        [split-cover]
          in matmul:
              for i in range(64):
          Hint: leave one factor None to have it inferred: factors=(4, None).
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        where: Where = None,
        notes: Sequence[str] = (),
        hints: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.where = where
        self.notes = tuple(notes)
        self.hints = tuple(hints)

    @property
    def _head(self) -> str:
        return f"{type(self).__name__}: {sentence(self.message)} [{self.code}]"

    @property
    def _place(self) -> str:
        return (self.where() if callable(self.where) else self.where) or ""

    def __str__(self) -> str:
        lines = [self._head]
        if where := self._place:
            lines += [f"  {line}" for line in where.removesuffix("\n").split("\n")]
        lines += [f"  Note: {note}" for note in self.notes]
        lines += [f"  Hint: {hint}" for hint in self.hints]
        return printable("\n".join(lines))

    def _repr_html_(self) -> str:
        return plain(self._notebook_text())

    def _notebook_text(self) -> str:
        return printable(notebook_text(self._head, self._place, self.notes, self.hints))

    def _render_traceback_(self) -> list[str]:
        """What IPython shows when nobody caught the error."""
        return notebook_traceback(self, self._notebook_text())

    def __reduce__(self) -> tuple[Callable[..., TilewrightError], tuple[object, ...]]:
        where = self.where() if callable(self.where) else self.where
        return _restored, (type(self), self.args, {**self.__dict__, "where": where})


def _restored(
    kind: type[TilewrightError], arguments: tuple[object, ...], fields: dict[str, object]
) -> TilewrightError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(fields)
    return error


class IRError(TilewrightError, ValueError):
    """An expression, statement or function that has no meaning was built."""


class IRTypeError(IRError, TypeError):
    """A Python object of another type stands where an expression, a tensor or an index belongs."""


class TargetError(TilewrightError, ValueError):
    """The named target does not exist, or cannot do what is asked of it."""


class TargetTypeError(TargetError, TypeError):
    """What is given as a target is neither a Target nor its name."""


class InternalError(TilewrightError, RuntimeError):
    """A defect of tilewright itself: an invariant between two of its own stages does not hold."""

    def __init__(self, message: str, *, code: str, where: Where = None) -> None:
        super().__init__(
            message,
            code=code,
            where=where,
            hints=(
                "this is a defect of tilewright; please report it with the program that led here.",
            ),
        )

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: our frames too, since the report needs them."""
        return notebook_traceback(self, self._notebook_text(), folded=False)


def known_names(wanted: str, names: Iterable[str]) -> str:
    """List `names`, those closest to `wanted` first: the tail of every "no such ..." message."""
    pool = list(dict.fromkeys(names))
    close = _closest(wanted, pool, 0.5)
    ordered = close + [name for name in pool if name not in close]
    return ", ".join(f"'{name}'" for name in ordered) if ordered else "none"


def misspelt(
    what: str, wanted: str, names: Iterable[str], foreign: Mapping[str, str], listed_by: str
) -> tuple[str, tuple[str, ...]]:
    """The message about a name where there are too many to list, and its hints: the closest ones.

    what: "te: no name", say. foreign: what to write instead of a name of another system.
    listed_by: what lists all of `names`.
    """
    own = list(dict.fromkeys(names))
    close = _closest(wanted, [*own, *foreign], 0.6)
    ours = ", ".join(f"'{name}'" for name in close if name not in foreign)
    message = f"{what} '{wanted}'" + (f"; the closest: {ours}." if ours else ".")
    theirs = (f"for '{n}', in tilewright: {foreign[n]}." for n in close[:1] if n in foreign)
    return message, (*theirs, f"{listed_by} lists all that there are.")


def _closest(wanted: str, names: list[str], cutoff: float) -> list[str]:
    # here, because nothing that goes well needs it
    import difflib

    return difflib.get_close_matches(wanted, names, n=3, cutoff=cutoff)
