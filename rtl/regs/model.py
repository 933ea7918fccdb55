"""The register description as plain data, in the form that the writers need."""

from dataclasses import dataclass
from pathlib import Path

from systemrdl.compiler import RDLCompiler
from systemrdl.node import AddrmapNode, FieldNode, Node, RegfileNode, RegNode

__all__ = ["Enumeration", "Field", "Instance", "Kind", "Map", "Register", "compile_maps", "read_map"]


@dataclass(frozen=True, slots=True)
class Field:
    """Bits `low` … `low + width - 1` of a register. `access`: `r`, `w` or `rw`, as software sees it."""

    name: str
    low: int
    width: int
    reset: int
    has_reset: bool
    access: str
    text: str
    encoding: str | None

    @property
    def mask(self) -> int:
        """In place."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True, slots=True)
class Register:
    """A register, or a word of memory. `width` in bits."""

    name: str
    title: str
    text: str
    width: int
    fields: tuple[Field, ...]

    @property
    def reset(self) -> int:
        """All fields together."""
        return sum(field.reset << field.low for field in self.fields)

    @property
    def structured(self) -> bool:
        """Whether it is more than one field that fills it."""
        return len(self.fields) > 1 or self.fields[0].width < self.width


@dataclass(frozen=True, slots=True)
class Instance:
    """Something at `offset` (bytes) in its parent.

    `stride` (bytes) is 0 where it is no array, `count` also where it varies.
    """

    name: str
    offset: int
    count: int
    stride: int
    content: "Register | Kind"


@dataclass(frozen=True, slots=True)
class Kind:
    """A regfile type. `size` in bytes: the stride where there are arrays of it, and without a variable last part."""

    name: str
    title: str
    text: str
    size: int
    members: tuple[Instance, ...]

    @property
    def anonymous(self) -> bool:
        """Whether it only groups what one instance holds."""
        return self.name.isupper()


@dataclass(frozen=True, slots=True)
class Enumeration:
    """Codes: (name, value, description) each."""

    name: str
    members: tuple[tuple[str, int, str], ...]


@dataclass(frozen=True, slots=True)
class Map:
    """`top`: the device's register map. `kinds`: every regfile type, memory layouts included."""

    top: Kind
    kinds: tuple[Kind, ...]
    memory_kinds: tuple[str, ...]
    enumerations: tuple[Enumeration, ...]


def compile_maps(source: Path) -> tuple[AddrmapNode, AddrmapNode]:
    """Compile the SystemRDL file `source` to its address maps `cuelight` and `cuelight_memory`."""
    compiler = RDLCompiler()
    compiler.compile_file(str(source))
    return compiler.elaborate("cuelight").top, compiler.elaborate("cuelight_memory").top


def read_map(source: Path) -> Map:
    """Read the SystemRDL file `source`."""
    device_map, memory_map = compile_maps(source)
    reader = _Reader()
    device = reader.read_kind(device_map)
    device_kinds = set(reader.kinds)
    reader.read_kind(memory_map)
    kinds = [kind for kind in reader.kinds.values() if kind.name not in ("cuelight", "cuelight_memory")]
    return Map(
        top=device,
        kinds=tuple(kinds),
        memory_kinds=tuple(kind.name for kind in kinds if kind.name not in device_kinds),
        enumerations=tuple(reader.enumerations.values()),
    )


class _Reader:
    def __init__(self) -> None:
        self.kinds: dict[str, Kind] = {}
        self.enumerations: dict[str, Enumeration] = {}

    def read_kind(self, node: AddrmapNode | RegfileNode) -> Kind:
        name = _base_name(node)
        members = tuple(self._read_instance(child) for child in node.children())
        last = members[-1]
        if last.stride and not last.count:
            size = last.offset
        elif isinstance(node, RegfileNode) and node.array_stride is not None:
            size = node.array_stride
        else:
            size = node.size
        kind = Kind(name, _text(node, "name"), _text(node, "desc"), size, members)
        known = self.kinds.get(name)
        if known is None or known.size < kind.size:
            self.kinds[name] = kind
        return kind

    def _read_instance(self, node: Node) -> Instance:
        assert isinstance(node, RegNode | RegfileNode), node
        count, stride = 0, 0
        if node.is_array:
            assert node.array_dimensions is not None
            assert node.array_stride is not None
            (count,), stride = node.array_dimensions, node.array_stride
            # An array of one stands for as many as the segment header says.
            count = 0 if count == 1 else count
        content = self._read_register(node) if isinstance(node, RegNode) else self.read_kind(node)
        return Instance(node.inst_name, node.raw_address_offset, count, stride, content)

    def _read_register(self, node: RegNode) -> Register:
        fields = tuple(self._read_field(field) for field in node.fields())
        return Register(node.inst_name, _text(node, "name"), _text(node, "desc"), node.get_property("regwidth"), fields)

    def _read_field(self, node: FieldNode) -> Field:
        encode = node.get_property("encode")
        encoding = None
        if encode is not None:
            encoding = encode.type_name.removesuffix("_e")
            codes = tuple((member.name, member.value, _sentence(member.rdl_desc)) for member in encode)
            self.enumerations[encoding] = Enumeration(encoding, codes)
        reset = node.get_property("reset")
        assert reset is None or isinstance(reset, int), node
        return Field(
            name=node.inst_name,
            low=node.low,
            width=node.width,
            reset=reset or 0,
            has_reset=reset is not None,
            access=node.get_property("sw").name,
            text=_text(node, "desc"),
            encoding=encoding,
        )


def _base_name(node: AddrmapNode | RegfileNode) -> str:
    # An anonymous type is named by its instance, which no `_t` type is.
    name = node.type_name or node.inst_name
    return name.removesuffix("_t")


def _text(node: Node, prop: str) -> str:
    text = node.get_property(prop)
    return "" if prop == "name" and text == node.inst_name else _sentence(text)


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())
