"""What the doctor finds on each captured machine, and that it finds nothing else above a note."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from cuelight.doctor import Finding, Severity, examine, read_machine

from .machines import FOLDER, NAMES, machine, patched

BOARD, PORT, GPU, GPU_PORT = "0000:01:00.0", "0000:00:01.0", "0000:02:00.0", "0000:00:06.0"
SERVER_BOARD, SERVER_GPU = "0000:23:00.0", "0000:24:00.0"


class Expected(NamedTuple):
    """A finding: its check, what it is about, and words that stand in its sentences."""

    check: str
    subject: str
    what: str
    remedy: str = ""


FAULTS: dict[str, tuple[Expected, ...]] = {
    "aspm-reset": (Expected("errors-fatal", PORT, "completion timeout", "ASPM"),),
    "bar-unassigned": (Expected("bar", BOARD, "no address", f"{PORT}/remove"),),
    "bus-reset": (
        Expected("bar", BOARD, "BAR0 is empty", "rescan"),
        Expected("decode", BOARD, "does not decode memory"),
    ),
    "d3cold": (
        Expected("config", BOARD, "reads all ones"),
        Expected("power", BOARD, "power is cut", f"echo 0 > /sys/bus/pci/devices/{PORT}/d3cold_allowed"),
    ),
    "gpu-lost": (
        Expected("config", GPU, "reads all ones"),
        Expected("gpu", GPU, "CUDA_ERROR_NO_DEVICE", "--gpu-reset"),
    ),
    "moved-bar": (Expected("bar", BOARD, "0x81600000, but the kernel has put it at 0x81500000", "rescan"),),
    "other-bar-size": (Expected("bar", BOARD, "1024 KiB, but a Cuelight device has 64"),),
    "other-design": (
        Expected("config", BOARD, "10ee:9038, but the kernel found 10ee:c0e1", "rescan"),
        Expected("bar", BOARD, "BAR0 is empty"),
    ),
    "other-driver": (Expected("driver", BOARD, "driver xdma", f"{BOARD}/driver/unbind"),),
    "payload-beyond": (Expected("payload", BOARD, f"{PORT} is set to packets of 256 bytes, but can do 128"),),
    "payload-longer": (Expected("payload", BOARD, f"up to 512 bytes, but {PORT} takes fewer", "pcie_bus_safe"),),
    "port-asleep": (Expected("power", BOARD, f"D3cold: {PORT}"),),
    "reprogrammed": (Expected("config", BOARD, "reads all ones", f"{BOARD}/remove"),),
    "surprise-down": (Expected("errors-fatal", PORT, "1 SDES", "dmesg"),),
}

WARNINGS: dict[str, tuple[Expected, ...]] = {
    "acs-redirect": (Expected("peer", SERVER_BOARD, "0000:22:00.0, 0000:22:01.0", "setpci -s 0000:22:01.0 ECAP_ACS"),),
    "aspm-l1": (Expected("aspm", BOARD, "ASPM L1", "pcie_aspm.policy=performance"),),
    "aspm-reset": (Expected("aspm", BOARD, "ASPM L1", f"{BOARD}/link/l1_aspm"),),
    "broken-list": (Expected("config", BOARD, "turns back to 0x40"),),
    "bus-reset": (Expected("payload", BOARD, f"up to 128 bytes, but {PORT} may send longer"),),
    "completion-timeout": (
        Expected("errors-nonfatal", PORT, "3 CmpltTO", "completion timeout"),
        Expected("timeout-root", PORT, "17000 ms to 64000 ms", f"setpci -s {PORT} CAP_EXP+28.w"),
    ),
    "corrected-storm": (Expected("errors-corrected", PORT, "6061 errors were corrected (812 RxErr", "riser"),),
    "garbage": (Expected("config", BOARD, "its entry at 0x60 reads all ones"),),
    "gpu-hot": (Expected("gpu-clocks", GPU, "1245 of 3105 MHz at 92 °C: it is too hot", "airflow"),),
    "gpu-pieces": (
        Expected("gpu-memory", SERVER_GPU, "80605 MiB are free, but the largest block has 41152", "Compact"),
    ),
    "iomemory-refused": (Expected("iomemory", BOARD, "CUDA_ERROR_NOT_SUPPORTED"),),
    "iommu-off": (Expected("iommu", BOARD, "no IOMMU group", "VT-d"),),
    "iommu-shared": (Expected("iommu", BOARD, "0000:03:00.0 (igc)", "another slot"),),
    "link-capped": (Expected("link-speed", BOARD, "2.5 GT/s", f"{PORT} is set to no more"),),
    "link-flaps": (Expected("link-steady", SERVER_GPU, "32 GT/s x16, 5 GT/s x16, 2.5 GT/s x16"),),
    "link-gen1": (Expected("link-speed", BOARD, "2.5 GT/s, but both ends can do 8, also under load", "riser"),),
    "link-held": (Expected("link-speed", SERVER_GPU, "5 GT/s, but both ends can do 32", "holds its speed"),),
    "link-narrow": (Expected("link-width", BOARD, "4 lanes, but both ends have 8", "riser"),),
    "no-master": (Expected("interrupts", BOARD, "no bus master"),),
    "nvlink-down": (Expected("nvlink", SERVER_GPU, "2 of its 18 NVLinks are down (3, 5)"),),
    "timeout-short": (Expected("timeout", BOARD, "50 µs to 100 µs", f"setpci -s {BOARD} CAP_EXP+28.w=0:f"),),
    "uplink-narrow": (Expected("link-width", "0000:21:00.0", "to 0000:20:01.1 has 8 lanes, but both ends have 16"),),
    "timeout-unmasked": (Expected("timeout-mask", BOARD, "counts as fatal"),),
}

NOTES: dict[str, tuple[Expected, ...]] = {
    "acs-redirect": (Expected("iommu-mode", SERVER_GPU, "DMA-FQ", "iommu=pt"),),
    "aspm-one-end": (),
    "bar-unassigned": (Expected("decode", BOARD, "nobody uses it"),),
    "corrected-storm": (Expected("errors-corrected", BOARD, "73 errors"),),
    "example-design": (Expected("board", BOARD, "10ee:9038", "Load the bitstream"),),
    "gpu-idle": (
        Expected("link-speed", GPU, "2.5 GT/s, but both ends can do 16", "under load"),
        Expected("gpu-persistence", GPU, "not kept"),
        Expected("iomemory", BOARD, "was not tried", "cuelight[gpu]"),
    ),
    "gpu-lost": (Expected("gpu", GPU, "says nothing"),),
    "gpu-power": (
        Expected("gpu-clocks", SERVER_GPU, "1410 of 1980 MHz, 349.8 of 350 W"),
        Expected("gpu-memory", SERVER_GPU, "others use it"),
    ),
    "gpu-window": (Expected("window", GPU, "256 MiB of its memory; it could show 32768"),),
    "iommu-mates": (Expected("iommu", BOARD, "has others: 0000:01:00.1", "vfio-pci"),),
    "l0s": (Expected("aspm", BOARD, "L0s", "pcie_aspm.policy=performance"),),
    "may-sleep": (Expected("power", BOARD, "down to D3cold", "disable_idle_d3=1"),),
    "no-driver": (
        Expected("driver", BOARD, "No driver", "driver_override"),
        Expected("decode", BOARD, "nobody uses it"),
    ),
    "not-configured": (
        Expected("board", "system", "No Cuelight board"),
        Expected("board", PORT, "its link is down", "rescan"),
    ),
    "not-root": (
        Expected("config", "system", "0000:23:00.0, 0000:22:00.0, 0000:21:00.0, 0000:20:01.1", "as root"),
        Expected("peer", SERVER_BOARD, "can't be read"),
        Expected("iomemory", SERVER_BOARD, "was not tried"),
    ),
    "server": (),
    "slot-narrow": (Expected("link-slot", BOARD, "It has 8 lanes, but what it is plugged into has 4"),),
    "virtual-machine": (Expected("board", "system", "No Cuelight board"),),
    "workstation": (Expected("peer", BOARD, "below another port of the same host bridge"),),
}

LEVELS = {Severity.FAULT: FAULTS, Severity.WARNING: WARNINGS, Severity.NOTE: NOTES}


def findings(name: str) -> list[Finding]:
    return examine(read_machine(machine(name)))


@pytest.mark.parametrize("name", NAMES)
def test_findings(name: str) -> None:
    """Faults and warnings are these and no others; notes are these at least."""
    found = findings(name)
    for severity, expected in LEVELS.items():
        there = {(one.check, one.subject): one for one in found if one.severity == severity}
        wanted = expected.get(name, ())
        for one in wanted:
            assert one.what in there[one.check, one.subject].what
            assert one.remedy in there[one.check, one.subject].remedy
        if severity > Severity.NOTE:
            assert there.keys() == {(one.check, one.subject) for one in wanted}


@pytest.mark.parametrize("name", NAMES)
def test_each_finding_says_what_why_and_what_to_do(name: str) -> None:
    """One of a kind for each subject; sentences, and lines to type, are whole."""
    found = findings(name)
    assert len({(one.check, one.subject, one.what) for one in found}) == len(found)
    for one in found:
        assert one.what
        assert bool(one.why) == bool(one.remedy) == (one.severity > Severity.OK)
        assert not one.why or one.why.endswith(".")
        assert "None" not in one.what + one.why + one.remedy


@pytest.mark.parametrize(
    ("rows", "severity", "expected"),
    [
        ({0x98: "10"}, Severity.WARNING, Expected("timeout", BOARD, "is disabled", "CAP_EXP+28.w=0:10")),
        ({0x98: "07"}, Severity.WARNING, Expected("timeout", BOARD, "does not exist", "CAP_EXP+28.w=0:f")),
        ({0x41: "70"}, Severity.NOTE, Expected("interrupts", BOARD, "no MSI-X")),
        ({0x100: "00 00 00 00"}, Severity.NOTE, Expected("errors", BOARD, "no Advanced Error Reporting")),
    ],
)
def test_findings_that_hang_on_one_register(rows: dict[int, str], severity: Severity, expected: Expected) -> None:
    saved = machine("workstation")
    path = f"/sys/bus/pci/devices/{BOARD}/config"
    for offset, row in rows.items():
        saved.files[path] = patched(saved.files[path], f"{offset:03x}: {row}")
    one = next(one for one in examine(read_machine(saved)) if (one.check, one.subject) == (expected.check, BOARD))
    assert (one.severity, expected.what in one.what, expected.remedy in one.remedy) == (severity, True, True)


@pytest.mark.parametrize(
    ("path", "text", "severity", "expected"),
    [
        (
            f"/sys/bus/pci/devices/{PORT}/power_state",
            "D3hot",
            Severity.WARNING,
            Expected("power", BOARD, f"D3hot: {PORT}"),
        ),
        (f"/sys/bus/pci/devices/{BOARD}/config", "", Severity.NOTE, Expected("config", BOARD, "can't be read", "root")),
        (
            "/probe/attention",
            '{"kernels": {"float32": {"decode": "attention_math", "prefill": "flash_attention_for_cpu"}}}',
            Severity.WARNING,
            Expected("attention", "system", "attention_math (decode) and flash_attention_for_cpu (prefill)"),
        ),
    ],
)
def test_findings_that_hang_on_one_file(path: str, text: str, severity: Severity, expected: Expected) -> None:
    saved = machine("workstation")
    saved.files[path] = text.encode()
    found = {(one.check, one.subject): one for one in examine(read_machine(saved))}
    one = found[expected.check, expected.subject]
    assert (one.severity, expected.what in one.what, expected.remedy in one.remedy) == (severity, True, True)


def test_every_machine_is_looked_at_for_something() -> None:
    """Every tree is named above, and all but those that are well come after a public report."""
    assert set(NAMES) == {name for level in LEVELS.values() for name in level}
    for name in set(NAMES) - {"workstation", "server", "virtual-machine"}:
        assert "\n# After https://github.com/" in (FOLDER / f"{name}.tree").read_text()


def test_every_check_is_seen_to_find_something() -> None:
    """Above a note, at least one finding of each check but those that only ever give notes."""
    seen = {one.check for level in LEVELS.values() for expected in level.values() for one in expected}
    assert {one.check for name in NAMES for one in findings(name)} - seen <= {"link", "errors", "attention"}
