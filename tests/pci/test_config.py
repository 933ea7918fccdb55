"""Configuration space is decoded as the specification says, and stays readable whatever is in it."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cuelight.pci.access import Access, AccessControl
from cuelight.pci.config import Capability, Command, ConfigSpace, MemoryBar
from cuelight.pci.errors import Correctable, ErrorReporting, Uncorrectable
from cuelight.pci.express import Aspm, Express, Port
from cuelight.pci.ids import DEVICE_ID, VENDOR_ID
from cuelight.pci.msix import MsiX
from cuelight.pci.power import L1Substates, enabled_substates, power_state
from cuelight.pci.resizable import ResizableBar, resizable_bars

from .registers import space

MIB = 1 << 20


def express(*changes: dict[int, str]) -> Express:
    found = Express.of(space(*changes))
    assert found is not None
    return found


def test_the_header() -> None:
    """Identity, what the function may do, and where its BARs are."""
    config = space()
    assert (config.vendor_id, config.device_id, config.class_code) == (VENDOR_ID, DEVICE_ID, 0x128000)
    assert config.command == Command.MEMORY | Command.BUS_MASTER | Command.INTX_DISABLE
    assert not config.absent
    assert not config.bridge
    assert config.memory_bar(0) == MemoryBar(0xD000_0000, wide=False, prefetchable=False)
    assert config.memory_bar(2) == MemoryBar(0x40_0000_0000, wide=True, prefetchable=True)
    assert config.memory_bar(6) is None


def test_a_bar_of_ports_maps_no_memory() -> None:
    assert space({0x10: "01 e0 00 00"}).memory_bar(0) is None


def test_a_bridge_names_its_buses_and_has_two_bars() -> None:
    bridge = space({0x0E: "81", 0x18: "00 65 67 00"})
    assert bridge.bridge
    assert bridge.buses == (0x65, 0x67)
    assert bridge.memory_bar(2) is None
    assert space().buses is None


def test_both_lists_of_capabilities() -> None:
    config = space()
    assert config.capabilities.found == (Capability(0x01, 0x40), Capability(0x11, 0x50), Capability(0x10, 0x60))
    assert config.extended.found == (
        Capability(0x0001, 0x100, 2),
        Capability(0x000D, 0x140, 1),
        Capability(0x0015, 0x160, 1),
        Capability(0x001E, 0x180, 1),
    )
    assert config.capabilities.broken is None
    assert config.extended.broken is None


@pytest.mark.parametrize(
    ("rows", "found", "broken"),
    [
        ({0x61: "40"}, 3, "it turns back to 0x40"),
        ({0x41: "42"}, 1, "it turns back to 0x40"),
        ({0x51: "10"}, 2, "it points to 0x10, where no capability can be"),
        ({0x50: "ff ff ff ff"}, 1, "its entry at 0x50 reads all ones"),
        ({0x34: "ff"}, 1, None),
        ({0x34: "00"}, 0, None),
        ({0x06: "00"}, 0, None),
    ],
)
def test_a_list_that_leads_nowhere_ends(rows: dict[int, str], found: int, broken: str | None) -> None:
    """What stands before the bad pointer is kept."""
    walk = space(rows).capabilities
    assert (len(walk.found), walk.broken) == (found, broken)


@pytest.mark.parametrize(
    ("rows", "found", "broken"),
    [
        ({0x142: "01 10"}, 2, "it turns back to 0x100"),
        ({0x142: "01 08"}, 2, "it points to 0x80, where no capability can be"),
        ({0x140: "ff ff ff ff"}, 1, "its entry at 0x140 reads all ones"),
        ({0x100: "ff ff ff ff"}, 0, "its entry at 0x100 reads all ones"),
        ({0x100: "00 00 00 00"}, 0, None),
    ],
)
def test_an_extended_list_that_leads_nowhere_ends(rows: dict[int, str], found: int, broken: str | None) -> None:
    walk = space(rows).extended
    assert (len(walk.found), walk.broken) == (found, broken)


def test_without_privileges_the_header_is_all() -> None:
    """Linux then gives 64 bytes: the function is there, its capabilities are unknown."""
    config = space(size=64)
    assert config.truncated
    assert not config.absent
    assert config.capabilities.found == config.extended.found == ()
    assert config.capabilities.broken == "it goes on at 0x40, which can't be read"
    assert not space({0x06: "00"}, size=64).truncated
    assert not space(size=256).truncated


@pytest.mark.parametrize("size", [0, 2, 64, 256, 4096])
def test_a_function_that_is_gone_reads_all_ones(size: int) -> None:
    config = ConfigSpace(b"\xff" * size)
    assert config.absent
    assert not config.truncated
    assert not config.bridge
    assert config.memory_bar(0) is None
    assert config.capabilities.found == config.extended.found == ()


def test_the_link() -> None:
    """A x8 port of 8 GT/s that runs at 2.5 GT/s over 8 lanes."""
    link = express({0x72: "81 10"})
    assert (link.port, link.version, link.has_link) == (Port.ENDPOINT, 2, True)
    assert (link.speed_most_gts, link.width_most) == (8.0, 8)
    assert (link.speed_gts, link.width) == (2.5, 8)
    assert (link.aspm_possible, link.aspm, link.clock_stops) == (Aspm.L0S | Aspm.L1, Aspm.L0S, True)
    assert link.target_speed_gts == 8.0
    assert link.speed_fixed
    assert express({0x6C: "8f", 0x72: "07"}).speed_gts is None
    assert express({0x6C: "8f"}).speed_most_gts is None


def test_a_port_tells_whether_its_link_is_up_and_its_slot_filled() -> None:
    """Data Link Layer Link Active counts only where the port reports it."""
    root = {0x62: "42 01", 0x6C: "83 4c 50 00", 0x78: "00 00 40 00"}
    assert (express(root).port, express(root).occupied, express(root).down) == (Port.ROOT, True, True)
    assert not express(root, {0x72: "82 30"}).down
    assert not express(root, {0x6E: "40"}).down
    assert not express(root, {0x7A: "00"}).occupied
    assert not express().occupied


def test_payload_sizes() -> None:
    device = express()
    assert (device.payload_most, device.payload, device.read_request) == (512, 512, 512)
    assert device.relaxed_ordering
    assert device.function_reset


@pytest.mark.parametrize(
    ("capabilities", "control", "ranges", "time"),
    [
        ("1f 00", "06 00", "ABCD", (65e-3, 210e-3)),
        ("02 00", "05 00", "B", (16e-3, 55e-3)),
        ("00 00", "00 00", "", (50e-6, 50e-3)),
        ("03 00", "01 00", "AB", (50e-6, 100e-6)),
        ("0f 00", "0e 00", "ABCD", (17.0, 64.0)),
        ("0f 00", "0f 00", "ABCD", None),
    ],
)
def test_the_completion_timeout(capabilities: str, control: str, ranges: str, time: tuple[float, float] | None) -> None:
    device = express({0x84: capabilities, 0x88: control})
    assert (device.timeout_ranges, device.timeout_s, device.timeout_disabled) == (ranges, time, False)


def test_a_completion_timeout_that_is_disabled() -> None:
    device = express({0x84: "10 00", 0x88: "10 00"})
    assert device.timeout_can_be_disabled
    assert device.timeout_disabled


def test_version_1_has_no_second_registers() -> None:
    """What stands at their place belongs to another capability."""
    device = express({0x62: "01 00"})
    assert (device.device_capabilities_2, device.device_control_2, device.link_control_2) == (0, 0, 0)
    assert device.target_speed_gts is None


def test_error_reporting() -> None:
    errors = ErrorReporting.of(space())
    assert errors is not None
    assert errors.offset == 0x100
    assert errors.status == Uncorrectable.SURPRISE_DOWN
    assert errors.mask == Uncorrectable.COMPLETION_TIMEOUT
    assert Uncorrectable.COMPLETION_TIMEOUT not in errors.fatal
    assert Uncorrectable.MALFORMED in errors.fatal
    assert errors.correctable_status == Correctable.BAD_TLP | Correctable.REPLAY_TIMEOUT
    assert Correctable.ADVISORY in errors.correctable_mask


def test_msix_access_control_and_resizable_bars() -> None:
    config = space()
    assert MsiX.of(config) == MsiX(0x50, 8, True, False, 2, 0x1000, 2, 0x2000)
    access = AccessControl.of(config)
    assert access is not None
    assert access.enabled == Access.SOURCE_VALIDATION | Access(0b11100)
    assert access.redirects
    assert resizable_bars(config) == (ResizableBar(0, 1024 * MIB, tuple(256 * MIB << n for n in range(5))),)


def test_a_resizable_bar_of_hundreds_of_gibibytes() -> None:
    """Sizes from 256 TiB on have their bits in Control."""
    (bar,) = resizable_bars(space({0x164: "00 00 00 80", 0x168: "21 11 01 00"}))
    assert (bar.bar, bar.size, bar.sizes) == (1, MIB << 17, (MIB << 27, MIB << 28))


def test_power_states() -> None:
    assert power_state(space()) == 0
    assert power_state(space({0x44: "03"})) == 3
    assert power_state(space(size=64)) is None
    assert enabled_substates(space()) == L1Substates.ASPM_L1_2 | L1Substates.ASPM_L1_1


@settings(deadline=None)
@given(
    st.one_of(
        st.binary(max_size=4096),
        st.tuples(st.sampled_from([64, 256, 4096]), st.dictionaries(st.integers(0, 4095), st.integers(0, 255))).map(
            lambda drawn: bytes(drawn[1].get(at, byte) for at, byte in enumerate(space(size=drawn[0]).data))
        ),
    )
)
@example(b"\xff" * 4096)
@example(bytes(range(256)) * 16)
def test_any_bytes_can_be_decoded(data: bytes) -> None:
    """Every value that comes out is one that a register can have."""
    config = ConfigSpace(data)
    offsets = [capability.offset for walk in (config.capabilities, config.extended) for capability in walk.found]
    assert len(offsets) == len(set(offsets))
    assert all(config.covers(offset, 4) for offset in offsets)
    link = Express.of(config)
    if link is not None:
        assert link.payload in [128 << code for code in range(8)]
        assert link.width in range(64)
        assert link.timeout_s is None or link.timeout_s[0] < link.timeout_s[1]
    vectors = MsiX.of(config)
    assert vectors is None or vectors.vectors in range(1, 2049)
    errors = ErrorReporting.of(config)
    assert errors is None or config.covers(errors.offset, 0x18)
    assert all(bar.size >= MIB for bar in resizable_bars(config))
    assert power_state(config) in (None, 0, 1, 2, 3)
    assert enabled_substates(config) in range(16)
    assert AccessControl.of(config) is None or not config.absent
