"""Why a lane gives up on a request: the codes it posts in place of a token."""

from __future__ import annotations

import enum

__all__ = ["LaneFault"]


class LaneFault(enum.IntEnum):
    """Error code of a token whose status is `TokenStatus.LANE_ERROR`."""

    RECORD_MISMATCH = 1
    """The slot's record is missing or belongs to another request."""

    TOO_LONG = 2
    """The prompt is empty, or with its new tokens longer than the model's context, or may have no new token."""

    KV_BLOCKS = 3
    """The block table is too short for the request, or names a block the lane does not have."""

    UNKNOWN_TOKEN = 4
    """The prompt has a token id outside the vocabulary."""

    BAD_SAMPLING = 5
    """The temperature is negative or no number, a filter is out of range, or a bias names an unknown token."""

    BAD_CHUNK = 6
    """A chunk lies outside the prompt, or its request was never taken in."""

    NOT_A_NUMBER = 7
    """The model's output was not finite."""

    NO_MASK = 8
    """The slot has no mask for the token's position, or one that allows no token."""
