"""A captured machine says the same as the machine, and nothing that is nobody's business."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuelight.doctor import Finding, Recording, Severity, Source, examine, load_tree, read_machine
from cuelight.doctor.saved import HEADING, Saved, dump, parse
from cuelight.doctor.tree import parse_lspci
from cuelight.errors import CaptureError

from .machines import NAMES, machine

BOARD = "/sys/bus/pci/devices/0000:01:00.0"
SERIAL = bytes.fromhex("03 00 01 00 11 22 33 44 55 66 77 88")
PRODUCT_DATA = bytes.fromhex("03 60 00 80 53 4e 31 32")


def findings(source: Source) -> list[Finding]:
    return examine(read_machine(source))


def unpack(saved: Saved, root: Path) -> None:
    """Lay a machine out as a folder, symbolic links and all."""
    for path, target in saved.links.items():
        link = root / path[1:]
        if any(other.startswith(f"{path}/") for other in (*saved.files, *saved.links)):
            (link.parent / target).mkdir(parents=True, exist_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    for path, data in saved.files.items():
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / path[1:]).write_bytes(data)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_down_says_the_same(name: str) -> None:
    """Recorded while it is looked at, written, read again."""
    recording = Recording(machine(name))
    found = findings(recording)
    assert findings(parse(dump(recording.saved), name)) == found == findings(machine(name))


@pytest.mark.parametrize("name", ["server", "reprogrammed", "iommu-shared", "not-root"])
def test_a_folder_says_the_same(name: str, tmp_path: Path) -> None:
    unpack(machine(name), tmp_path)
    assert findings(load_tree(tmp_path)) == findings(machine(name))


def test_only_what_is_looked_at_is_kept() -> None:
    saved = machine("workstation")
    saved.files[f"{BOARD}/hostname"] = b"secret"
    recording = Recording(saved)
    findings(recording)
    assert "secret" not in dump(recording.saved)


def test_serial_numbers_and_names_are_left_out() -> None:
    """Those of configuration space, of NVIDIA's driver and of the kernel's command line."""
    saved = machine("server")
    config = bytearray(saved.files["/sys/bus/pci/devices/0000:23:00.0/config"])
    # The list of extended capabilities ends at 0x1c0, the other one with PCI Express at 0x70.
    config[0x1C2:0x1C4], config[0x200:0x20C] = b"\x01\x20", SERIAL
    config[0x71], config[0xC0:0xC8] = 0xC0, b"\x03\x00" + PRODUCT_DATA[2:]
    saved.files["/sys/bus/pci/devices/0000:23:00.0/config"] = bytes(config)
    saved.files["/probe/nvlink"] = b"GPU 0: H100 (UUID: GPU-d1b93026-6d5b-03bd-3a71-f85b47a61bde)\n Link 0: 26 GB/s\n"
    saved.files["/proc/cmdline"] = b"root=UUID=5f7c iommu=pt pci=noaer,realloc vfio-pci.ids=10ee:c0e1 ip=:::::host1\n"
    recording = Recording(saved)
    findings(recording)
    text = dump(recording.saved)
    assert "cmdline = iommu=pt pci=noaer,realloc vfio-pci.ids=10ee:c0e1\n" in text
    assert "  200: 03 00 01 00 00 00 00 00 00 00 00 00" in text
    assert "  0c0: 03 00 00 80 00 00 00 00" in text
    for private in ("d1b93026", "5f7c", "host1"):
        assert private not in text


def lspci(name: str) -> str:
    """Print a machine as lspci -D -xxxx does."""
    saved = machine(name)
    lines = []
    for address in saved.entries("/sys/bus/pci/devices"):
        config = saved.read(f"/sys/bus/pci/devices/{address}/config")
        if config is not None:
            lines.append(f"{address} Something: of somebody")
            lines += [f"{at:02x}: {config[at : at + 16].hex(' ')}" for at in range(0, len(config), 16)]
            lines.append("")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "name", ["acs-redirect", "link-narrow", "aspm-l1", "payload-longer", "timeout-short", "server"]
)
def test_what_lspci_prints_is_enough_for_some(name: str, tmp_path: Path) -> None:
    """Ports above each function are found from the buses behind bridges."""
    (tmp_path / "config.txt").write_text(lspci(name))
    source = load_tree(tmp_path / "config.txt")
    found = read_machine(source)
    known = read_machine(machine(name))
    assert [one.path for one in found.looked_at] == [one.path for one in known.looked_at]
    assert {one.root for one in found.boards} == {one.root for one in known.boards}
    # Whether there was a load is not known, so a slow link is a note.
    assert {(one.check, one.subject, one.what) for one in examine(found) if one.severity > Severity.NOTE} == {
        (one.check, one.subject, one.what) for one in findings(machine(name)) if one.severity > Severity.NOTE
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no captured tree; name what"),
        ("hello\n", "is no captured tree; name what"),
        (f"{HEADING}\nvendor = 1\n", "line 2: it is neither heading, value nor link; capture"),
        (f"{HEADING}\n[/a]\nconfig = 4097 bytes\n", "line 3: config has up to 4096 bytes; capture"),
        (
            f"{HEADING}\n[/a]\nconfig = 64 bytes\n  03f: 01 02\n",
            "line 4: a row of bytes is an offset and values within",
        ),
        (f"{HEADING}\n[/a]\nconfig = 64 bytes\n  00: xy\n", "line 4: a row of bytes is an offset and values within"),
        (f"{HEADING}\n[/a]\nb =\n  c\n", r"line 4: a line of text begins with \|; capture"),
    ],
)
def test_a_file_that_is_none_is_refused_in_a_sentence(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "tree").write_text(text)
    with pytest.raises(CaptureError, match=said):
        load_tree(tmp_path / "tree")


def test_a_folder_or_file_that_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="can't be read: No such file or directory; name"):
        load_tree(tmp_path / "nothing")
    with pytest.raises(CaptureError, match="has no folder sys; name"):
        load_tree(tmp_path)


@settings(max_examples=50, deadline=None)
@given(st.text(st.sampled_from("[]/=>-| :0fax\n#"), max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(CaptureError):
        findings(parse(f"{HEADING}\n{text}", "it"))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_values_can_be_examined(data: st.DataObject) -> None:
    """Bytes turned over in configuration spaces, and files with anything in them."""
    saved = machine("server")
    for _ in range(data.draw(st.integers(1, 6))):
        path = data.draw(st.sampled_from(sorted(saved.files)))
        content = bytearray(saved.files[path])
        if path.endswith("/config"):
            at = data.draw(
                st.sampled_from([0, 4, 6, 0x10, 0x34, 0x70, 0x74, 0x78, 0x7C, 0x82, 0x98, 0x100, 0x104, 0xF24])
            )
            content[at : at + 2] = data.draw(st.binary(min_size=2, max_size=2))
            saved.files[path] = bytes(content[: data.draw(st.sampled_from([0, 3, 64, 256, 4096]))])
        else:
            half = bytes(content[: len(content) // 2])
            saved.files[path] = data.draw(st.one_of(st.binary(max_size=40), st.just(half)))
    assert all(one.what for one in findings(saved))


@settings(max_examples=30, deadline=None)
@given(st.text(st.sampled_from("0123456789abcdef:. \n"), max_size=300))
def test_any_rows_of_lspci_can_be_examined(text: str) -> None:
    findings(parse_lspci(f"00:01.0 Bridge\n00: 86 80\n{text}"))
