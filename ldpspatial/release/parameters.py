"""Parameters of releases as text: ``sparse-emd:keep=200`` is `SparseEmd(keep=200)`.

A parameter is a field of a release that holds a number, a text or a truth value; those of its
cohort count as its own. What a label tells of a release is written in the same way, by the names
that were asked for, so what stands in a table can be asked for again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from ldpspatial.errors import InputError
from ldpspatial.validate import shown

Kind = TypeVar("Kind")

# What papers and commands call a field; a release that has a field of such a name means that one.
# The same letter is another field in another paper: no release has both.
ALSO = (
    ("c", "calibration"),
    ("b", "expansion"),
    ("b", "radius"),
    ("w", "keep"),
    ("nodes", "keep"),
    ("estimator", "rule"),
)
_RULES = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Parameter:
    """What can be set by name.

    Attributes
    ----------
    name : str
    value : number, text, bool or None
        As the release has it.
    owner : str
        Field that holds it; empty where it is the release's own.
    kinds : tuple of type
        Of bool, int, float and str.
    choices : tuple of str
        Texts that are allowed where not every text is.
    may_be_none : bool
    """

    name: str
    value: object
    owner: str
    kinds: tuple[type, ...]
    choices: tuple[str, ...]
    may_be_none: bool

    @property
    def rule(self) -> str:
        """What it has to be, in words."""
        some = [*self.choices, *(_RULES[kind] for kind in self.kinds)]
        return " or ".join([*some, "none"] if self.may_be_none else some)

    def fits(self, value: object) -> bool:
        """Tell whether a value is of a kind that it can hold; which values, the release knows."""
        if value is None:
            return self.may_be_none
        if isinstance(value, str):
            return str in self.kinds or value in self.choices
        if isinstance(value, int) and not isinstance(value, bool):
            return int in self.kinds or float in self.kinds
        return type(value) in self.kinds

    def taken(self, value: object) -> object:
        """Return a value as the field holds it: 1 of a field of floats is 1.0."""
        if not self.fits(value):
            raise InputError(f"{self.name} must be {self.rule}, got {shown(value)}")
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return float(value) if is_whole and int not in self.kinds else value  # type: ignore[arg-type]

    def read(self, text: str) -> object:
        """Return the value that a text means."""
        if text in self.choices:
            return text
        known = {"true": True, "false": False, "none": None}
        if text in known and self.fits(known[text]):
            return known[text]
        for kind in (int, float):
            try:
                number = kind(text)
            except ValueError:
                continue
            if self.fits(number):
                return self.taken(number)
        return self.taken(text)

    def written(self, name: str | None = None) -> str:
        """Return the parameter as it is written, ``keep=200``, by its own name or another."""
        value = self.value
        called = name or self.name
        if isinstance(value, (bool, NoneType)):
            return f"{called}={str(value).lower()}"
        if isinstance(value, float) and float(f"{value:g}") == value:
            return f"{called}={value:g}"
        return f"{called}={value}"


def parameters(release: object) -> dict[str, Parameter]:
    """Return what can be set of a release, by name.

    Examples
    --------
    >>> from ldpspatial.release.central import SparseEmd
    >>> {name: each.value for name, each in parameters(SparseEmd(keep=200)).items()}
    {'keep': 200, 'decay': 0.7071067811865475}
    """
    found: dict[str, Parameter] = {}
    for parameter in _simple(release, ""):
        found.setdefault(parameter.name, parameter)
    for field in _given(release):
        held = getattr(release, field.name)
        if field.name not in found and is_dataclass(held) and not isinstance(held, type):
            for parameter in _simple(held, field.name):
                found.setdefault(parameter.name, parameter)
    return found


def with_parameters(release: Kind, name: str, values: Iterable[tuple[str, object]]) -> Kind:
    """Return a release with other values of some parameters.

    Parameters
    ----------
    release : Release
    name : str
        What messages call it.
    values : pairs of name and value

    Raises
    ------
    InputError
        It has no such parameter, one is given twice, or a value breaks its rule.
    """
    known = parameters(release)
    new: dict[str, dict[str, object]] = {}
    given: dict[str, str] = {}  # by field, what it was asked for by
    try:
        for asked, value in values:
            field = _field(asked, known)
            if field in given:
                raise InputError(f"{field} must be given once, got it twice")
            given[field] = asked
            parameter = known[field]
            taken = (
                parameter.read(value.text) if isinstance(value, Text) else parameter.taken(value)
            )
            new.setdefault(parameter.owner, {})[field] = taken
        own = new.pop("", {})
        inner = {owner: replace(getattr(release, owner), **some) for owner, some in new.items()}
        return replace(release, **own, **inner)  # type: ignore[type-var]
    except InputError as error:
        told = [
            f" ({asked} stands for {field})"
            for field, asked in given.items()
            if asked != field and str(error).startswith(f"{field} ")
        ]
        raise InputError(f"release {name}: {error}{''.join(told)}") from None


@dataclass(frozen=True)
class Text:
    """A value as it was written, to be read by the parameter that it is for."""

    text: str


def split(text: str) -> tuple[str, list[tuple[str, Text]]]:
    """Return name and parameters of ``name:parameter=value,parameter=value``.

    The name may have a colon of its own (``module:Name``), and so may a value.

    Examples
    --------
    >>> split("module:Name:rule=other:Rule,width=3")
    ('module:Name', [('rule', Text(text='other:Rule')), ('width', Text(text='3'))])
    """
    before, equals, _ = text.partition("=")
    if not equals:
        return text, []
    name, colon, _ = before.rpartition(":")
    if not colon:
        raise InputError(f"releases must be written name:parameter=value, got {text!r}")
    pairs = [part.partition("=") for part in text[len(name) + 1 :].split(",")]
    for parameter, equals, _ in pairs:
        if not equals:
            raise InputError(f"release {name}: parameters must be name=value, got {parameter!r}")
    return name, [(parameter.strip(), Text(value.strip())) for parameter, _, value in pairs]


def label_of(
    release: object, name: str | None = None, usual: object = None, asked: Iterable[str] = ()
) -> str:
    """Return what tables call a release: its name, and the parameters that are not the usual ones.

    Parameters
    ----------
    release : Release
        It may have a ``label`` of its own, which counts where no name is given.
    name : str, optional
        What it was asked for by.
    usual : Release, optional
        What that name alone means; by default the release with the defaults of its class.
    asked : iterable of str, optional
        What parameters were called by who set them: the label calls them so, too.

    Examples
    --------
    >>> from ldpspatial.release.central import SparseEmd
    >>> label_of(SparseEmd()), label_of(SparseEmd(keep=200))
    ('sparse-emd', 'sparse-emd:keep=200')
    >>> label_of(SparseEmd(keep=200), asked=["w"])
    'sparse-emd:w=200'
    """
    own = getattr(release, "label", None)
    if name is None and isinstance(own, str):
        return own
    name = name or str(getattr(release, "name", type(release).__name__))
    if not is_dataclass(release):
        return name
    held = {field.name: _default(field) for field in fields(release)}
    if usual is not None:
        held = {field: getattr(usual, field) for field in held}
    known = parameters(release)
    typed = {_field(each, known): each for each in asked}
    told = []
    for parameter in known.values():
        owner = held.get(parameter.owner)
        before = getattr(owner, parameter.name, MISSING) if owner else held[parameter.name]
        if parameter.value != before:
            told.append(parameter.written(typed.get(parameter.name)))
    return f"{name}:{','.join(told)}" if told else name


def described(release: object) -> str:
    """Return all parameters of a release with their values, and what else they are called."""
    known = parameters(release)
    short = _short(known)
    told = []
    for name, parameter in known.items():
        told.append(parameter.written() + (f" (or {short[name]}=)" if name in short else ""))
    return ", ".join(told)


def _field(asked: str, known: Mapping[str, Parameter]) -> str:
    meant = [asked, *(field for each, field in ALSO if each == asked)]
    for field in meant:
        if field in known:
            return field
    if not known:
        raise InputError(f"it has no parameters, got {shown(asked)}")
    short = _short(known)
    names = (f"{name} (or {short[name]})" if name in short else name for name in known)
    raise InputError(f"parameters must be of {', '.join(names)}, got {shown(asked)}")


def _short(known: Mapping[str, Parameter]) -> dict[str, str]:
    """Return by parameter what it may be called as well."""
    return {field: each for each, field in reversed(ALSO) if each not in known and field in known}


def _given(holder: object) -> Iterable[Field[Any]]:
    return (field for field in fields(holder) if field.init)  # type: ignore[arg-type]


def _default(field: Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _simple(holder: object, owner: str) -> Iterable[Parameter]:
    """Yield the fields of a dataclass that hold a number, a text or a truth value."""
    try:
        hints = get_type_hints(type(holder))
    except (NameError, TypeError):  # of another package, with names that are not there
        hints = {}
    for field in _given(holder):
        value = getattr(holder, field.name)
        options = _options(hints.get(field.name, type(value)))
        kinds = tuple(kind for kind in _RULES if kind in options)
        choices = tuple(each for each in options if isinstance(each, str))
        may_be_none = NoneType in options
        if len(kinds) + len(choices) + may_be_none == len(options) and (kinds or choices):
            yield Parameter(field.name, value, owner, kinds, choices, may_be_none)


def _options(hint: object) -> tuple[object, ...]:
    """Return the types, and the texts of a Literal, that a hint allows."""
    if get_origin(hint) in (Union, UnionType):
        return tuple(option for part in get_args(hint) for option in _options(part))
    if get_origin(hint) is Literal:
        return get_args(hint)
    return (hint,)
