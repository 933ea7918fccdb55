"""Lanes that complete dispatches, rightly or wrongly."""

from __future__ import annotations

from cuelight import regmap

from .actor import Actor, completion_entry
from .group import Group
from .passes import next_sequence
from .slots import SlotState

__all__ = ["Lanes"]

_ONES = 0xFFFF_FFFF


class Lanes(Actor):
    """What GPU workers do, and what broken ones might."""

    def serve_lane(self) -> None:
        """A lane that completes what it has, up to some dispatches in a row."""
        group = self.some_group()
        for _ in range(self.random.choice((1, 1, 2, 8, 20))):
            if group.outstanding is None:
                break
            while group.offered is not None and self.random.random() < 0.5:
                self._pop(group, group.offered.sequence)
            self.complete(group, self.some_seats(group))
            self.lockstep.run(self.random.choice((0, 3, 20, 60)))

    def report_members(self) -> None:
        """A lane that names each member in STAGE_DONE, up to some dispatches in a row; now and then it breaks off."""
        group = self.some_group()
        for _ in range(self.random.choice((1, 1, 2, 8))):
            if group.alive is None or not group.dispatches:
                break
            members = [seat for seat in group.seated if group.alive.members >> seat & 1]
            self.random.shuffle(members)
            for seat in members:
                if self.random.random() < 0.01 or seat not in group.seated:
                    return
                if self.random.random() < 0.05 and group.dispatches:
                    seats = self.some_seats(group)
                    self.write_finished(group, group.dispatches[0].sequence % 16, seats)
                self._report(group.seated[seat].id)
                if self.random.random() < 0.05 and seat in group.seated:
                    self.coverage.note("STAGE_DONE of a member twice")
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
        group = self.some_group()
        outstanding = group.outstanding
        kind = self.random.choice(("old", "to come", "wrong entry", "twice", "any", "younger"))
        sequence = outstanding.sequence if outstanding is not None else group.sequence
        entry = sequence % 16
        if kind == "old":
            sequence = sequence - self.random.choice((1, 2, 16, 1 << 16)) & _ONES
            entry = sequence % 16
            self.coverage.note("completion of an old sequence")
        elif kind == "to come":
            sequence = next_sequence(group.sequence) if self.random.random() < 0.3 else group.sequence
            entry = sequence % 16
            self.coverage.note("completion of a sequence to come")
        elif kind == "wrong entry":
            entry = entry ^ self.random.randint(1, 15)
            self.coverage.note("completion in a wrong entry")
        elif kind == "twice" and outstanding is not None:
            self.complete(group, 0)
            self.coverage.note("completion twice")
        elif kind == "younger" and len(group.dispatches) > 1:
            sequence = group.dispatches[1].sequence
            entry = sequence % 16
            self.coverage.note("completion of the younger of two dispatches")
        elif kind == "any":
            sequence = self.random.getrandbits(32)
        self.write32(completion_entry(group, entry) + regmap.Completion.BATCH_DONE, sequence)

    def write_finished_wrongly(self) -> None:
        """FINISHED words in an entry where, or at a time when, none are expected."""
        group = self.some_group()
        if group.outstanding is None:
            entry = self.random.choice((group.sequence % 16, self.random.randrange(16)))
            self.coverage.note("finished words with nothing outstanding")
        else:
            entry = group.outstanding.sequence % 16 ^ self.random.choice((1, 1, self.random.randint(1, 15)))
            self.coverage.note("finished words in a wrong entry")
        self.write_finished(group, entry, self.random.getrandbits(256) & self.random.getrandbits(256))

    def pop_poll(self) -> None:
        """A pop of the poll head, right or stale."""
        group = self.some_group()
        outstanding = group.offered or group.outstanding
        if outstanding is not None and self.random.random() < 0.7:
            self._pop(group, outstanding.sequence)
        else:
            self._pop(group, self.random.choice((group.sequence, group.sequence - 2 & _ONES, 0)))

    def _pop(self, group: Group, sequence: int) -> None:
        head = group.offered
        hit = head is not None and sequence == head.sequence
        self.coverage.note(f"poll pop {'right' if hit else 'stale'}")
        self.write32(regmap.POLL + group.index * regmap.POLL_STRIDE + regmap.Poll.POP, sequence)
