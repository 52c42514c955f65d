"""Calls that no signal handler can end in the middle.

Python runs the handlers of signals in the main thread, between any two of its steps. What a handler
raises (a timeout, KeyboardInterrupt) would end a call of the ledger wherever it is, and whoever
keeps that error would keep the call's lock. So a call that is made in the main thread does its work
in a thread of its own. The error of a handler ends the waiting for it, and the work is done to its
end, or not at all where it had not begun.

What the app passes to be called (``draw``) runs in the thread that made the call, as the app
expects: it may hold locks, or refer to what belongs to its thread. A handler that makes a call
itself, and waits for it, answers for the call that it came in between, too.
"""

import _thread
import contextvars
import functools
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from client_sdk import forks
from client_sdk.errors import LedgerBusyError, LedgerError, LedgerUnavailableError

Function = TypeVar("Function", bound=Callable[..., Any])
Value = TypeVar("Value")

LOOK_SECONDS = 0.05  # between two looks whether the other thread is still there
BEGIN_SECONDS = 2.0  # a thread that has done nothing by then found no memory to begin


class _Here(threading.local):
    """What this thread does for, or asks of, others."""

    def __init__(self) -> None:
        self.work: _Work | None = None  # for whom it does the work
        self.attending: list[_Work] = []  # what it waits for; handlers of signals put one on top


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


def in_thread_of_caller(question: Callable[[], Value], subject: object) -> Value:
    """Call a function of the app in the thread that made the call of the ledger.

    Parameters
    ----------
    question : callable
        What to call; it takes nothing.
    subject : object
        What the call has locked: :func:`is_answering` knows it while the question is answered.

    Raises
    ------
    LedgerBusyError
        Nobody waits any more for the call; the function may have been called or not.
    Exception
        What the function raises.
    """
    if _here.work is None or _here.work.has_asked():
        return question()
    return _here.work.ask(question, subject)


def is_answering(subject: object) -> bool:
    """Tell whether the call was made, in another thread, by code that is asked about a subject.

    It would wait for what waits for it.
    """
    return _here.work is not None and _here.work.was_made_answering(subject)


def is_abandoned() -> bool:
    """Tell whether nobody waits any more for the work that this thread does."""
    return _here.work is not None and not _here.work.is_attended()


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
    """One call, what it asks of its caller, once at most, and what came of it.

    Locks and threads are those of the interpreter, which start and end in one step: those of
    ``threading`` are written in Python, and so can be interrupted themselves. That somebody waits
    or has something to answer is never noted by two steps of the main thread, of which a handler
    could prevent the second.
    """

    def __init__(self, function: Callable[[], Any]):
        self._function = function
        self._context = contextvars.copy_context()
        self._claim = _thread.allocate_lock()  # taken by whoever does the work, so once
        self._attended = _thread.allocate_lock()  # held as long as the caller waits
        self._told = _thread.allocate_lock()  # given back to wake the caller
        self._answered = _thread.allocate_lock()  # given back to wake the work
        self._told.acquire()
        self._answered.acquire()
        self._process = os.getpid()
        self._outer = list(_here.attending)  # calls that this one, of a handler, came in between
        self._question: Callable[[], Any] | None = None
        self._subject: object = None
        self._open = [True]  # taken in one step by whoever answers the question, so once
        self._answer: _Outcome | None = None
        self._done: _Outcome | None = None
        self._is_over = False

    # In the thread of the caller

    def result(self) -> Any:
        """Have the work done, answer what it asks, and return or raise what came of it."""
        began = time.monotonic()
        with self._attended:  # given back in one step, whatever a handler raises and whenever
            try:
                _here.attending.append(self)
                if not self._start():
                    return self._function()
                while not self._is_over:
                    if not self._told.acquire(timeout=LOOK_SECONDS):
                        self._check(began)
                    if self._is_answering():  # and yet it is here: a handler ended the answer
                        self._reply(_Outcome(_refuse_to_answer))
                    for work in _here.attending:
                        work.serve()
            finally:
                while _here.attending and _here.attending.pop() is not self:
                    pass  # of calls that a handler ended
        if self._done is None:
            raise MemoryError("the ledger's call found no memory; a report may have been counted")
        return self._done.get()

    def _start(self) -> bool:
        """Start the thread, or tell that Python is ending and that none can start."""
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError as error:
            if "can't create new thread" in str(error):  # at interpreter shutdown
                return False
            if "can't start new thread" in str(error):
                raise _no_thread() from None
            raise  # of a handler
        return True

    def _check(self, began: float) -> None:
        """Check that there is another thread that works."""
        if os.getpid() != self._process:
            raise LedgerError(
                "ledger: dropped by a fork: the call goes on in the process that began it, and "
                "no report was given to this one"
            )
        if time.monotonic() - began > BEGIN_SECONDS and self._claim.acquire(blocking=False):
            raise _no_thread()

    def serve(self) -> None:
        """Answer what is asked, if anything is and nobody does so."""
        if self._question is None or os.getpid() != self._process:
            return
        try:
            self._open.pop()
        except IndexError:
            return
        self._reply(_Outcome(self._question))

    def _reply(self, answer: _Outcome) -> None:
        self._answer = answer
        if self._answered.locked():
            self._answered.release()

    # In the thread of the work

    def _run(self) -> None:
        if not self._claim.acquire(blocking=False):
            return
        try:
            _here.work = self
            self._done = _Outcome(functools.partial(self._context.run, self._function))
        finally:
            try:
                forks.end()
            finally:
                self._is_over = True
                self._wake()

    def ask(self, question: Callable[[], Value], subject: object) -> Value:
        """Have something done by the caller, from within the work."""
        self._subject = subject
        self._question = question
        self._wake()
        while self._answer is None:
            self._answered.acquire(timeout=LOOK_SECONDS)
            if not self.is_attended():
                raise LedgerBusyError("ledger: the call was given up; no report was given")
        answer: Value = self._answer.get()
        return answer

    def has_asked(self) -> bool:
        """Tell whether the one question was asked; further ones are of code that came between."""
        return self._question is not None

    def _wake(self) -> None:
        if self._told.locked():
            self._told.release()

    def is_attended(self) -> bool:
        """Tell whether the caller still waits."""
        return self._attended.locked()

    def was_made_answering(self, subject: object) -> bool:
        """Tell whether the caller made this call while it answered a question on a subject."""
        return any(work._subject == subject and work._is_answering() for work in self._outer)

    def _is_answering(self) -> bool:
        return not self._open and self._answer is None


_here = _Here()


def _no_thread() -> LedgerUnavailableError:
    return LedgerUnavailableError(
        "ledger: no thread can start: end other threads, or free memory, and try again; "
        "no report was given"
    )


def _refuse_to_answer() -> None:
    raise LedgerBusyError("ledger: interrupted while it drew a report; no report was given")
