"""What the standard library has as well, for the modules that a cell's process loads: a cell may be shorter than loading it.

``dataclasses`` compiles the methods of each class anew in every process and brings ``inspect``; with ``typing``, ``hashlib``,
``datetime``, ``socket`` and ``shutil`` it would take most of the time of a cell of a tenth of a second. To mypy all names
of the first part are those of the standard library.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from operator import attrgetter
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import IO as IO
    from typing import Any as Any
    from typing import ClassVar as ClassVar
    from typing import NoReturn as NoReturn
    from typing import Protocol as Protocol
else:
    # Words of annotations, which nobody reads while a program runs.
    Any = ClassVar = IO = NoReturn = Protocol = object

    class field:
        """What there is to say of a value of a class beside its default."""

        def __init__(self, *, default=..., default_factory=None, hash=True, repr=True):
            self.default, self.make, self.hash, self.repr = default, default_factory, hash, repr

    def dataclass(cls=None, *, frozen=False):
        """A class of named values, without inheritance. ``replace`` and the like of dataclasses take its objects too."""
        return (lambda definition: _with_methods(definition, frozen)) if cls is None else _with_methods(cls, frozen)

    def replace(value, **changes):
        """The same with some values changed."""
        return type(value)(**{**{name: getattr(value, name) for name in value.__match_args__}, **changes})

    def asdict(value):
        """Name -> value, with those inside taken apart and copied too."""
        return {name: _apart(getattr(value, name)) for name in value.__match_args__}

    def _apart(value):
        if isinstance(value, dict):
            return {key: _apart(member) for key, member in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(_apart, value))
        return asdict(value) if "__dataclass_fields__" in vars(type(value)) else value

    def _with_methods(cls, frozen):
        """The class with the methods of a dataclass, none of them compiled for it alone."""
        names = tuple(cls.__annotations__)
        kinds = {name: kind if isinstance(kind, field) else field(default=kind)
                 for name in names for kind in [cls.__dict__.get(name, ...)]}  # fmt: skip
        defaults = {name: kind.default for name, kind in kinds.items() if kind.default is not ...}
        makers = {name: kind.make for name, kind in kinds.items() if kind.make is not None}
        for name in makers:
            delattr(cls, name)
        for name, value in defaults.items():
            setattr(cls, name, value)
        shown = [name for name in names if kinds[name].repr]
        cls.__match_args__, cls.__dataclass_fields__ = names, _Fields(makers)
        cls.__init__ = _init(names, defaults, makers)
        cls.__repr__ = lambda self: f"{cls.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"
        values = attrgetter(*names)
        cls.__eq__ = lambda self, other: values(self) == values(other) if type(other) is cls else NotImplemented
        cls.__hash__ = None
        if frozen:
            hashed = attrgetter(*(name for name in names if kinds[name].hash))
            cls.__hash__ = lambda self: hash(hashed(self))
            cls.__setattr__ = cls.__delattr__ = _refuse
        return cls

    def _init(names, defaults, makers):
        known, count = frozenset(names), len(names)

        def __init__(self, *given, **named):
            values = {**defaults, **dict(zip(names, given, strict=False)), **named}
            for name, make in makers.items():
                if name not in values:
                    values[name] = make()
            if values.keys() != known or len(given) > count or not named.keys().isdisjoint(names[: len(given)]):
                raise TypeError(f"{type(self).__name__}() takes {', '.join(names)}, each once")
            self.__dict__.update(values)

        return __init__

    def _refuse(self, name, *_):
        raise AttributeError(f"{name} of {type(self).__name__} is not to be changed")

    class _Fields:
        """What dataclasses knows of a class, made when it first asks."""

        def __init__(self, makers):
            self.makers = makers

        def __get__(self, _, cls):
            import dataclasses

            values = {name: cls.__dict__[name] for name in cls.__annotations__ if name in cls.__dict__}
            values |= {name: dataclasses.field(default_factory=make) for name, make in self.makers.items()}
            twin = type(
                cls.__name__, (), {"__annotations__": cls.__annotations__, "__module__": cls.__module__, **values}
            )
            cls.__dataclass_fields__ = dataclasses.dataclass(twin).__dataclass_fields__
            return cls.__dataclass_fields__


def sha256(data: bytes) -> str:
    """SHA-256 as hexadecimal digits: by Python's own code where nobody has loaded OpenSSL's, which takes 3 ms."""
    if "hashlib" not in sys.modules:
        try:
            if sys.version_info >= (3, 12):
                from _sha2 import sha256 as digest  # type: ignore[import-not-found]
            else:
                from _sha256 import sha256 as digest  # type: ignore[import-not-found]
            return str(digest(data).hexdigest())
        except ImportError:
            pass  # a Python that was built without it
    import hashlib

    return hashlib.sha256(data).hexdigest()


def now() -> str:
    """Local time with its distance from UTC, to a millisecond: 2026-05-04T10:11:12.345+02:00."""
    seconds = time.time()
    local = time.localtime(seconds)
    zone = time.strftime("%z", local)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', local)}.{int(seconds % 1 * 1000):03d}{zone[:3]}:{zone[3:5]}"


def host_name() -> str:
    """As ``socket.gethostname`` tells it."""
    return os.uname().nodename


def new_folder(place: Path, prefix: str) -> Path:
    """A folder below ``place`` with a name that nobody can guess, for this user alone. Errors: OSError."""
    while True:
        path = place.absolute() / (prefix + os.urandom(4).hex())
        try:
            path.mkdir(0o700)
        except FileExistsError:
            continue
        return path


def remove_tree(top: Path) -> None:
    """Remove a folder with all in it, as far as that is allowed, by descriptors: links are removed, never followed."""
    with suppress(OSError):
        for _, folders, names, descriptor in os.fwalk(top, topdown=False):
            for name in (*folders, *names):
                _remove(name, descriptor)
        top.rmdir()


def _remove(name: str, folder: int) -> None:
    with suppress(OSError):
        try:
            os.rmdir(name, dir_fd=folder)
        except NotADirectoryError:  # a file, or a link to a folder
            os.unlink(name, dir_fd=folder)
