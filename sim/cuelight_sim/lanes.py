"""Lanes that complete dispatches, rightly or wrongly."""

from __future__ import annotations

from cuelight import regmap

from .actor import Actor, completion_entry
from .lane import Lane, next_sequence
from .slots import SlotState

__all__ = ["Lanes"]

_ONES = 0xFFFF_FFFF


class Lanes(Actor):
    """What GPU workers do, and what broken ones might."""

    def serve_lane(self) -> None:
        """A lane that completes what it has, up to some dispatches in a row."""
        lane = self.some_lane()
        for _ in range(self.random.choice((1, 1, 2, 8, 20))):
            if lane.outstanding is None:
                break
            while lane.offered is not None and self.random.random() < 0.5:
                self._pop(lane, lane.offered.sequence)
            self.complete(lane, self.some_seats(lane))
            self.lockstep.run(self.random.choice((0, 3, 20, 60)))

    def serve_group(self) -> None:
        """All lanes of a group, for some dispatches."""
        group = self.some_group()
        for _ in range(self.random.choice((4, 20, 40))):
            for lane in group.lanes if self.random.random() < 0.5 else [self.some_lane(group)]:
                self.complete(lane, self.some_seats(lane) if self.random.random() < 0.5 else 0)
            self.lockstep.run(self.random.choice((0, 3, 20, 60)))

    def report_members(self) -> None:
        """A lane that names each member in STAGE_DONE, up to some dispatches in a row; now and then it breaks off."""
        lane = self.some_lane()
        group = self.golden.group_of(lane)
        for _ in range(self.random.choice((1, 1, 2, 8))):
            if lane.outstanding is None:
                break
            members = [seat for seat in group.seated if lane.outstanding.run.members >> seat & 1]
            self.random.shuffle(members)
            for seat in members:
                if self.random.random() < 0.01 or seat not in group.seated:
                    return
                if self.random.random() < 0.05 and lane.dispatches:
                    seats = self.some_seats(lane)
                    self.write_finished(lane, lane.dispatches[0].sequence % 16, seats)
                self._report(group.seated[seat].id)
                if self.random.random() < 0.05 and seat in group.seated:
                    self._report(group.seated[seat].id)
            self.lockstep.run(self.random.choice((0, 0, 1, 3, 20, 60)))

    def report_anybody(self) -> None:
        """STAGE_DONE of an automatic request, in the pass or not."""
        request_id = self.some_request(self.random.choice((SlotState.SEATED, SlotState.QUEUED, SlotState.PARKED)))
        if request_id is not None:
            self._report(request_id)

    def _report(self, request_id: int) -> None:
        self.write32(self.page_offset(self.some_page(), regmap.Page.STAGE_DONE), request_id)

    def complete_wrongly(self) -> None:
        """A completion that must be ignored, or one that meets its dispatch just so."""
        lane = self.some_lane()
        outstanding = lane.outstanding
        kind = self.random.choice(("old", "to come", "wrong entry", "twice", "any", "younger"))
        sequence = outstanding.sequence if outstanding is not None else lane.sequence
        entry = sequence % 16
        if kind == "old":
            sequence = sequence - self.random.choice((1, 2, 16, 1 << 16)) & _ONES
            entry = sequence % 16
        elif kind == "to come":
            sequence = next_sequence(lane.sequence) if self.random.random() < 0.3 else lane.sequence
            entry = sequence % 16
        elif kind == "wrong entry":
            entry = entry ^ self.random.randint(1, 15)
        elif kind == "twice" and outstanding is not None:
            self.complete(lane, 0)
        elif kind == "younger" and len(lane.dispatches) > 1:
            sequence = lane.dispatches[1].sequence
            entry = sequence % 16
        elif kind == "any":
            sequence = self.random.getrandbits(32)
        self.write32(completion_entry(lane, entry) + regmap.Completion.BATCH_DONE, sequence)

    def write_finished_wrongly(self) -> None:
        """FINISHED words in an entry where, or at a time when, none are expected."""
        lane = self.some_lane()
        if lane.outstanding is None:
            entry = self.random.choice((lane.sequence % 16, self.random.randrange(16)))
        else:
            entry = lane.outstanding.sequence % 16 ^ self.random.choice((1, 1, self.random.randint(1, 15)))
        self.write_finished(lane, entry, self.random.getrandbits(256) & self.random.getrandbits(256))

    def pop_poll(self) -> None:
        """A pop of the poll head, right or stale."""
        lane = self.some_lane()
        outstanding = lane.offered or lane.outstanding
        if outstanding is not None and self.random.random() < 0.7:
            self._pop(lane, outstanding.sequence)
        else:
            self._pop(lane, self.random.choice((lane.sequence, lane.sequence - 2 & _ONES, 0)))

    def reoffer(self) -> None:
        """A lane whose host may have begun anew: REOFFER, of the oldest outstanding dispatch or of another."""
        lane = self.some_lane()
        sequences = [dispatch.sequence for dispatch in lane.dispatches]
        if not sequences or self.random.random() < 0.3:
            sequences = [*sequences[1:], lane.sequence, lane.sequence - 3 & _ONES, 0]
        else:
            del sequences[1:]
        offset = regmap.POLL + lane.index * regmap.POLL_STRIDE + regmap.Poll.REOFFER
        self.write32(offset, self.random.choice(sequences))

    def _pop(self, lane: Lane, sequence: int) -> None:
        self.write32(regmap.POLL + lane.index * regmap.POLL_STRIDE + regmap.Poll.POP, sequence)
