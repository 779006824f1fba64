"""Files of the outputs of every operation in one step, with their memory.

    SrcNode bert/encoder/layer_0/attention/self/Softmax 1
    Output 0 47185920 47185920 GPU_0_bfc 1561347949594120

`SrcNode`: operation, number of outputs. `Output`: slot, requested bytes, allocated bytes, allocator, time
(microseconds). Outputs may share memory: reading or assigning a variable and reshaping pass their input on, which
counts it again.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bert_tf.errors import DataError
from bert_tf.io import atomic, files

MALFORMED = "malformed"
NO_OUTPUTS = "no outputs"
MISCOUNTED = "miscounted"
UNKNOWN_ALLOCATOR = "unknown"
FIRST_WORD = "SrcNode "

_NODE, _OUTPUT = FIRST_WORD, "Output "
_SHOWN_CHARACTERS = 200
_LARGEST_FILE = 1 << 30  # bytes
_NUMBER = "([0-9]{1,19})"  # fits 64 bits
_NODE_LINE = re.compile(rf"SrcNode (\S+) {_NUMBER}")
_OUTPUT_LINE = re.compile(rf"Output {_NUMBER} {_NUMBER} {_NUMBER} (\S+) {_NUMBER}")


class Output(NamedTuple):
    slot: int
    requested: int  # bytes
    allocated: int  # bytes; 0 if allocated before the step
    allocator: str
    time: int  # microseconds


Node = tuple[str, tuple[Output, ...]]  # name of an operation, and the outputs of one run


@dataclasses.dataclass(frozen=True, order=True)
class Skipped:
    line: int  # from 1
    problem: str
    text: str


class Trace(NamedTuple):
    nodes: tuple[Node, ...]
    skipped: tuple[Skipped, ...] = ()

    def outputs(self) -> Iterator[tuple[str, Output]]:
        """Yields operation name and output, in file order."""
        return ((name, output) for name, outputs in self.nodes for output in outputs)


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Reads a file, collecting unusable lines in `skipped`; DataError if it is missing or not a trace."""
    try:
        text = files.read_bytes(path, most=_LARGEST_FILE).decode(errors="replace")
    except OSError as error:
        raise DataError(f"cannot read: {files.reason(error)}", path) from error
    trace = parse(text)
    if not trace.nodes:
        raise DataError("no line begins with SrcNode: this is no memory trace", path)
    return trace


def parse(text: str) -> Trace:
    reader = _Reader()
    *lines, unended = text.split("\n")
    for number, line in enumerate(lines, 1):
        reader.take(number, line.rstrip("\r"))
    reader.take_unended(len(lines) + 1, unended)
    reader.close()
    return Trace(tuple(reader.nodes), tuple(sorted(reader.skipped)))


class _Reader:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.skipped: list[Skipped] = []
        self._name: str | None = None  # of the operation whose outputs follow
        self._outputs: list[Output] = []
        self._time = ""  # of the last output
        self._expected = self._seen = self._line = 0

    def take(self, number: int, line: str) -> None:
        if match := _OUTPUT_LINE.fullmatch(line):
            self._add(number, line, match)
        elif match := _NODE_LINE.fullmatch(line):
            self.close()
            self._name, self._expected, self._line = match[1], int(match[2]), number
        elif line.strip():
            self._skip_malformed(number, line)

    def take_unended(self, number: int, line: str) -> None:
        """Takes a last line without a line end: if the file was cut off, its last number lacks digits."""
        match = _OUTPUT_LINE.fullmatch(line)
        if match and len(match[5]) < len(self._time):
            self._seen += 1
            self._skip(number, f"{MALFORMED}: cut off", line)
        else:
            self.take(number, line)

    def _add(self, number: int, line: str, match: re.Match[str]) -> None:
        if self._name is None:
            self._skip(number, f"{MALFORMED}: an output of no operation", line)
            return
        slot, requested, allocated, allocator, time = match.groups()
        self._outputs.append(Output(int(slot), int(requested), int(allocated), allocator, int(time)))
        self._seen += 1
        self._time = time

    def _skip_malformed(self, number: int, line: str) -> None:
        fields = line.split(" ")
        if line.startswith(_NODE):
            self.close()  # the outputs that follow do not belong to the previous operation
            problem = "expected SrcNode, name, number of outputs"
        elif line.startswith(_OUTPUT):
            self._seen += 1
            complete = len(fields) == len(("Output", *Output._fields))
            missing = [name for name, field in zip(Output._fields, fields[1:]) if not field] if complete else []
            problem = f"no {missing[0]}" if missing else f"expected Output, {', '.join(Output._fields)}"
        else:
            problem = "neither SrcNode nor Output"
        self._skip(number, f"{MALFORMED}: {problem}", line)

    def close(self) -> None:
        if self._name is None:
            return
        self.nodes.append((self._name, tuple(self._outputs)))
        if self._seen != self._expected:
            problem = f"{MISCOUNTED}: {self._expected} outputs announced, {self._seen} found"
            self._skip(self._line, problem, f"{_NODE}{self._name} {self._expected}")
        elif not self._expected:
            self._skip(self._line, NO_OUTPUTS, f"{_NODE}{self._name} 0")
        self._name, self._outputs, self._seen = None, [], 0

    def _skip(self, number: int, problem: str, line: str) -> None:
        self.skipped.append(Skipped(number, problem, line[:_SHOWN_CHARACTERS]))


def write(path: str | os.PathLike[str], trace: Trace) -> None:
    """Writes a file for `read_trace`; OutputError if it cannot be written."""
    atomic.write_text(path, "".join(f"{line}\n" for node in trace.nodes for line in _lines(*node)))


def _lines(name: str, outputs: Sequence[Output]) -> Iterator[str]:
    yield f"{_NODE}{_word(name)} {len(outputs)}"
    for slot, requested, allocated, allocator, time in outputs:
        yield f"{_OUTPUT}{slot} {requested} {allocated} {_word(allocator) or UNKNOWN_ALLOCATOR} {time}"


def _word(name: str) -> str:
    return "_".join(name.split())


def from_run_metadata(metadata: Any) -> Trace:
    """Returns the outputs recorded in the `RunMetadata` of a traced step, ordered by the start of their operations."""
    # A GPU's streams list their kernels once more.
    devices = (device for device in metadata.step_stats.dev_stats if "/stream:" not in device.device)
    nodes = sorted((stats for device in devices for stats in device.node_stats), key=lambda stats: stats.all_start_micros)
    return Trace(tuple((n.node_name, tuple(_output(output, n.all_start_micros) for output in n.output)) for n in nodes))


def _output(output: Any, time: int) -> Output:
    memory = output.tensor_description.allocation_description
    return Output(output.slot, memory.requested_bytes, memory.allocated_bytes, memory.allocator_name or UNKNOWN_ALLOCATOR, time)
