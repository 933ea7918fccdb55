"""Exact cycles of the RTL with every slot in use, and the account of its state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple

from cuelight_rtl.account import state_bits
from cuelight_rtl.params import Params
from cuelight_sim.cycles import measure
from cuelight_sim.loop_points import LoopPoint

_KIBIBYTE_BITS = 8 * 1024


def main() -> None:
    """Print cycles at the default size, then state room by room."""
    params = Params()
    cycles = measure(params)
    print(f"{params.slots} slots, all in use; {params.lanes} lanes of {params.seats} seats; worst cycles:")
    print(f"  {cycles.command_to_status:6d}   SCHED_CMD accepted → REQ_STATUS shows it")
    print(f"  {cycles.manual_admission:6.2f}   each manual admission, sustained")
    print(f"  {cycles.automatic_admission:6.2f}   each automatic admission, its attributes included, sustained")
    print(f"  {cycles.automatic_admission_beside_seating:6.2f}   the same while seats are taken and a pass is formed")
    print(
        f"  {cycles.done_to_dispatch:6d}   BATCH_DONE accepted inside a pass → next dispatch in the poll head, depth 1"
    )
    print(f"  {cycles.done_to_dispatch_ahead:6d}   the same at depth 2, a dispatch ahead")
    print(f"  {cycles.done_beside_loop_point:6d}   the same at depth 1 beside another group's loop point, 16 changes")
    for depth, second in enumerate(cycles.second_passes, start=1):
        print(f"  {second.done_to_dispatch:6d}   BATCH_DONE accepted → a second pass's first dispatch, depth {depth}")
        print(f"  {second.command_to_form:6d}   SCHED_CMD of a VIP accepted → its second pass is formed, depth {depth}")
        print(f"  {second.command_to_form_in_full_house:6d}   the same where a parked request is paused for it")
    _print_loop_points(cycles.loop_points)
    bits = state_bits(params)
    print(f"state: {sum(bits.values()) / _KIBIBYTE_BITS:.2f} KiB")
    for room, count in bits.items():
        print(f"  {count / _KIBIBYTE_BITS:6.2f} KiB  {room}")


def _print_loop_points(points: Iterable[LoopPoint]) -> None:
    print("last BATCH_DONE of a pass accepted → next pass's first dispatch in the poll head, every seat taken:")
    print("   seats    left  joined  chunks  cycles")
    for seats, left, joined, chunks, cycles in sorted({astuple(point) for point in points}):
        print(f"  {seats:6d}  {left:6d}  {joined:6d}  {chunks:6d}  {cycles:6d}")


if __name__ == "__main__":
    main()
