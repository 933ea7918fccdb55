"""Writers of the two Python modules: constants and codes in both, records for the host, layouts for the RTL."""

import textwrap
from collections.abc import Iterator

from .model import Enumeration, Instance, Kind, Map, Register

__all__ = ["write_host", "write_rtl"]

NOTICE = "Generated from `rtl/cuelight.rdl` by `make regs`; do not edit."


def write_host(regs: Map) -> str:
    """`host/cuelight/regmap.py`: registers with fields are frozen dataclasses with `pack` and `unpack`."""
    head = [
        f'"""Registers, memory layouts and codes. {NOTICE}',
        "",
        *_CONVENTIONS,
        "",
        "A class named after a type and one of its registers holds the register's fields, reset values as defaults.",
        '"""',
        "",
        "import enum",
        "from dataclasses import dataclass",
        "from typing import Self",
    ]
    helper = [
        "",
        "",
        "def _place(name: str, value: int, low: int, width: int) -> int:",
        "    if not 0 <= value < 1 << width:",
        '        raise ValueError(f"{name} is {width} bits wide and cannot hold {value}")',
        "    return value << low",
    ]
    records = [line for kind, register in _structured(regs) for line in _host_record(kind, register)]
    return "\n".join([*head, *_constants(regs), *helper, *records]) + "\n"


def write_rtl(regs: Map) -> str:
    """`rtl/cuelight_rtl/regmap.py`: registers with fields are Amaranth structs as wide as the register."""
    head = [
        f'"""Registers, memory layouts and codes. {NOTICE}',
        "",
        *_CONVENTIONS,
        "",
        "A struct named after a type and one of its registers has the register's fields in place.",
        '"""',
        "",
        "import enum",
        "",
        "from amaranth.hdl import unsigned",
        "from amaranth.lib import data",
    ]
    structs = [line for kind, register in _structured(regs) for line in _rtl_struct(kind, register)]
    return "\n".join([*head, *_constants(regs), *structs]) + "\n"


_ENUMERATIONS = {
    "CommitKind": "What an atomic step did, and its fields on the commit port and in the event trace.",
    "FallCause": "Why a lane fell from PUSH or PROBING back to POLL.",
    "PushCommand": "What the host wants a lane's mode to be.",
    "PushMode": "How a lane's dispatches are delivered.",
    "RejectReason": "Why a command was refused.",
    "RetireReason": "Why a request has retired.",
}
_CONVENTIONS = [
    "Top-level constants are offsets in BAR0. A class named after a type has the offsets within it and its `SIZE`,",
    "all in bytes; arrays have `_STRIDE` and, where it is fixed, `_COUNT` beside them; registers that don't reset to 0",
    "have `_RESET`.",
]


def _constants(regs: Map) -> Iterator[str]:
    for enumeration in regs.enumerations:
        yield from _enumeration(enumeration)
    yield from ("", "")
    for instance in regs.top.members:
        yield from _offsets(instance, indent="")
        if isinstance(instance.content, Kind) and instance.content.anonymous:
            for inner in instance.content.members:
                yield from _offsets(inner, indent="", prefix=f"{instance.name}_")
    for kind in regs.kinds:
        if not kind.anonymous:
            yield from ("", "", f"class {_camel(kind.name)}:", f'    """{kind.title}."""', "")
            for instance in kind.members:
                yield from _offsets(instance, indent="    ")
            yield f"    SIZE = 0x{kind.size:04X}"


def _enumeration(enumeration: Enumeration) -> Iterator[str]:
    name = _camel(enumeration.name)
    yield from ("", "", f"class {name}(enum.IntEnum):", f'    """{_ENUMERATIONS[name]}"""', "")
    for index, (member, value, description) in enumerate(enumeration.members):
        if index:
            yield ""
        yield f"    {member} = {value}"
        yield from _docstring(description)


def _offsets(instance: Instance, indent: str, prefix: str = "") -> Iterator[str]:
    name = prefix + instance.name
    yield f"{indent}{name} = 0x{instance.offset:04X}"
    if instance.stride:
        yield f"{indent}{name}_STRIDE = 0x{instance.stride:04X}"
    if instance.count:
        yield f"{indent}{name}_COUNT = {instance.count}"
    if isinstance(instance.content, Register) and instance.content.reset:
        yield f"{indent}{name}_RESET = {_number(instance.content.reset)}"


def _structured(regs: Map) -> Iterator[tuple[Kind, Register]]:
    for kind in regs.kinds:
        for instance in kind.members:
            if isinstance(instance.content, Register) and instance.content.structured:
                yield kind, instance.content


def _host_record(kind: Kind, register: Register) -> Iterator[str]:
    yield from ("", "", "@dataclass(frozen=True, slots=True)", f"class {_camel(kind.name)}{_camel(register.name)}:")
    yield from _docstring(" ".join(filter(None, (f"{register.title}.", register.text))))
    yield ""
    for field in register.fields:
        yield f"    {field.name}: int = {_number(field.reset)}"
        if field.text:
            yield from _docstring(field.text)
    reads = [f"{_shifted('value', field.low)} & 0x{(1 << field.width) - 1:X}" for field in register.fields]
    writes = [f'_place("{field.name}", self.{field.name}, {field.low}, {field.width})' for field in register.fields]
    yield from ("", "    @classmethod", "    def unpack(cls, value: int) -> Self:")
    yield from ("        return cls(", *(f"            {read}," for read in reads), "        )")
    yield from ("", "    def pack(self) -> int:")
    if len(writes) == 1:
        yield f"        return {writes[0]}"
    else:
        yield from ("        return (", f"            {writes[0]}")
        yield from (*(f"            | {write}" for write in writes[1:]), "        )")


def _rtl_struct(kind: Kind, register: Register) -> Iterator[str]:
    yield from ("", "", f"class {_camel(kind.name)}{_camel(register.name)}(data.Struct):")
    yield from _docstring(" ".join(filter(None, (f"{register.title}.", register.text))))
    yield ""
    position = 0
    for field in register.fields:
        if field.low > position:
            yield f"    _{position}: unsigned({field.low - position})"
        yield f"    {field.name}: unsigned({field.width})"
        position = field.low + field.width
    if position < register.width:
        yield f"    _{position}: unsigned({register.width - position})"


def _docstring(text: str) -> Iterator[str]:
    yield from textwrap.wrap(f'"""{text}"""', 120, initial_indent="    ", subsequent_indent="    ")


def _number(value: int) -> str:
    return f"0x{value:X}" if value > 9 else f"{value}"


def _shifted(value: str, low: int) -> str:
    return f"{value} >> {low}" if low else value


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))
