"""What was found of an operator: everything at once, each finding with what helps."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import OperatorError


@dataclass(frozen=True, slots=True)
class OperatorFinding:
    """What an operator says of itself that is not so. kind: which check found it; problem: with
    values; case: the inputs on which it was found, "" where on none; hint: what helps.
    """

    kind: str
    problem: str
    hint: str
    case: str = ""

    def __str__(self) -> str:
        where = f" on {self.case}" if self.case else ""
        return f"{self.kind}{where}: {self.problem}\n    Hint: {self.hint}"


@dataclass(frozen=True, slots=True)
class OperatorReport:
    """What `tw.check_operator` found; true where nothing is wrong.

    operator: its name with its fields. cases: the inputs that it was tried on. notes: what was not
    tried, and why.
    """

    operator: str
    cases: tuple[str, ...]
    findings: tuple[OperatorFinding, ...]
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        count = len(self.findings)
        said = f"{count} finding{'s' if count > 1 else ''}" if count else "nothing found"
        cases = f"{len(self.cases)} case{'s' if len(self.cases) > 1 else ''}"
        lines = [f"{self.operator}, {cases}: {said}"]
        lines += [f"  {finding}" for finding in self.findings]
        return "\n".join([*lines, *(f"  Note: {note}" for note in self.notes)])

    __repr__ = __str__

    def raise_for_findings(self) -> None:
        """Raises: OperatorError with all findings where there are some."""
        if self.findings:
            raise OperatorError(
                f"check_operator: {self.operator} has {len(self.findings)} findings: "
                f"{', '.join(dict.fromkeys(one.kind for one in self.findings))}.",
                code="operator-findings",
                where="\n".join(map(str, self.findings)),
            )
