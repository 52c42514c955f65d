"""The command line: ``python -m client_sdk.conformance``."""

import argparse
import json
import os
import sys
from collections.abc import Callable

from client_sdk.conformance.answers import serve
from client_sdk.conformance.cases import cases
from client_sdk.conformance.comparison import Comparison, Difference, answers_of, compare

ABOUT = """\
Test an implementation in another language against this client.

Without a subcommand, requests on standard input are answered on standard
output, one JSON object a line each, in order. Each answer is flushed, so a
program can ask, wait and ask again.

  {"op": "collection", "text": TEXT}      -> {"ok": true, "digest": .., "canonical": ..}
      "hex" instead of "text" gives bytes; "digest" and "max_micro_epsilon"
      are what the device expects
  {"op": "series", "text": TEXT}          -> {"ok": true, "digest": .., "canonical": ..}
      likewise, of a series
  {"op": "window", "text": TEXT, "window": K}
                                          -> {"ok": true, "digest": .., "canonical": ..}
      the collection of window K of a series
  {"op": "windows", "windows": W, "answers": A, "entropy": HEX}
                                          -> {"ok": true, "windows": [..], "bytes": ..}
      which windows a device answers, ascending; null where the entropy does
      not suffice
  {"op": "report", "text": TEXT}          -> {"ok": true, "canonical": ..}
      "hex" likewise; "document" is the collection that it must belong to
  {"op": "body", "text": TEXT}            -> {"ok": true, "body": ..}
      what is sent of a report
  {"op": "cell", "grid": {..}, "at": [y, x]} -> {"ok": true, "cell": [r, c], "inside": ..}
      the grid object of a document; "NaN", "Infinity", "-Infinity" are texts
  {"op": "draw", "document": TEXT, "cell": [r, c], "entropy": HEX}
                                          -> {"ok": true, "output": [r, c], "bytes": ..}
      "output" is null where the entropy does not suffice
  {"op": "bound", "micro_epsilon": N}     -> {"ok": true, "bound": HEX}
  {"op": "label", "text": TEXT}           -> {"ok": true}
      "hex" likewise
  {"op": "event", "key": HEX, "digest": TEXT, "event": TEXT}
                                          -> {"ok": true, "name": HEX}
      under which name a ledger holds an event; the digest is any ASCII text but
      the empty one

What is refused, and what is not a request, is answered by {"ok": false,
"error": TEXT}. Error texts are for people and never compared. An "id" of a
request comes back in its answer.
"""

EXAMPLES = """\
examples:
  echo '{"op": "label", "text": "noon in town"}' | python -m client_sdk.conformance
  python -m client_sdk.conformance cases --count 1000 --seed 1 > cases.jsonl
  python -m client_sdk.conformance compare --count 100000 --seed 1 -- ./my-port conformance
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if options.command == "cases":
            for line in cases(options.count, options.seed):
                sys.stdout.write(f"{line}\n")
        elif options.command == "compare":
            return _compare(options.count, options.seed, options.show, options.port)
        else:
            serve(sys.stdin.buffer, sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough; nothing more is written on exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m client_sdk.conformance",
        description=ABOUT,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="SUBCOMMAND")
    making = commands.add_parser(
        "cases",
        help="write requests, made from good ones by a seed",
        description="Write requests, one a line. About six in ten must be accepted; the others "
        "are a step beside a good one. The same seed gives the same requests everywhere.",
    )
    comparing = commands.add_parser(
        "compare",
        help="run an implementation on these requests and compare its answers",
        description="Run a command that reads requests and writes answers as this program does, "
        "and compare every field of its answers but the error. Exit status 1 where they differ.",
        epilog="example: python -m client_sdk.conformance compare --count 100000 --seed 1 "
        "-- ./my-port conformance",
    )
    for command in (making, comparing):
        command.add_argument("--count", type=_count, default=10_000, help="requests (10000)")
        command.add_argument("--seed", type=int, default=1, help="which requests (1)")
    comparing.add_argument("--show", type=_count, default=5, help="differences shown (5)")
    comparing.add_argument(
        "port", nargs="+", metavar="COMMAND", help="the other implementation, after --"
    )
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _compare(count: int, seed: int, show: int, command: list[str]) -> int:
    try:
        with answers_of(command, cases(count, seed)) as (requests, theirs):
            found = compare(requests, theirs, show, _progress(count))
    except OSError as error:
        sys.stderr.write(f"{command[0]} does not run: {error}\n")
        return 2
    for difference in found.first:
        sys.stdout.write(_shown(difference))
    sys.stdout.write(_summary(found, seed))
    return 0 if found.agrees else 1


def _progress(count: int) -> Callable[[Comparison], None]:
    """Return what writes a line on standard error now and then, over itself on a terminal."""
    end = "\r" if sys.stderr.isatty() else "\n"
    every = max(count // (100 if end == "\r" else 4), 1)

    def report(found: Comparison) -> None:
        done = found.asked.total()
        if done % every == 0 or done == count:
            differing = found.differing.total()
            sys.stderr.write(f"{done:,} of {count:,} requests, {differing:,} differ{end}")
            if end == "\r" and done == count:
                sys.stderr.write("\n")
            sys.stderr.flush()

    return report


def _shown(difference: Difference) -> str:
    ours = json.dumps(difference.ours) if difference.ours else "(nothing was asked)"
    theirs = difference.theirs or "(no answer: it has stopped)"
    return f"request  {difference.request}\nours     {ours}\ntheirs   {theirs}\n\n"


def _summary(found: Comparison, seed: int) -> str:
    total = found.asked.total()
    accepted = found.accepted.total()
    lines = [
        f"{name:12} {found.asked[name]:8,} asked {found.accepted[name]:8,} accepted "
        f"{found.differing[name]:8,} differ"
        for name in sorted(found.asked)
    ]
    verdict = "All answers agree." if found.agrees else "The answers differ."
    if found.stopped:
        verdict += " The other implementation did not answer each request once."
    share = f"{accepted / total:.0%} accepted" if total else "none"
    return "\n".join([*lines, f"{total:,} requests of seed {seed}, {share}. {verdict}"]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
