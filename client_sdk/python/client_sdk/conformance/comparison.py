"""Another implementation on the same requests, and where it answers differently."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any, cast

from client_sdk.conformance.answers import answer

Json = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """One request that the two answer differently.

    Attributes
    ----------
    request : str
        The line, as it was sent.
    ours : dict
        What this client answers.
    theirs : str
        The line that the other one answers; empty where it has stopped.
    """

    request: str
    ours: Json
    theirs: str


@dataclass
class Comparison:
    """What a comparison has found so far: a trace by operation, and the first differences."""

    asked: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    differing: Counter[str] = field(default_factory=Counter)
    first: list[Difference] = field(default_factory=list)
    stopped: bool = False

    @property
    def agrees(self) -> bool:
        """Tell whether all answers were the same."""
        return not self.differing and not self.stopped


def compare(
    requests: Iterable[str],
    theirs: Iterable[str],
    shown: int = 5,
    progress: Callable[[Comparison], None] | None = None,
) -> Comparison:
    """Hold another implementation's answers to this client's.

    Answers agree where all their fields do, but for ``error``, which is for people.

    Parameters
    ----------
    requests, theirs : iterables of str
        Lines: what was asked, and what the other one answered, in the same order.
    shown : int
        How many differences are kept; all are counted.
    progress : function, optional
        Called with the comparison so far, after every request.
    """
    found = Comparison()
    for request, line in zip_longest(requests, theirs):
        if request is None or line is None:  # it has stopped, or says more than it was asked
            found.stopped = True
            ours = answer(request) if request else {}
            found.first.append(Difference(request or "", ours, (line or "").strip()))
            break
        ours = answer(request)
        name = json.loads(request).get("op", "")
        found.asked[name] += 1
        found.accepted[name] += bool(ours["ok"])
        if _content(line) != _content(json.dumps(ours)):
            found.differing[name] += 1
            if len(found.first) < shown:
                found.first.append(Difference(request, ours, line.strip()))
        if progress is not None:
            progress(found)
    return found


def _content(line: str) -> str | None:
    """Return an answer without its error in one spelling; None where it is not an answer."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    content.pop("error", None)
    return json.dumps(content, sort_keys=True)


@contextmanager
def answers_of(command: list[str], requests: Iterable[str]) -> Iterator[tuple[Any, Any]]:
    """Run a command and yield the requests that it is given and the lines that it answers.

    Both are iterators; read them in step. Requests are written by a thread, so that the command
    may answer late. It must end when its input does; when the block ends, it is ended.
    """
    with subprocess.Popen(  # noqa: S603 (the command is the caller's own)
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
        errors="backslashreplace",
    ) as process:  # fmt: skip
        asked: SimpleQueue[str | None] = SimpleQueue()
        writer = Thread(target=_write, args=(process.stdin, requests, asked), daemon=True)
        writer.start()
        try:
            yield iter(asked.get, None), iter(cast("IO[str]", process.stdout))
        finally:
            process.kill()
            writer.join()  # its pipe is broken now; two must not close it at once


def _write(stdin: IO[str], requests: Iterable[str], asked: "SimpleQueue[str | None]") -> None:
    try:
        with stdin:
            for request in requests:
                asked.put(request)
                stdin.write(f"{request}\n")
    except (BrokenPipeError, ValueError):  # the command has ended, or was
        pass
    finally:
        asked.put(None)
