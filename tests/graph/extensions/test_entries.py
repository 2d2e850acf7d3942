"""Entry points: which are read, and what is said where they are not what they say."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

import pytest

import tilewright as tw
from tilewright.graph.errors import ExtensionError
from tilewright.graph.extensions import entries
from tilewright.graph.extensions.entries import importer_of
from tilewright.tir import extensions
from tilewright.tir.extensions import EXTENSIONS_VARIABLE, package_entry_points

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Entry points of a group, of a module whose attributes are given."""

    def made(group: str, *names: str, **attributes: object) -> None:
        module = ModuleType("brought")
        vars(module).update(attributes)
        monkeypatch.setitem(sys.modules, "brought", module)
        value = f"brought:{next(iter(attributes))}" if attributes else "brought"
        points = tuple(EntryPoint(name, value, group) for name in names)
        monkeypatch.setattr(
            extensions, "installed_entry_points", lambda g: points if g == group else ()
        )

    entries._loaded.cache_clear()
    yield made
    entries._loaded.cache_clear()


def test_a_variable_hides_them(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install("tilewright.passes", "mine")
    for value, count in (("1", 1), ("", 1), ("0", 0), ("off", 0)):
        monkeypatch.setenv(EXTENSIONS_VARIABLE, value)
        assert len(package_entry_points("tilewright.passes")) == count


def test_passes_that_two_packages_bring_are_refused(install: Install) -> None:
    install("tilewright.passes", "mine", "mine", add=lambda passes: passes)
    with pytest.raises(ExtensionError) as caught:
        tw.PASSES.named("mine")
    assert str(caught.value) == (
        "ExtensionError: extensions: a package, a package each bring the passes 'mine'; expected "
        "one of them. [extension-twice]\n"
        "  Hint: uninstall the others, or call the function of one: its module is yours."
    )


@pytest.mark.parametrize("given", [3, lambda passes: None])
def test_passes_are_made_by_a_function_of_passes(given: object, install: Install) -> None:
    install("tilewright.passes", "mine", add=given)
    made = given if given == 3 else None
    with pytest.raises(ExtensionError) as caught:
        tw.PASSES.named("mine")
    assert str(caught.value) == (
        f"ExtensionError: passes: 'mine' of a package gives {made!r}; expected a function from "
        "Passes to Passes. [passes-result]\n"
        "  Hint: def mine(passes): return passes.after(GeluRecognition, Mine())"
    )


def test_a_function_that_fails_is_told_with_its_package(install: Install) -> None:
    install("tilewright.passes", "mine", add=lambda passes: passes.after("Gelu"))
    with pytest.raises(ExtensionError) as caught:
        tw.PASSES.named("mine")
    text = str(caught.value)
    assert text.startswith(
        "ExtensionError: passes: 'mine' of a package raised OperatorError: passes: after: no pass "
        "is Gelu; known are 'IdentityRemoval', "
    )
    assert text.endswith(" [passes-raised]")


def test_a_suffix_of_ours_asks_nobody(install: Install) -> None:
    install("tilewright.importers", "onnx", "pt2", "other", read=None)
    for name in ("model.onnx", "model.ONNX", "model.pt2", "model.pt", "model", b"model.other"):
        assert importer_of(name) is None
    for name in ("model.other", Path("model.OTHER")):
        found = importer_of(name)
        assert found is not None
        assert found.name == "other"
    assert importer_of("model.unknown") is None


def test_an_importer_gives_a_graph(install: Install) -> None:
    install("tilewright.importers", "other", read=lambda path, *, shapes, constants: path)
    with pytest.raises(ExtensionError) as caught:
        tw.compile("model.other", "python")
    assert str(caught.value) == (
        "ExtensionError: model: the importer of 'other' of a package gives a str; expected a "
        "Graph. [extension-graph]\n"
        "  Hint: GraphBuilder makes one, node by node."
    )
