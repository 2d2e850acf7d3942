"""The text of a program as HTML: its words coloured, nothing of it changed.

Taking the tags away and reading the entities gives back the very text. The page's own colours for
text and ground are kept, and those of words stand out on light and on dark ones, so there is no
style sheet, no script and nothing to load: the HTML may be put into any page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

_KEYWORD = "color:#ab54d6"
_MARK = "color:#cb5a12;font-weight:600"  # what a schedule said of a loop
_NUMBER = "color:#1f8a54"
_STRING = "color:#1f8a54"
_NAME = "font-weight:600"
_WORD = "color:#3f7ade"  # a type or a function of the language
_COMMENT = "color:#7a7a7a;font-style:italic"

# said in full, because a notebook's own style sheet has wishes for a <pre>
FRAME = (
    "font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:0.9em;"
    "line-height:1.35;white-space:pre;word-break:normal;overflow-x:auto;margin:0.3em 0;"
    "padding:0.2em 0;background:transparent"
)


@dataclass(frozen=True, slots=True)
class Language:
    """How a text is cut into words.

    comment, string: regular expressions of these. styles: CSS declarations for each known word.
    """

    comment: str
    string: str
    styles: Mapping[str, str]

    @property
    def pattern(self) -> re.Pattern[str]:
        """What is looked for: a comment, a string, a number, or a word."""
        number = r"(?<![\w.])(?:0x[0-9a-fA-F]+|\d+\.?\d*(?:e[+-]?\d+)?)\w*"
        return re.compile(
            f"(?P<comment>{self.comment})|(?P<string>{self.string})|(?P<number>{number})"
            r"|(?P<word>[^\W\d]\w*)",
            re.DOTALL,
        )


def _styles(*groups: tuple[str, str]) -> dict[str, str]:
    return {word: style for style, words in groups for word in words.split()}


IR = Language(
    comment=r"#[^\n]*",
    string=r'"[^"\n]*"',
    styles=_styles(
        (
            _KEYWORD,
            "def for in with if else pass del where counts init block and or not True False",
        ),
        (_KEYWORD, "range"),
        (_MARK, "parallel vectorized unrolled barrier prefetch extern"),
        (_WORD, "alloc constant output spatial reduce ordered select cast reinterpret let"),
        (_WORD, "min max fma ramp broadcast masked exp log pow sqrt tanh erf gelu abs float int"),
        (_WORD, "bool float16 bfloat16 float32 float64 int8 int16 int32 int64"),
        (_WORD, "uint8 uint16 uint32 uint64"),
    ),
)
C = Language(
    comment=r"/\*.*?\*/|//[^\n]*|#[^\n]*",
    string=r'"(?:[^"\\\n]|\\.)*"',
    styles=_styles(
        (_KEYWORD, "for if else while return break static inline const restrict struct"),
        (_WORD, "void char int float double bool int8_t int16_t int32_t int64_t uint8_t uint16_t"),
        (_WORD, "uint32_t uint64_t size_t __m128 __m256 __m512 __m128i __m256i __m512i"),
        (_WORD, "__m256d __m512d __mmask8 __mmask16 __mmask32 __mmask64"),
    ),
)
ASSEMBLY = Language(
    comment=r"/\*.*?\*/|//[^\n]*|#[^\n]*",
    string=r'"(?:[^"\\\n]|\\.)*"',
    styles=_styles((_KEYWORD, "ret call jmp jne je jb jae jg jge jl jle"), (_MARK, "vzeroupper")),
)
STEPS = Language(IR.comment, IR.string, _styles((_KEYWORD, "None"), (_MARK, "True False")))


def highlight(text: str, language: Language = IR) -> str:
    """A `<pre>` element that shows `text`, every character of it escaped."""
    return f'<pre style="{FRAME}">{spans(text, language)}</pre>'


def spans(text: str, language: Language = IR) -> str:
    """The words of `text` in their colours, every character of it escaped: what stands in a
    `<pre>`. No element goes over the end of a line.
    """
    return "".join(_pieces(text, language))


def plain(text: str) -> str:
    """A `<pre>` element that shows `text` in one colour; a line that is too long goes on below."""
    return f'<pre style="{FRAME};white-space:pre-wrap">{escape(text)}</pre>'


def details(summary: str, content: str, *, shown: bool = False) -> str:
    """A part that opens at a click. summary: a text, escaped here; content: HTML."""
    state = " open" if shown else ""
    heading = f'<summary style="cursor:pointer">{escape(summary)}</summary>'
    return f"<details{state}>{heading}{content}</details>"


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table of plain texts."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _pieces(text: str, language: Language) -> Iterable[str]:
    end = 0
    for match in language.pattern.finditer(text):
        yield escape(text[end : match.start()])
        yield _styled(match[0], _style(match, text, language))
        end = match.end()
    yield escape(text[end:])


def _style(match: re.Match[str], text: str, language: Language) -> str:
    """The CSS of a word; empty for the page's own."""
    match match.lastgroup:
        case "comment":
            return _COMMENT
        case "string":
            return _STRING
        case "number":
            return _NUMBER
    defined = text[: match.start()].endswith("def ")
    return _NAME if defined else language.styles.get(match[0], "")


def _styled(word: str, style: str) -> str:
    if not style:
        return escape(word)
    lines = (escape(line) for line in word.split("\n"))
    return "\n".join(f'<span style="{style}">{line}</span>' for line in lines)
