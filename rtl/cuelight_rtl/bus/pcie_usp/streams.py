"""The four streams of the UltraScale+ hard block PCIE4, and the descriptors that begin their packets.

As AMD PG213 (1.3) has them, section "AXI4-Stream Interface Description", for 256 bits, dword-aligned, without straddle
and without parity: a packet begins in dword 0 of a beat and has all dwords of its beats but the last one.

======  ===========================  ====================================================
CQ      completer requests           what the host reads and writes in our BARs
CC      completer completions        our answers to these
RQ      requester requests           what we read and write in memory
RC      requester completions        answers to what we read
======  ===========================  ====================================================
"""

import enum

from amaranth.lib import data, stream

__all__ = [
    "CC",
    "CQ",
    "DWORDS",
    "RC",
    "RQ",
    "CcDescriptor",
    "CcUser",
    "CompletionStatus",
    "CqDescriptor",
    "CqUser",
    "LocalError",
    "RcDescriptor",
    "RcError",
    "RcUser",
    "RequestType",
    "RqDescriptor",
    "RqUser",
]

DWORDS = 8
"""Dwords of a beat."""


class RequestType(enum.IntEnum):
    """What a request asks for."""

    MEMORY_READ = 0
    MEMORY_WRITE = 1
    IO_READ = 2
    IO_WRITE = 3
    FETCH_ADD = 4
    SWAP = 5
    COMPARE_SWAP = 6
    LOCKED_READ = 7
    CONFIGURATION_READ_0 = 8
    CONFIGURATION_READ_1 = 9
    CONFIGURATION_WRITE_0 = 10
    CONFIGURATION_WRITE_1 = 11
    MESSAGE = 12
    VENDOR_MESSAGE = 13
    ATS_MESSAGE = 14


class CompletionStatus(enum.IntEnum):
    """How a request ended (PCI Express Base Specification, 2.2.9)."""

    SUCCESSFUL = 0
    UNSUPPORTED_REQUEST = 1
    RETRY = 2
    COMPLETER_ABORT = 4


class RcError(enum.IntEnum):
    """What the hard block found wrong with a completion."""

    NONE = 0
    POISONED = 1
    BAD_STATUS = 2
    BAD_LENGTH = 3
    MISMATCH = 4
    BAD_ADDRESS = 5
    BAD_TAG = 6
    FUNCTION_RESET = 8
    TIMEOUT = 9


class LocalError(enum.IntEnum):
    """What the hard block tells of on cfg_local_error_out; one code of many."""

    POISONED_WRITE_DROPPED = 0b10110


class CqDescriptor(data.Struct):
    """Four dwords before the payload of a request to us; messages have other fields in place of the address."""

    address_type: 2
    address: 62
    """In dwords."""
    count: 11
    """Dwords."""
    kind: RequestType
    reserved_79: 1
    requester: 16
    tag: 8
    function: 8
    bar: 3
    """Number of the BAR that was hit; 6: the expansion ROM."""
    aperture: 6
    """Logarithm of the BAR's size in bytes."""
    traffic_class: 3
    attributes: 3
    reserved_127: 1


class CqUser(data.Struct):
    """Beside a beat of CQ. Byte enables come with the first one, ``discontinue`` with the last one."""

    first_be: 4
    last_be: 4
    byte_en: 32
    sop: 1
    discontinue: 1
    """The packet was spoilt inside of the hard block; all of it is to be thrown away."""
    tph_present: 1
    tph_type: 2
    tph_st_tag: 8
    parity: 32
    reserved: 3


class CcDescriptor(data.Struct):
    """Three dwords before the payload of a completion of ours.

    One without success has count 0 and is followed by five dwords that tell the hard block of the request: its byte
    enables, and its descriptor.
    """

    lower_address: 7
    reserved_7: 1
    address_type: 2
    reserved_10: 6
    byte_count: 13
    locked: 1
    reserved_30: 2
    count: 11
    """Dwords of this packet."""
    status: CompletionStatus
    poisoned: 1
    reserved_47: 1
    requester: 16
    tag: 8
    function: 8
    bus: 8
    own_completer: 1
    """Function and bus are as written here; else an endpoint's are its own."""
    traffic_class: 3
    attributes: 3
    force_ecrc: 1


class CcUser(data.Struct):
    """Beside a beat of CC."""

    discontinue: 1
    parity: 32


class RqDescriptor(data.Struct):
    """Four dwords before the payload of a request of ours."""

    address_type: 2
    address: 62
    """In dwords."""
    count: 11
    """Dwords."""
    kind: RequestType
    poisoned: 1
    function: 8
    bus: 8
    tag: 8
    completer: 16
    own_requester: 1
    """Function and bus are as written here; else an endpoint's are its own."""
    traffic_class: 3
    attributes: 3
    """Bit 0: no snoop, 1: relaxed ordering, 2: ordered by id."""
    force_ecrc: 1


class RqUser(data.Struct):
    """Beside a beat of RQ. Byte enables come with the first one."""

    first_be: 4
    last_be: 4
    address_offset: 3
    discontinue: 1
    tph_present: 1
    tph_type: 2
    tph_indirect: 1
    tph_st_tag: 8
    sequence_low: 4
    parity: 32
    sequence_high: 2


class RcDescriptor(data.Struct):
    """Three dwords before the payload of an answer to us."""

    lower_address: 12
    error: RcError
    byte_count: 13
    """Bytes that are still to come for this request, those here among them."""
    locked: 1
    completed: 1
    """Nothing more comes for the request; its tag is free."""
    reserved_31: 1
    count: 11
    """Dwords of this packet."""
    status: CompletionStatus
    poisoned: 1
    reserved_47: 1
    requester: 16
    tag: 8
    completer: 16
    reserved_88: 1
    traffic_class: 3
    attributes: 3
    reserved_95: 1


class RcUser(data.Struct):
    """Beside a beat of RC."""

    byte_en: 32
    sof_0: 1
    sof_1: 1
    eof_0: 4
    eof_1: 4
    discontinue: 1
    """The packet was spoilt inside of the hard block; all of it is to be thrown away."""
    parity: 32


def _stream(user: type[data.Struct]) -> stream.Signature:
    """Beats of 256 bits; a bit of ``keep`` stands for a dword."""
    return stream.Signature(data.StructLayout({"data": 32 * DWORDS, "keep": DWORDS, "last": 1, "user": user}))


CQ, CC, RQ, RC = _stream(CqUser), _stream(CcUser), _stream(RqUser), _stream(RcUser)
