"""The parser of the command line: a verb, an action or an option that does not exist is answered
with the one that was probably meant.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

_CHOICE = re.compile(r"invalid choice: '(?P<given>[^']*)'")


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose errors suggest a name."""

    def parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Parse all arguments; what is left over is reported by the parser of the verb."""
        parsed, left = self.parse_known_args(arguments)
        if left:
            verb = self._parser_of(parsed)
            options = [text for text in left if text.startswith("-")]
            verb.error(
                f"unrecognized arguments: {' '.join(left)}"
                + "".join(_suggestion(text.partition("=")[0], verb.options) for text in options)
            )
        return parsed

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its options, long ones."""
        return tuple(n for a in self._actions for n in a.option_strings if n.startswith("--"))

    def error(self, message: str) -> NoReturn:
        """Print the usage and the message, with a suggestion where a choice is none of those that
        there are; exit.
        """
        given = _CHOICE.search(message)
        if given is not None:
            names = (str(c) for a in self._actions for c in a.choices or ())
            message += _suggestion(given["given"], names)
        super().error(message)

    def _parser_of(self, parsed: argparse.Namespace) -> Parser:
        """The parser of the verb that was given, or of its action."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                chosen = action.choices.get(getattr(parsed, action.dest, None) or "")
                if isinstance(chosen, Parser):
                    return chosen._parser_of(parsed)
        return self


def _suggestion(given: str, known: Iterable[str]) -> str:
    """A question that names what is closest to `given`; empty where nothing is close."""
    found = difflib.get_close_matches(given, known, n=1, cutoff=0.6)
    return f"; did you mean '{found[0]}'?" if found else ""
