"""Push: what the device masters, of all lanes together.

==============  ================================================================
push_registers  what the host sets and reads
mode            a lane's way between POLL and PUSH, its heartbeat and its tags
courier         fetches dispatches from the poll windows, and offers them again
requester       packets to RQ
answers         packets from RC
msix            interrupts
==============  ================================================================
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...params import Params
from ...registers import Bus
from ...regmap import PushMode
from .answers import Answers
from .courier import Courier
from .mode import LaneMode
from .msix import Msix, Vector
from .push_registers import PushRegisters
from .requester import Departure, Requester
from .streams import RC, RQ

__all__ = ["Push"]


class Push(wiring.Component):
    """Lanes in PUSH, and interrupts.

    ``bus`` goes to the scheduler, ``registers`` comes from BAR0 and ``table`` from BAR2. ``poll_valid`` shows which
    lanes' poll heads hold a dispatch, ``hit`` whose dispatches have just been offered again. ``mastering``,
    ``max_payload``, ``msix_enable`` and ``msix_mask`` are the function's, as the hard block shows them;
    ``departures`` are its news of packets that came on RQ. ``halt`` keeps everything from being mastered, as if it
    might not; ``idle`` says that nothing is on its way.

    Parameters
    ----------
    params
        Sizes of the scheduler.
    tick_cycles
        Clock cycles of a microsecond.
    """

    def __init__(self, params: Params, *, tick_cycles: int) -> None:
        self._params = params
        self._tick_cycles = tick_cycles
        lanes = params.lanes
        super().__init__(
            {
                "bus": Out(Bus()),
                "registers": In(Bus()),
                "table": In(Bus()),
                "rq": Out(RQ),
                "rc": In(RC),
                "departures": In(Departure()).array(2),
                "poll_valid": In(lanes),
                "hit": In(lanes),
                "irq_reject": In(1),
                "irq_retire": In(1),
                "halt": In(1),
                "idle": Out(1),
                "mastering": In(1),
                "max_payload": In(2),
                "msix_enable": In(1),
                "msix_mask": In(1),
            }
        )
        self.modes = [LaneMode(lane) for lane in range(lanes)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        modes = self.modes
        m.submodules.registers = registers = PushRegisters(modes)
        m.submodules.courier = courier = Courier(self._params)
        m.submodules.requester = requester = Requester(self._params.lanes)
        m.submodules.answers = answers = Answers()
        m.submodules.msix = msix = Msix()
        connect(m, flipped(self.bus), courier.bus)
        connect(m, flipped(self.registers), registers.bus)
        connect(m, flipped(self.table), msix.bus)
        connect(m, flipped(self.rq), requester.rq)
        connect(m, flipped(self.rc), answers.rc)
        for inner, outer in zip(requester.departures, self.departures, strict=True):
            connect(m, flipped(outer), inner)
        connect(m, courier.letter, requester.letter)
        connect(m, msix.message, requester.message)

        elapsed, tick = Signal(range(self._tick_cycles)), Signal()
        m.d.comb += tick.eq(elapsed == self._tick_cycles - 1)
        m.d.sync += elapsed.eq(elapsed + 1)
        with m.If(tick):
            m.d.sync += elapsed.eq(0)

        mastering = self.mastering & ~self.halt
        for lane, mode in enumerate(modes):
            m.submodules[f"mode_{lane}"] = mode
            pushing = mode.mode == PushMode.PUSH
            settings = registers.settings[lane]
            m.d.comb += [
                mode.tick.eq(tick),
                mode.mastering.eq(mastering),
                mode.settings.eq(settings),
                *(
                    getattr(mode.answer, name).eq(getattr(answers.answer, name))
                    for name in answers.answer.signature.members
                ),
                mode.sent.eq(requester.sent[lane]),
                mode.busy.eq(requester.busy[lane]),
                mode.leaving.eq(requester.leaving[lane]),
                mode.looked.eq(courier.looked[lane]),
                mode.oldest.eq(courier.oldest),
                mode.reoffered.eq(courier.reoffered[lane]),
                courier.pushing[lane].eq(pushing),
                courier.look[lane].eq(mode.look),
                courier.reoffer[lane].eq(mode.reoffer),
                requester.pushing[lane].eq(pushing),
                requester.port_address[lane].eq(settings.port_address),
                requester.heartbeat_address[lane].eq(settings.heartbeat_address),
                requester.read[lane].eq(mode.read),
                requester.tag[lane].eq(mode.tag),
            ]
        m.d.comb += [
            courier.poll_valid.eq(self.poll_valid),
            courier.hit.eq(self.hit),
            registers.pushed.eq(requester.pushed),
            requester.mastering.eq(mastering),
            self.idle.eq(~requester.rq.valid & ~requester.busy.any()),
            requester.max_payload.eq(self.max_payload),
            msix.enable.eq(self.msix_enable),
            msix.mask.eq(self.msix_mask),
        ]
        polled = self.poll_valid & ~courier.pushing
        causes = {
            Vector.REJECT: self.irq_reject,
            Vector.RETIREMENT: self.irq_retire,
            Vector.FAULT: Cat(mode.falls for mode in modes),
            Vector.DISPATCH: polled,
        }
        for vector, levels in causes.items():
            before = Signal.like(Value.cast(levels), name=f"before_{vector.name.lower()}")
            m.d.sync += before.eq(levels)
            m.d.comb += msix.events[vector].eq((levels & ~before).any())
        return m
