"""Exact cycles of the RTL with every slot in use, and the account of its state."""

from __future__ import annotations

from cuelight_rtl.account import state_bits
from cuelight_rtl.params import Params
from cuelight_sim.cycles import measure

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
    print(f"  {cycles.done_to_dispatch:6d}   BATCH_DONE accepted inside a pass → next dispatch in the poll head")
    print(
        f"  {cycles.loop_to_dispatch:6d}   last BATCH_DONE of a pass accepted → next pass's first dispatch, all decode"
    )
    print(f"  {cycles.turnover_to_dispatch:6d}   the same, where one request finishes and another takes its seat")
    bits = state_bits(params)
    print(f"state: {sum(bits.values()) / _KIBIBYTE_BITS:.2f} KiB")
    for room, count in bits.items():
        print(f"  {count / _KIBIBYTE_BITS:6.2f} KiB  {room}")


if __name__ == "__main__":
    main()
