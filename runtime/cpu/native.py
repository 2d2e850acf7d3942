"""Compiled code: loaded, joined with its constants, run on the arrays of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle

from ...codegen.artifact import Artifact, Entry, ToldSize
from ..arrays import Array, memory
from ..kernel_code import Code
from ..machine.host import default_threads
from ..toolchain.library import Library, LibraryError, Pointer, SharedObject, ffi
from .pages import side_by_side
from .pool import pool_run
from .workspace import ScratchMemory, workspace

_POINTER = ffi.typeof("void *")
_POINTERS = ffi.typeof("void *[]")


class NativeEntry:
    """One entry of a loaded object; some of its parameters are fixed, the others come with a call.

    Any number of threads may run it at once.
    """

    def __init__(self, library: Library, entry: Entry, fixed: Mapping[str, Array]) -> None:
        """Find the entry; `fixed` holds arrays by parameter name.

        Raises: LibraryError.
        """
        self._library = library
        self._function = library.entry(entry.symbol)
        self._entry = entry
        names = [parameter.name for parameter in entry.parameters]
        self._free = tuple(index for index, name in enumerate(names) if name not in fixed)
        self._sizes = [self._place(size) for size in entry.sizes]
        self._pointers = [memory(fixed[name]) if name in fixed else ffi.NULL for name in names]

    def _place(self, size: ToldSize | int) -> tuple[int, int] | int:
        """Which array of a call tells a size, and which axis of it; a number where it is known."""
        if isinstance(size, int):
            return size
        if size.parameter is None:
            raise LibraryError(
                f"library: no array of '{self._entry.symbol}' tells its size '{size.dim.name}'; "
                "expected an entry at sizes that are known.",
                code="library-size",
            )
        return self._free.index(size.parameter), size.axis

    def workspace_bytes(self, threads: int) -> int:
        """Bytes of scratch memory of a run on `threads` threads."""
        return self._entry.workspace_bytes + threads * self._entry.thread_workspace_bytes

    def run(self, arrays: Sequence[Array], threads: int) -> int:
        """Run on arrays for the free parameters, in order; how many threads took part."""
        pointers = self._pointers_to(arrays)
        pointers.append(workspace(self.workspace_bytes(threads)))
        return int(pool_run()(self._function, ffi.new(_POINTERS, pointers), threads))

    def bind(
        self, arrays: Sequence[Array], threads: int, scratch: ScratchMemory | None = None
    ) -> Callable[[], int]:
        """A call that runs on these arrays again and again, with scratch memory of its own, or with
        that of other calls that never run beside it.
        """
        scratch = scratch or ScratchMemory(self.workspace_bytes(threads))
        pointers = [*self._pointers_to(arrays), scratch.pointer]
        return _Bound(self._function, pointers, threads, (self, scratch))

    def _pointers_to(self, arrays: Sequence[Array]) -> list[Pointer]:
        pointers = self._pointers.copy()
        for index, array in zip(self._free, arrays, strict=True):
            pointers[index] = memory(array)
        for place in self._sizes:
            size = place if isinstance(place, int) else arrays[place[0]].shape[place[1]]
            pointers.append(ffi.cast(_POINTER, size))
        return pointers


class NativeCode(Code):
    """An artifact's compiled code with its constants bound: what a Kernel runs; pickles."""

    has_threads = True

    def __init__(
        self, artifact: Artifact, shared: SharedObject, fixed: Mapping[str, Array]
    ) -> None:
        """Load the object; `fixed` holds every constant and prepared array that `run` reads.

        Raises: TargetError where this machine lacks the instruction set; LibraryError.
        """
        self.artifact = artifact
        self.shared = shared
        self.fixed = dict(fixed)
        self._library = Library(shared, name=artifact.name)
        self._run = NativeEntry(self._library, artifact.run, self.fixed)
        self._copies: list[dict[str, Array]] = []  # of the constants, for all that is bound

    @staticmethod
    def load(
        artifact: Artifact, shared: SharedObject, constants: Mapping[str, Array]
    ) -> NativeCode:
        """Load the object and compute, once, what depends on the constants alone.

        The constants are copied where `run` reads them. They must fit their parameters: see
        `accept_constants`.
        Raises: TargetError where this machine lacks the instruction set; LibraryError.
        """
        kept = [p for p in artifact.parameters if p.role in ("constant", "prepared")]
        arrays = side_by_side([(p.largest_shape, p.dtype.numpy) for p in kept])
        fixed = {p.name: array for p, array in zip(kept, arrays, strict=True)}
        for parameter in kept:
            # nobody reads what `prepare` leaves out, but it is kept
            value = constants[parameter.name] if parameter.role == "constant" else 0
            fixed[parameter.name][...] = value
        if artifact.prepare is not None:
            library = Library(shared, name=artifact.name)
            known = {**constants, **fixed}
            names = [parameter.name for parameter in artifact.prepare.parameters]
            needed = {name: known[name] for name in names}
            NativeEntry(library, artifact.prepare, needed).run((), default_threads())
        return NativeCode(artifact, shared, fixed)

    def at(self, artifact: Artifact) -> NativeCode:
        """The code of this artifact at other sizes, with the same constants and copies of them."""
        code = NativeCode(artifact, self.shared, self.fixed)
        code._copies = self._copies
        return code

    def __reduce__(
        self,
    ) -> tuple[type[NativeCode], tuple[Artifact, SharedObject, dict[str, Array]]]:
        return NativeCode, (self.artifact, self.shared, self.fixed)

    def run(self, arrays: Sequence[Array], threads: int) -> None:
        """Run on the arrays of inputs and outputs, in parameter order."""
        self._run.run(arrays, threads)

    def bind(self, arrays: Sequence[Array], threads: int, rotated: int = 1) -> Callable[[], object]:
        """A call that runs on these arrays again and again, by turns with so many copies of the
        constants; scratch memory is the same for all of them, as it is for an engine's kernels.
        """
        scratch = ScratchMemory(self._run.workspace_bytes(threads))
        while len(self._copies) < rotated - 1:
            self._copies.append(self._copied())
        copies = self._copies[: max(0, rotated - 1)]
        apart = [NativeEntry(self._library, self.artifact.run, fixed) for fixed in copies]
        entries = [self._run, *apart]
        turns = cycle([entry.bind(arrays, threads, scratch) for entry in entries])
        return (lambda: next(turns)()) if rotated > 1 else next(turns)

    def assembly(self) -> str:
        """The C compiler's text."""
        from ..toolchain.compile import assembly  # a run needs no compiler

        return assembly(self.artifact.source, self.artifact.target, name=self.artifact.name)

    def scratch_bytes(self, threads: int) -> int:
        """Bytes of scratch memory of a run on so many threads."""
        return self._run.workspace_bytes(threads)

    def entries(self) -> tuple[SharedObject, tuple[Entry, ...]]:
        """The object; `prepare`, where there is one, and `run`."""
        both = (self.artifact.prepare, self.artifact.run)
        return self.shared, tuple(entry for entry in both if entry is not None)

    def _copied(self) -> dict[str, Array]:
        """Copies of its constants."""
        arrays = side_by_side([(array.shape, array.dtype) for array in self.fixed.values()])
        copies = dict(zip(self.fixed, arrays, strict=True))
        for name, copy in copies.items():
            copy[...] = self.fixed[name]
        return copies


class _Bound:
    """A region on fixed arrays, with everything that it points to."""

    __slots__ = ("_arguments", "_function", "_keep", "_run", "_threads")

    def __init__(
        self, function: Pointer, pointers: list[Pointer], threads: int, keep: object
    ) -> None:
        self._run = pool_run()
        self._function = function
        self._arguments = ffi.new(_POINTERS, pointers)
        self._threads = threads
        self._keep = (pointers, keep)

    def __call__(self) -> int:
        return int(self._run(self._function, self._arguments, self._threads))
