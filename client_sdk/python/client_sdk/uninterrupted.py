"""Calls that no signal handler can end in the middle.

Python runs the handlers of signals in the main thread, between any two of its steps. What a handler
raises (a timeout, KeyboardInterrupt) would end a call of the ledger wherever it is, and whoever
keeps that error would keep the call's lock. So a call that is made in the main thread does its work
in a thread of its own. The error of a handler ends the waiting for it, and the work is done to its
end, or not at all where it had not begun.

What the app passes to be called (``draw``) runs in the thread that made the call, as the app
expects: it may hold locks, or refer to what belongs to its thread.
"""

import _thread
import contextvars
import errno
import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from client_sdk import forks
from client_sdk.errors import LedgerError

Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")

LOOK_SECONDS = 0.05  # between two looks whether the other thread is still there

_here = threading.local()


def uninterrupted(function: Function) -> Function:
    """Let a function do its work where no handler of a signal is run."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        # In a page (Emscripten) there are no threads, and no signals but the app's own.
        if sys.platform == "emscripten" or threading.get_ident() != threading.main_thread().ident:
            return function(*arguments, **named)
        # A new thread would end at once, or wait until this one has forked.
        if sys.is_finalizing() or forks.is_forking():
            return function(*arguments, **named)
        return _Work(functools.partial(function, *arguments, **named)).result()

    return call  # type: ignore[return-value]


def in_thread_of_caller(function: Callable[[], Value]) -> Value:
    """Call a function of the app in the thread that made the call of the ledger.

    Raises
    ------
    TimeoutError
        Nobody waits any more for the call; the function may have been called or not.
    Exception
        What the function raises.
    """
    work: _Work | None = getattr(_here, "work", None)
    return function() if work is None else work.ask(function)


def is_abandoned() -> bool:
    """Tell whether nobody waits any more for the work that this thread does."""
    work: _Work | None = getattr(_here, "work", None)
    return work is not None and not work.is_attended()


class _Outcome:
    """What a function returned or raised."""

    def __init__(self, function: Callable[[], Any]):
        self._value: Any = None
        self._error: BaseException | None = None
        try:
            self._value = function()
        except BaseException as error:
            self._error = error

    def get(self) -> Any:
        try:
            if self._error is not None:
                raise self._error
            return self._value
        finally:
            self._error = None  # or the error would refer to itself


class _Work:
    """One call, and what came of it.

    Locks and threads are those of the interpreter, which start and end in one step: those of
    ``threading`` are written in Python, and so can be interrupted themselves.
    """

    def __init__(self, function: Callable[[], Any]):
        self._function = function
        self._context = contextvars.copy_context()
        self._claim = _thread.allocate_lock()  # taken by whoever does the work, so once
        self._attended = _thread.allocate_lock()  # held as long as the caller waits
        self._told = _thread.allocate_lock()  # given back when the work asks or is done
        self._answered = _thread.allocate_lock()  # given back when the caller has answered
        self._told.acquire()
        self._answered.acquire()
        self._process = os.getpid()
        self._question: Callable[[], Any] | None = None
        self._answer: Any = None  # an _Outcome, once the caller has answered
        self._done: _Outcome | None = None

    def result(self) -> Any:
        """Have the work done, answer what it asks, and return or raise what came of it."""
        with self._attended:  # given back in one step, whatever a handler raises and whenever
            try:
                _thread.start_new_thread(self._run, ())
            except RuntimeError:  # no thread can start: there are too many, or Python is exiting
                if not self._claim.acquire(blocking=False):
                    raise  # of a handler, and the work has begun
                return self._function()
            while True:
                self._wait()
                if self._done is not None:
                    return self._done.get()
                if self._question is not None:
                    self._answer = _Outcome(self._question)
                    self._answered.release()

    def _wait(self) -> None:
        """Wait for the other thread; a child that was forked in the meantime has none."""
        while not self._told.acquire(timeout=LOOK_SECONDS):
            if os.getpid() != self._process:
                raise LedgerError(
                    "ledger: dropped by a fork: the call goes on in the process that began it, and "
                    "no report was given to this one"
                )

    def is_attended(self) -> bool:
        """Tell whether the caller still waits."""
        return self._attended.locked()

    def ask(self, question: Callable[[], Value]) -> Value:
        """Have something done by the caller, from within the work."""
        self._question = question
        self._told.release()
        while not self._answered.acquire(timeout=LOOK_SECONDS):
            if not self.is_attended():
                raise TimeoutError(errno.ETIMEDOUT, "locked")
        self._question = None
        answer: Value = self._answer.get()
        return answer

    def _run(self) -> None:
        if not self._claim.acquire(blocking=False):
            return
        _here.work = self
        self._done = _Outcome(functools.partial(self._context.run, self._function))
        if self._told.locked():  # or the caller has left a question unheard
            self._told.release()
