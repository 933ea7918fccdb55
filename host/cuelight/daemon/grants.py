"""What the device grants each tier, by the daemon's settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from cuelight.daemon.settings import TierSettings
from cuelight.device import Device
from cuelight.policy import Tier, open_tiers

__all__ = ["grant"]


def grant(device: Device, tiers: Mapping[str, TierSettings]) -> list[Tier]:
    """Tiers for `Device.set_tiers`; what settings leave out is as `LLM.open` has it.

    Parameters
    ----------
    device
        A configured device.
    tiers
        By name.
    """
    group = device.status().groups[0]
    most_blocks = -(-device.context // device.block_positions)
    granted = list(open_tiers(device.capabilities.tiers, group.seats, group.kv_blocks, most_blocks))
    for tier in tiers.values():
        said = {name: getattr(tier, name) for name in ("min_seats", "min_rows", "kv_floor", "seat_floor")}
        granted[tier.level] = dataclasses.replace(
            granted[tier.level], **{name: value for name, value in said.items() if value is not None}
        )
    return granted
