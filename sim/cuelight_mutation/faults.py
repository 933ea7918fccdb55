"""The faults that are planted, one at a time."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FAULTS", "Fault"]


@dataclass(frozen=True)
class Fault:
    """A change of the RTL's text that must not go unnoticed.

    Attributes
    ----------
    sentence
        What the changed RTL does wrong.
    file
        In ``rtl/cuelight_rtl``.
    old, new
        The text that is replaced, which the file must have exactly once, and what stands there instead.
    proofs
        Names of the proofs that are run on it.
    benches
        Names of the cocotb benches that are run on it, on Icarus.
    """

    sentence: str
    file: str
    old: str
    new: str
    proofs: tuple[str, ...] = ()
    benches: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """File and sentence."""
        return f"{self.file}: {self.sentence}"


FAULTS = [
    Fault(
        "A write to SCHED_ATTR keeps the half command.",
        "pages.py",
        "                cmd_got[self.page].eq(0),\n                attr_got",
        "                attr_got",
        proofs=("commands",),
    ),
    Fault(
        "A complete command leaves its attributes for the next.",
        "pages.py",
        "[cmd_got[self.page].eq(0), attr_got[self.page].eq(0)]",
        "cmd_got[self.page].eq(0)",
        proofs=("commands",),
    ),
    Fault(
        "Seven bytes make a command.",
        "pages.py",
        "with m.If(got.all()):",
        "with m.If(got[:7].all()):",
        proofs=("commands",),
    ),
    Fault(
        "Bytes of one page's command are kept for all pages.",
        "pages.py",
        "            cmd_read.addr.eq(self.page),",
        "            cmd_read.addr.eq(0),",
        proofs=("commands",),
    ),
    Fault(
        "A write to SCHED_ATTR after whole attributes adds to them.",
        "pages.py",
        "Mux(attr_got[self.page] == 0xFF, 0, attr_got[self.page]) | self.strobe",
        "attr_got[self.page] | self.strobe",
        proofs=("commands",),
    ),
    Fault(
        "A slot is offered with its last epoch again after 0xFFFF.",
        "pages.py",
        "Mux(self.release_epoch == 0xFFFF, 1, self.release_epoch + 1)",
        "Mux(self.release_epoch == 0xFFFF, self.release_epoch, self.release_epoch + 1)",
        proofs=("offers",),
    ),
    Fault(
        "An offer taken back from a disabled page stays standing.",
        "pages.py",
        "            m.d.sync += self.offered.bit_select(back, 1).eq(0)\n",
        "",
        proofs=("offers",),
    ),
    Fault(
        "An accepted offer stands on.",
        "pages.py",
        "        with m.If(self.accept):\n            m.d.sync += self.offered.bit_select(self.accept_page, 1).eq(0)\n",
        "",
        proofs=("offers",),
    ),
    Fault(
        "Offers are called settled while one is about to be taken back.",
        "pages.py",
        "self.swept & ~surplus.any() & ~(lacking",
        "self.swept & ~(lacking",
        proofs=("offers",),
    ),
    Fault(
        "The sweep leaves the last slot out.",
        "slots.py",
        "self.swept.eq(self.sweep == depth - 1)",
        "self.swept.eq(self.sweep == depth - 2)",
        proofs=("slots",),
    ),
    Fault(
        "An owner row is written while the sweep goes on.",
        "slots.py",
        "owner_write.addr.eq(self.sweep), owner_write.en.eq(1)",
        "owner_write.addr.eq(self.slot), owner_write.en.eq(1)",
        proofs=("slots",),
    ),
    Fault(
        "What joins an empty list at the front does not become its tail.",
        "queue.py",
        "                with m.If(~filled):\n                    m.d.sync += tail.eq(self.slot)\n",
        "",
        proofs=("queue",),
    ),
    Fault(
        "What joins at the front is not linked back to.",
        "queue.py",
        "previous_write.en.eq(filled),",
        "previous_write.en.eq(0),",
        proofs=("queue",),
    ),
    Fault(
        "Taking out the tail leaves it the tail.",
        "queue.py",
        "                    m.d.sync += tail.eq(self.previous)\n                with m.If(is_head & is_tail)",
        "                    m.d.sync += tail.eq(self.slot)\n                with m.If(is_head & is_tail)",
        proofs=("queue",),
    ),
    Fault(
        "A list from which its head is taken counts as empty.",
        "queue.py",
        "with m.If(is_head & is_tail):",
        "with m.If(is_head):",
        proofs=("queue",),
    ),
    Fault(
        "A move to an empty list does not make a head.",
        "queue.py",
        "with m.If(~onto_filled):",
        "with m.If(0):",
        proofs=("queue",),
    ),
    Fault(
        "Cancel of a request of another epoch is carried out.",
        "judge.py",
        "with m.If(free | ~same):",
        "with m.If(free):",
        proofs=("judge",),
    ),
    Fault(
        "The stage STAGE_COUNT is taken.",
        "judge.py",
        "stage >= self.stage_count",
        "stage > self.stage_count",
        proofs=("judge",),
    ),
    Fault(
        "A request may end at position 2^20.",
        "judge.py",
        "attr.start + attr.rows >= 1 << 20",
        "attr.start + attr.rows > 1 << 20",
        proofs=("judge",),
    ),
    Fault(
        "The floor of KV blocks is ignored.",
        "judge.py",
        "attr.kv_blocks + self.blocks_floor > self.blocks_free",
        "attr.kv_blocks > self.blocks_free",
        proofs=("judge",),
    ),
    Fault(
        "Blocks that come back are lost.",
        "seats.py",
        "self.blocks_free.eq(self.blocks_free + self.blocks)",
        "self.blocks_free.eq(self.blocks_free)",
        proofs=("credit",),
    ),
    Fault(
        "A commit that comes while its source's place is left takes the next ticket but one.",
        "trace.py",
        "ticket.eq(give + given)",
        "ticket.eq(give + given + leaves)",
        proofs=("trace",),
    ),
    Fault(
        "A commit lost to a full queue is not counted.",
        "trace.py",
        "sum(lost, start=leaving & ~heads.w_rdy)",
        "sum(lost, start=Const(0))",
        proofs=("trace",),
    ),
    Fault(
        "Ignored completions are traced.",
        "trace.py",
        "    CommitKind.COMPLETE_IGNORED,\n)",
        ")",
        proofs=("trace",),
    ),
    Fault(
        "A stale pop takes a refusal off.",
        "trace.py",
        "m.d.comb += [queue.r_en.eq(hit), self.stale.eq(~hit)]",
        "m.d.comb += [queue.r_en.eq(1), self.stale.eq(~hit)]",
        proofs=("rejects",),
    ),
    Fault(
        "Find-first-set prefers the upper half.",
        "encode.py",
        "upper.eq(low == 0)",
        "upper.eq(high != 0)",
        proofs=("encode_8",),
    ),
    Fault(
        "A transaction is accepted while the one before is decoded.",
        "registers.py",
        "bus.ready.eq(~request.valid & ~(valid & write & ~for_lane) & pages.settled)",
        "bus.ready.eq(~request.valid & pages.settled)",
        proofs=("bus",),
    ),
    Fault(
        "A transaction is accepted while offers are unsettled.",
        "registers.py",
        "~(valid & write & ~for_lane) & pages.settled)",
        "~(valid & write & ~for_lane))",
        proofs=("bus",),
    ),
    Fault(
        "Reads act like writes.",
        "registers.py",
        "with m.If(valid & write):",
        "with m.If(valid):",
        proofs=("bus",),
    ),
    Fault(
        "A request goes on after it is done.",
        "registers.py",
        "with m.If(request.done):",
        "with m.If(request.done & ~request.valid):",
        proofs=("bus",),
    ),
    Fault(
        "REQ_STATUS shows slot 0 where a page has no offer.",
        "registers.py",
        "offer.slot | ~offered.replicate(16)",
        "offer.slot & offered.replicate(16)",
        proofs=("bus",),
    ),
    Fault(
        "A pass goes on to another lane with a dispatch outstanding.",
        "walk.py",
        "self.walking & (~fresh | (outstanding == 0))",
        "self.walking",
        proofs=("walk",),
    ),
    Fault(
        "Stage 1 is left out on the next lane of a pipeline.",
        "walk.py",
        "m.d.sync += [fresh.eq(1), binding.eq(self.binds)]",
        "m.d.sync += [fresh.eq(1)]",
        proofs=("walk",),
    ),
    Fault(
        "A pass is due once more after its loop point.",
        "walk.py",
        "with m.If(self.loop):\n            m.d.sync += self.due.eq(0)",
        "with m.If(self.loop & ~self.due):\n            m.d.sync += self.due.eq(0)",
        proofs=("walk",),
    ),
    Fault(
        "A lane dispatches ahead at DEPTH 1.",
        "dispatch.py",
        "newest.valid | (oldest.valid & (self.depth == 1))",
        "newest.valid",
        proofs=("dispatch",),
    ),
    Fault(
        "A sequence's low half gets to 0xFFFF.",
        "dispatch.py",
        "sequence[:16] == 0xFFFE",
        "sequence[:16] == 0xFFFF",
        proofs=("dispatch",),
    ),
    Fault(
        "BATCH_DONE completes the oldest dispatch from any entry.",
        "dispatch.py",
        "done = self.done_write & mine & (self",
        "done = self.done_write & oldest.valid & (self",
        proofs=("dispatch",),
    ),
    Fault(
        "The poll head shows the newest dispatch first.",
        "dispatch.py",
        "for place in (newest, oldest):",
        "for place in (oldest, newest):",
        proofs=("dispatch",),
    ),
    Fault(
        "Of two PIPELINE registers the smaller has the lane.",
        "pipelines.py",
        "for length in LENGTHS[1:]:",
        "for length in LENGTHS[:0:-1]:",
        proofs=("pipelines",),
    ),
    Fault(
        "A pipeline takes in a group that has requests.",
        "pipelines.py",
        "fits = Cat((self.value == n) & self.vacant[lane : lane + n].all()",
        "fits = Cat((self.value == n) & self.vacant[lane]",
        proofs=("pipelines",),
    ),
    Fault(
        "A seat that is no member is reported finished.",
        "passes.py",
        "finished | (self.finish_seats & view.members)",
        "finished | self.finish_seats",
        proofs=("passes",),
    ),
    Fault(
        "Rows of a chunk are not taken off.",
        "budget.py",
        "rows.eq(rows - self.add_rows), ",
        "",
        proofs=("budget",),
    ),
    Fault(
        "What is left of the cost wraps.",
        "budget.py",
        "cost.eq(Mux(cost > spent, cost - spent, 0))",
        "cost.eq(cost - spent)",
        proofs=("budget",),
    ),
    Fault(
        "A seat above SEATS is offered.",
        "seats.py",
        "~self.seated & below_limit",
        "~self.seated",
        proofs=("seats",),
    ),
    Fault(
        "A tier gives up a seat of its minimum.",
        "seats.py",
        "self._tier_counts[tier] > self.min_seats[tier]",
        "self._tier_counts[tier] >= self.min_seats[tier]",
        proofs=("seats",),
    ),
    Fault(
        "A seat in a pass is paused.",
        "seats.py",
        "(yielding[0] | yielding[1] | yielding[2]) & ~self.busy",
        "(yielding[0] | yielding[1] | yielding[2])",
        proofs=("seats",),
    ),
    Fault(
        "A request cancelled in a seat in no pass stays.",
        "seats.py",
        "(self.marked | self.finished) & ~self.busy)",
        "self.finished & ~self.busy)",
        benches=("cancel",),
    ),
    Fault(
        "A stepped request goes on after it has sampled.",
        "seats.py",
        "self.parking | (self.stepped & self.sampled & self.seated)",
        "self.parking",
        benches=("automatic",),
    ),
    Fault(
        "A prompt read to its end does not turn to decoding.",
        "work.py",
        "complete.eq(work.rest == entry.rows)",
        "complete.eq(0)",
        benches=("automatic",),
    ),
    Fault(
        "An unfinished prompt goes to the tail of its list.",
        "work.py",
        "hand.relink(m, ListOp.PUSH_FRONT, hand.prefilling_list(hand.slots.owner.tier, hand.group))",
        "hand.relink(m, ListOp.PUSH, hand.prefilling_list(hand.slots.owner.tier, hand.group))",
        benches=("policy",),
    ),
    Fault(
        "Each chunk of a prompt is called its first.",
        "work.py",
        "hand.work_next.fresh.eq(0)",
        "hand.work_next.fresh.eq(work.fresh)",
        benches=("policy",),
    ),
    Fault(
        "Chunks of requests that have just retired advance.",
        "work.py",
        "with m.If(seated & (entry.rows != 0)):",
        "with m.If(entry.rows != 0):",
        benches=("cancel",),
    ),
    Fault(
        "A prompt that is parked stays in its list.",
        "work.py",
        '        hand.strobe(m, "park")\n        leave_list(m, hand)\n',
        '        hand.strobe(m, "park")\n',
        benches=("automatic",),
    ),
    Fault(
        "A credit remembered in a seat is used up and parks all the same.",
        "work.py",
        '        hand.strobe(m, "spend_credit")',
        '        hand.strobe(m, "spend_credit", "park")',
        benches=("automatic",),
    ),
    Fault(
        "A pause forgets a remembered credit.",
        "work.py",
        "life=Mux(parked, Life.PARKED, Life.QUEUED), credited=credited)",
        "life=Mux(parked, Life.PARKED, Life.QUEUED), credited=0)",
        benches=("policy",),
    ),
    Fault(
        "One that is paused while parked queues again at once.",
        "work.py",
        "life=Mux(parked, Life.PARKED, Life.QUEUED)",
        "life=Life.QUEUED",
        benches=("policy",),
    ),
    Fault(
        "A paused request goes to the tail of its queue.",
        "core.py",
        "hand.relink(m, ListOp.PUSH_FRONT, hand.waiting_list(owner.tier, hand.group))",
        "hand.relink(m, ListOp.PUSH, hand.waiting_list(owner.tier, hand.group))",
        benches=("policy",),
    ),
    Fault(
        "Who is reported finished retires as cancelled.",
        "work.py",
        "Mux(finished, RetireReason.FINISHED, RetireReason.CANCELLED)",
        "RetireReason.CANCELLED",
        benches=("automatic",),
    ),
    Fault(
        "Requests of a group that is reset retire as cancelled.",
        "work.py",
        "Mux(resetting, RetireReason.LANE_LOST, Mux(",
        "Mux(0, RetireReason.LANE_LOST, Mux(",
        benches=("resets",),
    ),
    Fault(
        "A reset leaves the queues.",
        "work.py",
        "        with m.Elif(waiting.any()):\n            m.d.sync += hand.current.eq(Step.RETIRE_QUEUED)",
        "        with m.Elif(0):\n            m.d.sync += hand.current.eq(Step.RETIRE_QUEUED)",
        benches=("resets",),
    ),
    Fault(
        "A tier below its minimum does not go first.",
        "work.py",
        'Mux(starved.any(), lowest(m, starved, "starved"), lowest(m, welcome, "head_tier"))',
        'lowest(m, welcome, "head_tier")',
        benches=("policy",),
    ),
    Fault(
        "A second pass takes along prompts of every tier.",
        "work.py",
        'plan(m, hand, Const(0, 1), hand.of(hand.seats, "above", group))',
        "plan(m, hand, Const(0, 1), Const(-1, TIERS))",
        benches=("second",),
    ),
    Fault(
        "A reset leaves passes and dispatches as they are.",
        "control.py",
        'hand.strobe(m, "reset_begin", "drop")',
        'hand.strobe(m, "reset_begin")',
        benches=("resets",),
    ),
    Fault(
        "A group that is not vacant changes its seats.",
        "control.py",
        "roomy_seats & vacant",
        "roomy_seats",
        benches=("rejects",),
    ),
    Fault(
        "STAGE_COUNT changes while requests live.",
        "control.py",
        "(value <= hand.params.stages) & all_vacant)",
        "(value <= hand.params.stages))",
        benches=("rejects",),
    ),
    Fault(
        "A lane's sequence is set while a dispatch is outstanding.",
        "control.py",
        "~hand.in_pass.bit_select(group, 1) & ~forming & ~outstanding",
        "~forming",
        benches=("rejects",),
    ),
    Fault(
        "The last rows of a prompt are not called its last.",
        "forming.py",
        "last.eq(work.rest <= grain)",
        "last.eq(work.rest < grain)",
        benches=("policy",),
    ),
    Fault(
        "Chunks leave rows to higher tiers, not to lower ones.",
        "forming.py",
        "(tier < lower) & busy[lower]",
        "(tier > lower) & busy[lower]",
        benches=("policy",),
    ),
    Fault(
        "What stands before a chunk costs nothing.",
        "forming.py",
        "c0 + c1 * hand.slots.work.start[10:]",
        "c0",
        benches=("policy",),
    ),
    Fault(
        "A prompt stays in its list with its chunk.",
        "forming.py",
        "        hand.relink(m, ListOp.UNLINK, hand.prefilling_list(hand.tier, hand.group))\n",
        "",
        benches=("policy",),
    ),
    Fault(
        "Every entry tells the lane to bind.",
        "forming.py",
        "chunk.bind.eq(~bound)",
        "chunk.bind.eq(1)",
        benches=("policy",),
    ),
    Fault(
        "An early credit is not remembered in the queue.",
        "commands.py",
        "hand.own(m, credited=1)",
        "hand.own(m, credited=0)",
        benches=("automatic",),
    ),
    Fault(
        "PARK from a disabled page is carried out.",
        "commands.py",
        "return enabled & (hand.slots.owner.epoch",
        "return (hand.slots.owner.epoch",
        benches=("automatic",),
    ),
    Fault(
        "A credited request queues at the tail.",
        "commands.py",
        "hand.relink(m, ListOp.PUSH_FRONT, hand.waiting_list(owner.tier, owner.group))",
        "hand.relink(m, ListOp.PUSH, hand.waiting_list(owner.tier, owner.group))",
        benches=("automatic",),
    ),
    Fault(
        "A prompt credited in its seat stays out of its list.",
        "commands.py",
        'with m.If(~seated["decoding"]):',
        "with m.If(0):",
        benches=("policy",),
    ),
    Fault(
        "STAGE_DONE of a stale id stops a manual request.",
        "commands.py",
        "with m.If(names_owner(hand) & (owner.life == Life.RUNNING)):",
        "with m.If(owner.life == Life.RUNNING):",
        benches=("manual",),
    ),
    Fault(
        "A stale pop frees the head of the retirement FIFO.",
        "commands.py",
        "lists.filled[lists.retired] & (hand.request.value == hand.retire_index)",
        "lists.filled[lists.retired]",
        benches=("pops",),
    ),
    Fault(
        "A new request keeps the start of the slot's last one.",
        "commands.py",
        "hand.work_next.start.eq(attr.start)",
        "hand.work_next.start.eq(hand.slots.work.start)",
        benches=("automatic",),
    ),
    Fault(
        "Blocks are taken from the group that was served last.",
        "commands.py",
        "                hand.target.eq(attr.group),\n",
        "",
        benches=("automatic",),
    ),
    Fault(
        "A pipeline has second passes.",
        "connect.py",
        "alone & first.alive & ~second.alive",
        "first.alive & ~second.alive",
        benches=("pipeline",),
    ),
    Fault(
        "Passes of a pipeline do not take turns.",
        "connect.py",
        "Mux(later.any(), lowest(",
        "Mux(0, lowest(",
        benches=("pipeline",),
    ),
    Fault(
        "Seats that a lane is about to report finished leave with another lane's pass.",
        "lanes.py",
        "Mux(now, lane.finish_seats, 0)",
        "Mux(1, lane.finish_seats, 0)",
        benches=("completions",),
    ),
    Fault(
        "Entries of a record begin a word late.",
        "record.py",
        "entry.eq((word - BITMAP_WORDS)[1:])",
        "entry.eq((word - BITMAP_WORDS + 1)[1:])",
        benches=("second",),
    ),
    Fault(
        "The last member's report completes nothing.",
        "dispatch.py",
        "reported.eq((self.awaited & ~reporting) == 0)",
        "reported.eq(0)",
        benches=("completions",),
    ),
    Fault(
        "Pass 0 goes before a second pass.",
        "dispatch.py",
        "whose.eq(Mux(second, 0, first + 1))",
        "whose.eq(Mux(firsts.any(), first + 1, 0))",
        benches=("second",),
    ),
]
