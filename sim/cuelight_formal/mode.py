"""A lane falls for every reason, masters nothing in POLL, and uses no tag that something may still come back for."""

from __future__ import annotations

from amaranth.hdl import Mux, Signal

from cuelight_rtl.bus.pcie_usp.mode import LaneMode
from cuelight_rtl.regmap import FallCause, PushMode

from .spec import Spec

__all__ = ["falls"]

_LANE = 5


def falls() -> Spec:
    """A lane's mode beside a ghost that knows since when a tag rests; everything around does as it likes."""
    room = LaneMode(_LANE)
    spec = Spec(room)
    m, mode, settings = spec.m, room.mode, room.settings
    spec.assume(~room.sent | room.read)
    spec.assume(~room.reoffered | room.reoffer)
    spec.assume(settings.beats != 0)
    in_poll = mode == PushMode.POLL
    spec.promise(
        "What is not writable but in POLL stands else.",
        settings.generation == spec.past(settings.generation),
        when=spec.past(~in_poll),
    )

    pushing, probing, falling = (mode == each for each in (PushMode.PUSH, PushMode.PROBING, PushMode.FALLING))
    before = {each: spec.past(mode == each) for each in PushMode}
    spec.claim(
        "In POLL no heartbeat is read, and no sequence looked at.",
        ~room.read & ~room.reading & ~room.look,
        when=in_poll,
    )
    spec.claim("Nor is anything offered again.", ~room.reoffer, when=in_poll)
    spec.claim(
        "A lane gets to POLL when nothing of it is on its way, and all was offered again that was outstanding.",
        spec.past(falling & ~room.busy & ~room.reoffer),
        when=in_poll & before[PushMode.FALLING],
    )
    leaves_for = Signal(32)
    with m.If(~falling | room.busy):
        m.d.sync += leaves_for.eq(0)
    with m.Elif(room.tick):
        m.d.sync += leaves_for.eq(leaves_for + 1)
    spec.claim(
        "Then the hard block has sent what it took, or has had it for REST.",
        spec.past(~room.leaving | (leaves_for >= settings.rest)),
        when=in_poll & before[PushMode.FALLING],
    )
    spec.lemma("The timer counts since RQ took the last packet.", spec.inside("timer") == leaves_for, when=falling)
    spec.claim(
        "From POLL it goes to PROBING, from there to PUSH, from both to FALLING, and from that to POLL.",
        (in_poll & before[PushMode.POLL])
        | (probing & (before[PushMode.POLL] | before[PushMode.PROBING]))
        | (pushing & (before[PushMode.PROBING] | before[PushMode.PUSH]))
        | (falling & ~before[PushMode.POLL])
        | (in_poll & before[PushMode.FALLING])
        | spec.first(),
    )
    active = probing | pushing
    answer = room.answer
    mine = answer.valid & (answer.tag[1:] == _LANE)
    awaited, which = spec.inside("away"), spec.inside("which")
    ours = mine & awaited & (answer.tag[0] == which)
    for sentence, cause, when in (
        ("A command makes it fall.", FallCause.COMMAND, active & room.poll),
        ("So does a function that may not master.", FallCause.NO_MASTERING, active & ~room.mastering & ~room.poll),
    ):
        spec.claim(sentence, falling & (room.cause == cause), when=spec.past(when))
    quiet = active & ~room.poll & room.mastering
    spec.claim(
        "So does whatever else than a good completion comes back for its read, with that as its cause.",
        falling & (room.cause == spec.past(answer.cause)),
        when=spec.past(quiet & ours & (answer.cause != 0)),
    )
    timer = spec.inside("timer")
    spec.claim(
        "So does a read that was asked for and not answered in time.",
        falling & (room.cause == FallCause.TIMEOUT),
        when=spec.past(quiet & room.reading & ~ours & (timer >= settings.completion_timeout)),
    )
    waited = Signal(32)
    with m.If(~room.reading):
        m.d.sync += waited.eq(0)
    with m.Elif(room.tick):
        m.d.sync += waited.eq(waited + 1)
    spec.lemma("The timer counts while the read is outstanding.", timer == waited, when=room.reading)
    spec.claim("Each fall has a cause, which stands until the next one.", room.cause != 0, when=spec.past(room.falls))
    spec.claim(
        "The cause stands until the next fall.", room.cause == spec.past(room.cause), when=~spec.past(room.falls)
    )
    spec.claim("What was outstanding in PUSH is offered again.", room.reoffer, when=spec.past(room.falls & pushing))
    spec.claim(
        "And asked for until it was.",
        room.reoffer,
        when=spec.past(room.reoffer & ~room.reoffered),
    )
    spec.claim(
        "It is asked for once: only a fall from PUSH does.",
        spec.past(room.falls & pushing),
        when=room.reoffer & ~spec.past(room.reoffer),
    )

    # Tags.
    spec.claim("A read has a tag of the lane.", room.tag[1:] == _LANE, when=room.read)
    spec.claim("That tag does not rest.", ~room.resting.bit_select(room.tag[0], 1), when=room.reading)
    tag = spec.some("tag", 1)
    left = Signal(32)
    good = ours & (answer.cause == 0)
    with m.If(room.falls & room.reading & ~good & (which == tag)):
        m.d.sync += left.eq(settings.rest)
    with m.Elif(room.tick & (left != 0)):
        m.d.sync += left.eq(left - 1)
    rests = Mux(tag, room.resting[1], room.resting[0])
    spec.claim("A tag whose read did not end well rests for REST microseconds.", rests == (left != 0))
    spec.claim(
        "Whatever comes back for a tag without a read is counted, and nothing else.",
        room.late == (mine & ~ours),
        when=mine,
    )
    spec.claim(
        "It changes nothing.",
        (room.heartbeat == spec.past(room.heartbeat)) & (room.needed == spec.past(room.needed)),
        when=spec.past(room.late & ~room.probe),
    )
    for index in range(2):
        spec.lemma(
            f"Tag {index} rests as long as the ghost says.", (spec.inside(f"rest_{index}") == left) | (tag != index)
        )
    spec.lemma("Reads are there in PROBING and PUSH only.", active, when=room.reading)
    spec.lemma("What is away is a read.", room.reading, when=awaited)
    spec.lemma("Only PUSH looks.", pushing, when=room.look)
    spec.lemma("Only FALLING offers again.", falling, when=room.reoffer)

    # The way back.
    fell_at = Signal(32)
    with m.If(room.falls):
        m.d.sync += fell_at.eq(settings.generation)
    spec.claim(
        "Back from POLL it goes by command only, after the generation has changed.",
        spec.past(room.probe & room.mastering & (settings.generation != fell_at)),
        when=probing & before[PushMode.POLL],
    )
    spec.claim(
        "To PUSH it goes by another command only, so that the host has stopped to deliver.",
        spec.past(room.push),
        when=pushing & before[PushMode.PROBING],
    )
    spec.lemma("The generation at the last fall is known.", spec.inside("fell_at") == fell_at)
    moved, wanted = Signal(8), Signal(8)
    known = spec.inside("known")
    with m.If(in_poll):
        m.d.sync += [moved.eq(0), wanted.eq(settings.beats)]
    with m.Elif(probing & good & known & (answer.value != room.heartbeat) & (moved != wanted)):
        m.d.sync += moved.eq(moved + 1)
    spec.claim(
        "Before it have moved as many heartbeats as BEATS says.",
        spec.past(moved == wanted),
        when=pushing & before[PushMode.PROBING],
    )
    spec.lemma(
        "Those that are needed are those that are missing.",
        (room.needed == (wanted - moved)[:8]) & (moved <= wanted),
        when=probing,
    )
    spec.reach("A lane returns to PUSH after a fall.", pushing & (fell_at != 0) & before[PushMode.PROBING])
    return spec
