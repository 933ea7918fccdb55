"""Who answers at the other end."""

from __future__ import annotations

from typing import Protocol

from cuelight import regmap
from cuelight.errors import TransportError
from cuelight.regmap import IDENTITY

__all__ = ["identify"]

_MAJOR = 1


class Readable(Protocol):
    """What can be read as a device's registers."""

    def read32(self, offset: int) -> int: ...

    def read64(self, offset: int) -> int: ...


def identify(registers: Readable) -> regmap.IdentityCapabilities:
    """Check who answers, and return what it can do.

    Raises
    ------
    DeviceLost
        Nothing answers.
    TransportError
        What answers is no device of this version.
    """
    magic = registers.read32(IDENTITY + regmap.Identity.MAGIC)
    if magic != regmap.Identity.MAGIC_RESET:
        raise TransportError(f"What answers has the magic {magic:#010x}, so it is no Cuelight; check the URI.")
    version = regmap.IdentityVersion.unpack(registers.read32(IDENTITY + regmap.Identity.VERSION))
    if version.major != _MAJOR:
        raise TransportError(
            f"The device speaks version {version.major} and this driver {_MAJOR}; bring both to one version."
        )
    return regmap.IdentityCapabilities.unpack(registers.read64(IDENTITY + regmap.Identity.CAPABILITIES))
