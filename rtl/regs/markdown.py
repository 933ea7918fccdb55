"""Writer of the reference page."""

from collections.abc import Iterator

from .model import Instance, Kind, Map, Register

__all__ = ["write_reference"]

_ACCESS = {"r": "read", "w": "write", "rw": "read, write"}


def write_reference(regs: Map) -> str:
    """`docs/registers.md`: the map, then each type with its registers and fields, then the codes."""
    memory = [kind for kind in regs.kinds if kind.name in regs.memory_kinds]
    device = [kind for kind in regs.kinds if kind not in memory and not kind.anonymous]
    lines = [
        "# Registers and memory layouts",
        "",
        "Generated from [`rtl/cuelight.rdl`](../rtl/cuelight.rdl) by `make regs`; do not edit. What the registers do",
        "stands in [device.md](device.md). Offsets are in bytes, bit 0 is the lowest, everything is little endian.",
        "",
        "## BAR0",
        "",
        regs.top.text,
        "",
        "| offset | name | instances | type |",
        "|---|---|---|---|",
        *_instances(regs.top),
        "",
    ]
    for kind in device:
        lines += _kind(kind)
    lines += [
        "## Shared memory",
        "",
        "Layouts of the memory that the host and the lanes share; none of it is a register of the device.",
        "",
    ]
    for kind in memory:
        lines += _kind(kind)
    lines += ["## Codes", ""]
    for enumeration in regs.enumerations:
        lines += [f"### {enumeration.name.replace('_', ' ').capitalize()}", ""]
        lines += ["| code | name | meaning |", "|---|---|---|"]
        lines += [f"| {value} | `{name}` | {_cell(text)} |" for name, value, text in enumeration.members]
        lines += [""]
    return "\n".join(lines).rstrip() + "\n"


def _instances(top: Kind) -> Iterator[str]:
    for instance in top.members:
        content = instance.content
        assert isinstance(content, Kind)
        count = f"{instance.count}, every {instance.stride:#x}" if instance.count else ""
        if content.anonymous:
            (inner,) = content.members
            assert isinstance(inner.content, Kind)
            count = f"{count}, each of {inner.count}, every {inner.stride:#x}"
            content = inner.content
        yield f"| 0x{instance.offset:04X} | `{instance.name}` | {count} | {_link(content)} |"


def _kind(kind: Kind) -> Iterator[str]:
    yield from (f"### {kind.title}", "")
    if kind.text:
        yield from (kind.text, "")
    yield from ("| offset | name | bits | access | reset | meaning |", "|---|---|---|---|---|---|")
    for instance in kind.members:
        content = instance.content
        if isinstance(content, Kind):
            yield f"| {_offset(instance)} | `{instance.name}`{_count(instance)} | | | | {_link(content)} |"
        else:
            yield from _register(instance, content)
    yield ""


def _register(instance: Instance, register: Register) -> Iterator[str]:
    head = f"| {_offset(instance)} | `{instance.name}`{_count(instance)} | {register.width} |"
    meaning = _cell(" ".join(filter(None, (f"**{register.title}.**", register.text))))
    if register.structured:
        yield f"{head} | | {meaning} |"
        for field in register.fields:
            bits = f"{field.low + field.width - 1}:{field.low}" if field.width > 1 else f"{field.low}"
            text = field.text
            if field.encoding:
                code = field.encoding.replace("_", " ")
                text = " ".join(filter(None, (text, f"A [{code}](#{code.replace(' ', '-')}).")))
            reset = f"0x{field.reset:X}" if field.has_reset else ""
            yield f"| | `{field.name}` | {bits} | {_ACCESS[field.access]} | {reset} | {_cell(text)} |"
    else:
        (field,) = register.fields
        reset = f"0x{field.reset:X}" if field.has_reset else ""
        yield f"{head} {_ACCESS[field.access]} | {reset} | {_cell(' '.join(filter(None, (meaning, field.text))))} |"


def _offset(instance: Instance) -> str:
    return f"0x{instance.offset:02X}" + (f" + {instance.stride:#x} n" if instance.stride else "")


def _count(instance: Instance) -> str:
    if not instance.stride:
        return ""
    return f"[{instance.count}]" if instance.count else "[…]"


def _link(kind: Kind) -> str:
    return f"[{kind.title}](#{kind.title.lower().replace(' ', '-').replace(',', '')})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
