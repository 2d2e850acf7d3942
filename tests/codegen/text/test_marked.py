"""codegen/text/marked.py: a text with a mark for each line, which only the text itself keeps."""

from __future__ import annotations

import pickle

from tilewright.codegen.text.marked import Mark, MarkedText, joined
from tilewright.tir.stmt import Barrier

MARK = Mark(Barrier())


def test_texts_are_joined_with_their_marks() -> None:
    text = joined(["{", MarkedText.of("a\nb", MARK), "", MarkedText.of("}", None)])
    assert text == "{\na\nb\n\n}"
    assert text.marks == (None, MARK, MARK, None, None)


def test_a_text_keeps_its_marks_within_another_one() -> None:
    text = joined(["{", MarkedText.of("a", MARK), "}", ""]).within("/* a */\n\n{\na\n}\n\nend\n")
    assert text.split("\n")[text.marks.index(MARK)] == "a"
    assert text.marks == (None, None, None, MARK, None, None, None, None)


def test_it_is_the_text_alone_that_is_compared_and_pickled() -> None:
    text = MarkedText.of("a", MARK)
    assert text == "a"
    assert hash(text) == hash("a")
    assert type(pickle.loads(pickle.dumps(text))) is str
