"""How a JSON document is written: in the ways that a strict reader takes, and in those it does not.

:func:`written` varies what does not matter (white space, order, escapes). :func:`miswritten` makes
one slip in a text; most slips must be refused, and some only change what the document says.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from client_sdk.conformance.dice import Dice

Source = str | bytes

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d+|[{}\[\],:]|\s+|[a-zA-Z]+')
STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
WHOLE = re.compile(r'(?<![\w"])-?\d+(?!\w)')  # not the digits of a digest
GAPS = ("", "", "", " ", "\n", "\t", "\r", " \n  ")

# Limits of fields and of number types, each also tried one below and one above.
LIMITS = (
    0, 1, 2, 3, 60, 200, 1024, 4096, 8193, 10**6, 2 * 10**7, 1 << 20, 1 << 31, 1 << 32,
    85 * 10**7, 17 * 10**8, 18 * 10**8, 36 * 10**8, 10**15, 2 * 10**15, 1 << 52, 1 << 53,
    10**16, 10**17, 1 << 63, 1 << 64, 10**30, 10**400,
)  # fmt: skip

# Between tokens none of these may stand; RFC 8259 knows four white characters.
ODD_TOKENS = (
    "\u00a0", "\ufeff", "\x0b", "\x0c", "\x00", "\u2028", "\u0085", "/**/", "//\n", "#", ",", ":",
    "{", "}", "[", "]", "'", '"', "null", "x", "\\n",
)  # fmt: skip
ODD_VALUES = (
    "null", "true", "false", "NaN", "Infinity", "-Infinity", "nan", "undefined", '""', "[]", "{}",
    "[1]", '{"a":1}', "0.5", "-", "1e400", "0x10", "1_0", "\u0661", "\uff11", "1e-2", "-0", "00",
)  # fmt: skip
ODD_ESCAPES = (
    "\\v", "\\a", "\\'", "\\x41", "\\u12", "\\U00000041", "\\u{41}", "\\ud800", "\\udfff",
    "\\udc00\\ud800", "\\ud83d", "\\ud83d\\ud83d", "\\u0000", "\\u001f", "\\n", "\\b", "\\u007f",
    "\\u00a0", "\\u200b", "\\ufeff", "\\ud83d\\udeb2", "\\/", "\\u00e9", "\\u0041", "\\",
    "\n", "\t", "\x00", "\x1f", "\x7f", "\u0085", "\u2028", "\u200b", "\u00ad", "\ufffd",
)  # fmt: skip
ILL_FORMED = (
    b"\xff", b"\xc3", b"\x80", b"\xc0\xaf", b"\xc1\xbf", b"\xe0\x80\xaf", b"\xed\xa0\x80",
    b"\xed\xa0\xbd\xed\xba\xb2", b"\xf0\x80\x80\xaf", b"\xf4\x90\x80\x80", b"\xf0\x9f\x9a",
    b"\xf8\x88\x80\x80\x80", b"\xef\xbb\xbf",
)  # fmt: skip


def written(value: Any, dice: Dice) -> str:
    """Return the JSON text of a value, in a spelling that means the same."""
    style = dice.below(5)
    if style == 0:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if style == 1:
        return json.dumps(value)
    if style == 2:
        return json.dumps(value, indent=dice.below(3), ensure_ascii=False)
    gap = dice.pick(GAPS)
    return gap + _wild(value, dice, dice.pick(GAPS)) + gap


def _wild(value: Any, dice: Dice, gap: str) -> str:
    if isinstance(value, dict):
        inner = [
            f"{_wild_text(name, dice)}{gap}:{gap}{_wild(inside, dice, gap)}"
            for name, inside in dice.shuffled(list(value.items()))
        ]
        return "{" + gap + f"{gap},{gap}".join(inner) + gap + "}"
    if isinstance(value, list):
        return f"[{gap}" + f"{gap},".join(_wild(inside, dice, gap) for inside in value) + "]"
    if isinstance(value, str):
        return _wild_text(value, dice)
    if value == 0 and value is not False and dice.chance(30):
        return "-0"
    return json.dumps(value)


def _wild_text(text: str, dice: Dice) -> str:
    """Return a JSON string in which some characters are escaped without need."""
    if dice.chance(60):
        return json.dumps(text, ensure_ascii=dice.chance(50))
    return '"' + "".join(_wild_character(character, dice) for character in text) + '"'


def _wild_character(character: str, dice: Dice) -> str:
    if character == "/" and dice.chance(50):
        return "\\/"
    if dice.chance(15):
        units = character.encode("utf-16-be", "surrogatepass")
        codes = [units[i : i + 2].hex() for i in range(0, len(units), 2)]
        return "".join(f"\\u{code.upper() if dice.chance(50) else code}" for code in codes)
    return json.dumps(character, ensure_ascii=False)[1:-1]


def miswritten(text: str, dice: Dice) -> Source:
    """Return a text with one slip, as bytes where the slip is one of bytes."""
    return dice.pick(SLIPS)(text, dice)


def _truncated(text: str, dice: Dice) -> str:
    return text[: dice.below(len(text))] if dice.chance(50) else text[1 + dice.below(3) :]


def _character(text: str, dice: Dice) -> str:
    """Drop, double or replace a character."""
    at = dice.below(len(text))
    piece = dice.pick(("", text[at] * 2, dice.pick('0123456789"{}[]:,.-+eE \\/abcx\u00e9')))
    return text[:at] + piece + text[at + 1 :]


def _flipped(text: str, dice: Dice) -> bytes:
    data = bytearray(text.encode())
    data[dice.below(len(data))] ^= 1 << dice.below(8)
    return bytes(data)


def _ill_formed(text: str, dice: Dice) -> bytes:
    data = text.encode()
    at = dice.pick((0, dice.below(len(data) + 1), _inside_a_string(data, dice)))
    return data[:at] + dice.pick(ILL_FORMED) + data[at:]


def _inside_a_string(data: bytes, dice: Dice) -> int:
    quotes = [at for at, byte in enumerate(data) if byte == ord('"')]
    return dice.pick(quotes) + 1 if quotes else 0


def _odd_token(text: str, dice: Dice) -> str:
    pieces = TOKEN.findall(text)
    pieces.insert(dice.below(len(pieces) + 1), dice.pick(ODD_TOKENS))
    return "".join(pieces)


def _trailing_comma(text: str, dice: Dice) -> str:
    return _at_one(text, re.compile(r"[}\]]"), dice, lambda bracket: f",{bracket}")


def _followed(text: str, dice: Dice) -> str:
    before, after = dice.pick(
        (("", text), ("", "x"), ("", "{}"), ("", ","), ("[", "]"), ("\ufeff", ""), ("", "\x00"),
         ("", " \n"), ("", "\u00a0"), ('"', '"'), ("(", ")"))
    )  # fmt: skip
    return before + text + after


def _number(text: str, dice: Dice) -> str:
    """Write a number otherwise: another one, or the same in a way that is not allowed."""
    return _at_one(text, WHOLE, dice, lambda number: _other_number(number, dice))


def _other_number(number: str, dice: Dice) -> str:
    value = int(number)
    near = dice.pick(LIMITS) + dice.between(-1, 1)
    return dice.pick((
        str(value + 1), str(value - 1), str(value + dice.between(-9, 9)), str(-value), "0",
        str(2 * value), str(value // 2), str(value + (1 << 64)), str(value + (1 << 32)),
        str(near), str(near), str(-near), f"{number}.0", f"{number}.5", f"{number}e0",
        f"{number}E+0", f"{number}0e-1", f"0{number}", f"+{number}", f"{number}.", f".{number}",
        f'"{number}"', f"{number} 1", f"-{number}", f"[{number}]", dice.pick(ODD_VALUES),
    ))  # fmt: skip


def _value(text: str, dice: Dice) -> str:
    """Put an odd value, or one that is nested, where a number or a string stood."""
    pattern = dice.pick((STRING, WHOLE))
    depth = dice.pick((1, 2, 3, 4, 50, 500, 3000))
    brackets = dice.pick((("[", "]"), ('{"a":', "}"), ("[", "")))
    nested = brackets[0] * depth + "1" + brackets[1] * depth
    return _at_one(text, pattern, dice, lambda _: dice.pick((nested, dice.pick(ODD_VALUES))))


def _repeated(text: str, dice: Dice) -> str:
    """Repeat a field of one value: the same again, or another, or with its name escaped."""
    field = re.compile(r'"\w+"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)')

    def twice(pair: str) -> str:
        again = pair
        if dice.chance(40):
            at = 1 + dice.below(pair.index('"', 1) - 1)
            again = f"{pair[:at]}\\u{ord(pair[at]):04x}{pair[at + 1 :]}"
        if dice.chance(30):
            again = _number(again, dice)
        return dice.pick((f"{pair},{again}", f"{again},{pair}"))

    return _at_one(text, field, dice, twice)


def _renamed(text: str, dice: Dice) -> str:
    """Change the name of a field, or add a field."""
    name = re.compile(r'"\w+"(?=\s*:)')

    def other(quoted: str) -> str:
        return dice.pick((
            quoted.upper(), f'"{quoted[1:-1]} "', f'"{quoted[1:-2]}"', quoted[1:-1],
            f"'{quoted[1:-1]}'", f'"time":1,{quoted}', f'"":"",{quoted}', f'"\\u0000":1,{quoted}',
            f'"{quoted[1:-1]}\\u0000"', f'"__proto__":{{}},{quoted}', f'"constructor":1,{quoted}',
        ))  # fmt: skip

    return _at_one(text, name, dice, other)


def _odd_escape(text: str, dice: Dice) -> str:
    def into(quoted: str) -> str:
        at = 1 + dice.below(len(quoted) - 1)
        return quoted[:at] + dice.pick(ODD_ESCAPES) + quoted[at:]

    return _at_one(text, STRING, dice, into)


def _swapped(text: str, dice: Dice) -> str:
    """Let two numbers, or two strings, change places."""
    pattern = dice.pick((STRING, WHOLE))
    found = list(pattern.finditer(text))
    if len(found) < 2:
        return text
    first = dice.below(len(found) - 1)
    a = found[first]
    b = found[dice.between(first + 1, len(found) - 1)]
    between = text[a.end() : b.start()]
    return text[: a.start()] + b.group() + between + a.group() + text[b.end() :]


def _at_one(text: str, pattern: re.Pattern[str], dice: Dice, change: Callable[[str], str]) -> str:
    """Change one match of a pattern, if there is one."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    match = dice.pick(found)
    return text[: match.start()] + change(match.group()) + text[match.end() :]


SLIPS: tuple[Callable[[str, Dice], Source], ...] = (
    _truncated, _character, _character, _flipped, _ill_formed, _odd_token, _trailing_comma,
    _followed, _number, _number, _number, _value, _repeated, _renamed, _odd_escape, _swapped,
)  # fmt: skip
