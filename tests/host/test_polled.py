"""A whole driver over bare registers: the RTL on one side, lanes on the other, and between them only the pump."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuelight import LLM
from cuelight.device import Device
from cuelight.errors import DeviceLost, InvalidArgument, TransportError
from cuelight.regmap import IDENTITY
from cuelight.transports.polled import PolledTransport
from cuelight_rtl.model import Model

from .checks import WAIT_S, assert_at_rest, until
from .lane import STAGES, expected_tokens, lane_of
from .model_registers import ModelRegisters


@pytest.fixture(autouse=True)
def _quick_turns() -> Iterator[None]:
    """The model's registers are read in Python: by a thread that must not wait its turn for long."""
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(0.0002)
    yield
    sys.setswitchinterval(before_s)


def open_device(registers: ModelRegisters, fresh: ModelRegisters | None = None) -> Device:
    def open_transport(registers: ModelRegisters) -> PolledTransport:
        return PolledTransport(registers, context=256, blocks=16)

    device = Device(open_transport(registers), (lambda: open_transport(fresh)) if fresh else None)
    device.configure(stages=STAGES, kv_blocks=64, block_positions=16)
    return device


def test_requests_run_to_their_ends_on_both_lanes() -> None:
    with open_device(ModelRegisters()) as device, lane_of(device, 0), lane_of(device, 1):
        prompts = [[1, 2, 3 + turn] for turn in range(6)]
        requests = [device.submit(prompt, 10, group=turn % 2, tier=turn % 3) for turn, prompt in enumerate(prompts)]
        for prompt, request in zip(prompts, requests, strict=True):
            assert [token.token for token in request.result(WAIT_S)] == expected_tokens(prompt, 10)
        assert_at_rest(device)
        assert device.status().counters.completions_ignored == 0
        assert device.trace()


def test_requests_go_on_where_a_lost_device_is_replaced() -> None:
    registers, fresh = ModelRegisters(nonce=1), ModelRegisters(nonce=2)
    with open_device(registers, fresh) as device:
        with lane_of(device):
            request = device.submit([1, 2, 3], 100)
            next(request.tokens(WAIT_S))
            registers.lose(DeviceLost("The link is down; check it, then open the device again."))
            until(lambda: device.failovers.devices == 1)
        with lane_of(device):
            assert [token.token for token in request.result(WAIT_S)] == expected_tokens([1, 2, 3], 100)
        assert request.losses == 1
        assert registers.closed


def test_device_that_was_reset_behind_the_hosts_back_is_lost() -> None:
    """It answers every read, but knows none of the requests."""
    registers = ModelRegisters(nonce=1)
    transport = PolledTransport(registers, context=64, blocks=4)
    bell = transport.segment.host_bell()
    with registers.lock:
        registers.model = Model(registers.model.params, nonce=2)
    assert transport.wait(bell, WAIT_S) != bell
    with pytest.raises(DeviceLost, match="was reset, so its requests are lost"):
        transport.read32(IDENTITY)
    transport.close()


@pytest.mark.parametrize(
    ("error", "said"),
    [(TransportError("The cable is out; plug it in."), "The cable is out"), (KeyError("x"), "failed.*KeyError")],
)
def test_failure_of_the_way_to_the_device_is_told_to_whoever_uses_it(error: Exception, said: str) -> None:
    registers = ModelRegisters()
    with open_device(registers) as device:
        request = device.submit([1, 2, 3], 10)
        registers.lose(error)
        with pytest.raises(TransportError, match=said):
            request.result(WAIT_S)
        with pytest.raises(TransportError, match=said):
            device.admit(stage=3)


def test_segment_goes_also_where_registers_can_not_be_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    registers = ModelRegisters()
    transport = PolledTransport(registers, context=64, blocks=4)

    def fail() -> None:
        raise OSError("The link is down.")

    monkeypatch.setattr(registers, "close", fail)
    with pytest.raises(OSError, match="The link is down"):
        transport.close()
    assert not transport.segment.path.exists()


def test_pump_goes_round_while_lanes_rest_and_the_clock_goes_on() -> None:
    transport = PolledTransport(ModelRegisters(), context=64, blocks=4)
    assert transport.moves(WAIT_S)
    transport.close()


def test_model_runs_on_a_board_as_on_the_twin(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the URI to a lane process and back; only the way to the registers is another one."""
    asked = []

    def open_board(uri: str, push: bool | None, root: Path) -> tuple[ModelRegisters, None]:
        asked.append(uri)
        return ModelRegisters(lanes=1, slots=64, seats=16), None

    monkeypatch.setattr("cuelight.transports.pcie.open_board", open_board)
    texts = []
    for device in ("twin", "pcie:0000:65:00.0"):
        with LLM.open(model, device, kv_positions=1024, threads=1) as llm:
            assert llm.device.snapshot().device == device
            texts.append(llm.generate("cdefg", 12, temperature=0.0).text(WAIT_S))
    assert texts[0] == texts[1]
    assert asked == ["pcie:0000:65:00.0"]
    with pytest.raises(InvalidArgument, match=r"pcie:0000:65:00\.0 has 1 lanes, so lanes can't be 2"):
        LLM.open(model, "pcie:0000:65:00.0", kv_positions=1024, lanes=2)
