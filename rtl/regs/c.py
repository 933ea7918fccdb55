"""Writer of the header for C, C++ and CUDA."""

from collections.abc import Iterator

from .model import Instance, Kind, Map, Register

__all__ = ["write_header"]


def write_header(regs: Map) -> str:
    """`kernels/include/cuelight_regs.h`: macros and enumerations only."""
    lines = [
        "/* Cuelight: registers, memory layouts and codes.",
        " * Generated from rtl/cuelight.rdl by `make regs`; do not edit.",
        " *",
        " * CUELIGHT_<INSTANCE> is an offset in BAR0, CUELIGHT_<TYPE>_<MEMBER> an offset within a type and",
        " * CUELIGHT_<TYPE>_SIZE its size, all in bytes; arrays have _STRIDE and, where it is fixed, _COUNT.",
        " * CUELIGHT_<TYPE>_<REGISTER>_<FIELD> has _BIT (the lowest), _WIDTH and _MASK (in place).",
        " */",
        "#ifndef CUELIGHT_REGS_H",
        "#define CUELIGHT_REGS_H",
    ]
    for enumeration in regs.enumerations:
        prefix = f"CUELIGHT_{enumeration.name.upper()}"
        members = [f"    {prefix}_{name} = {value}" for name, value, _ in enumeration.members]
        lines += ["", f"enum cuelight_{enumeration.name} {{", ",\n".join(members), "};"]
    lines += ["", "/* Cuelight BAR0 */"]
    for instance in regs.top.members:
        lines += _offsets("CUELIGHT", instance)
        if isinstance(instance.content, Kind) and instance.content.anonymous:
            for inner in instance.content.members:
                lines += _offsets(f"CUELIGHT_{instance.name}", inner)
    for kind in regs.kinds:
        if not kind.anonymous:
            lines += ["", f"/* {kind.title} */", *_kind(kind)]
    lines += ["", "#endif", ""]
    _check_unique(lines)
    return "\n".join(lines)


def _kind(kind: Kind) -> Iterator[str]:
    prefix = f"CUELIGHT_{kind.name.upper()}"
    yield _define(f"{prefix}_SIZE", f"{kind.size:#06x}u")
    for instance in kind.members:
        yield from _offsets(prefix, instance)
        if isinstance(instance.content, Register) and instance.content.structured:
            yield from _fields(f"{prefix}_{instance.name}", instance.content)


def _offsets(prefix: str, instance: Instance) -> Iterator[str]:
    name = f"{prefix}_{instance.name}"
    yield _define(name, f"{instance.offset:#06x}u")
    if instance.stride:
        yield _define(f"{name}_STRIDE", f"{instance.stride:#06x}u")
    if instance.count:
        yield _define(f"{name}_COUNT", f"{instance.count}u")
    if isinstance(instance.content, Register) and instance.content.reset:
        yield _define(f"{name}_RESET", _literal(instance.content.reset, instance.content.width))


def _fields(prefix: str, register: Register) -> Iterator[str]:
    for field in register.fields:
        name = f"{prefix}_{field.name.upper()}"
        yield _define(f"{name}_BIT", f"{field.low}")
        yield _define(f"{name}_WIDTH", f"{field.width}")
        yield _define(f"{name}_MASK", _literal(field.mask, register.width))


def _literal(value: int, width: int) -> str:
    return f"0x{value:016x}ull" if width > 32 else f"0x{value:08x}u"


def _define(name: str, value: str) -> str:
    return f"#define {name:<47} {value}"


def _check_unique(lines: list[str]) -> None:
    names = [line.split()[1] for line in lines if line.startswith("#define")]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise ValueError(f"two things in the register map share a C name: {', '.join(sorted(repeated))}")
