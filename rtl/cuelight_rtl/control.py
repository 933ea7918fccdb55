"""Control writes: validated, then carried out."""

from __future__ import annotations

from amaranth.hdl import Array, Cat, Const, Module, Signal

from .commit import report
from .hand import Hand, Job
from .regmap import CONTROL, LANE, TIER, CommitKind, Control, Group, Lane, Tier

__all__ = ["execute_config"]

ROWS_MAX = 512
ROWS_MARGIN = 16
"""A pass has room for two smallest chunks beside a full house that decodes."""


def execute_config(m: Module, hand: Hand) -> None:
    offset, value = hand.request.offset, hand.request.value
    index = offset[6:9]
    legal = Signal()
    m.d.comb += hand.target.eq(index)
    with m.Switch(offset):
        with m.Case(CONTROL + Control.PAGE_ENABLE):
            m.d.comb += [legal.eq(value < 256), hand.pages.set_enable.eq(legal), hand.pages.value.eq(value)]
        with m.Case(CONTROL + Control.STAGE_COUNT):
            all_vacant = Cat(room.vacant for room in hand.seats).all()
            m.d.comb += legal.eq((value != 0) & (value <= hand.params.stages) & all_vacant)
            with m.If(legal):
                m.d.sync += hand.core.stage_count.eq(value)
        with m.Case(CONTROL + Control.GROUP_RESET):
            absorbed = hand.lanes.pipelines.absorbed.bit_select(value[:3], 1)
            m.d.comb += [hand.target.eq(value), legal.eq((value < hand.params.lanes) & ~absorbed)]
            with m.If(legal):
                hand.strobe(m, "reset_begin", "drop")
                with m.If(hand.group == value):
                    m.d.sync += hand.job.eq(Job.NONE)
        with m.Default():
            # The tables stand 0x200 apart: lanes, groups, tiers.
            with m.Switch(offset[9:11]):
                with m.Case(LANE >> 9 & 3):
                    configure_lane(m, hand, legal)
                with m.Case(TIER >> 9 & 3):
                    configure_tier(m, hand, legal)
                with m.Default():
                    configure_group(m, hand, legal)
    with m.If(~legal):
        report(m, hand.step, CommitKind.CONFIG_IGNORED, id=offset, detail=value)
    with m.Elif(offset == CONTROL + Control.GROUP_RESET):
        report(m, hand.step, CommitKind.GROUP_RESET, lane=value)
    with m.Else():
        report(m, hand.step, CommitKind.CONFIG, id=offset, detail=value)


def configure_lane(m: Module, hand: Hand, legal: Signal) -> None:
    offset, value = hand.request.offset, hand.request.value
    index, pipelines = offset[6:9], hand.lanes.pipelines
    group = Array(pipelines.owners)[index]
    forming = (hand.job == Job.FORM) & (hand.group == group)
    outstanding = hand.of(hand.lanes.dispatchers, "outstanding", index)
    at_rest = ~hand.in_pass.bit_select(group, 1) & ~forming & ~outstanding
    m.d.comb += [pipelines.lane.eq(index), pipelines.value.eq(value)]
    with m.Switch(offset[:6]):
        for register, strobe, condition in (
            (Lane.SEQUENCE, hand.strobes["set_sequence"], (value[:16] != 0) & (value[:16] != 0xFFFF) & at_rest),
            (Lane.DEPTH, hand.strobes["set_depth"], ((value == 1) | (value == 2)) & at_rest),
            (
                Lane.FIRST_STAGE,
                pipelines.set_first_stage,
                (value < hand.params.stages) & hand.of(hand.seats, "vacant", group),
            ),
            (Lane.PIPELINE, pipelines.set_pipeline, pipelines.legal),
        ):
            with m.Case(register):
                m.d.comb += [legal.eq(condition), strobe.eq(condition)]


def configure_group(m: Module, hand: Hand, legal: Signal) -> None:
    offset, value = hand.request.offset, hand.request.value
    vacant, limit, rows = (hand.of(hand.seats, name, offset[6:9]) for name in ("vacant", "limit", "rows"))
    roomy_seats = (value != 0) & (value <= hand.params.seats) & (value + ROWS_MARGIN <= rows)
    roomy_rows = (value >= limit + ROWS_MARGIN) & (value <= ROWS_MAX)
    with m.Switch(offset[:6]):
        for register, strobe, condition in (
            (Group.SEATS, "set_limit", roomy_seats & vacant),
            (Group.ROWS, "set_rows", roomy_rows & vacant),
            (Group.KV_BLOCKS, "set_blocks", (value < 1 << 16) & vacant),
            (Group.COST, "set_cost", Const(1)),
            (Group.COST_DECODE, "set_decode_cost", value < 1 << 16),
            (Group.COST_CHUNK, "set_chunk_cost", Const(1)),
        ):
            with m.Case(register):
                m.d.comb += [legal.eq(condition), hand.strobes[strobe].eq(condition)]


def configure_tier(m: Module, hand: Hand, legal: Signal) -> None:
    offset, value = hand.request.offset, hand.request.value
    tier = offset[5:7]
    with m.Switch(offset[:5]):
        for register, table, most in (
            (Tier.MIN_SEATS, hand.core.min_seats, hand.params.seats),
            (Tier.MIN_ROWS, hand.core.min_rows, ROWS_MAX),
            (Tier.KV_FLOOR, hand.core.kv_floor, 0xFFFF),
            (Tier.SEAT_FLOOR, hand.core.seat_floor, hand.params.seats),
        ):
            with m.Case(register):
                m.d.comb += legal.eq(value <= most)
                with m.If(legal):
                    m.d.sync += table[tier].eq(value)
