"""Registers, memory layouts and codes. Generated from `rtl/cuelight.rdl` by `make regs`; do not edit.

Top-level constants are offsets in BAR0. A class named after a type has the offsets within it and its `SIZE`,
all in bytes; arrays have `_STRIDE` and, where it is fixed, `_COUNT` beside them; registers that don't reset to 0
have `_RESET`.

A struct named after a type and one of its registers has the register's fields in place.
"""

import enum

from amaranth.hdl import unsigned
from amaranth.lib import data


class RejectReason(enum.IntEnum):
    """Why a command was refused."""

    PAGE_DISABLED = 1
    """The producer page is not enabled."""

    ILLEGAL_ID = 2
    """Epoch 0, all ones, or a slot that does not exist."""

    STALE_EPOCH = 3
    """Cancel of a request that is gone, or admission with the slot's last epoch."""

    ALREADY_RETIRED = 4
    """The request has retired and waits in the retirement FIFO."""

    UNKNOWN_STAGE = 5
    """Target stage not below STAGE_COUNT, or unfit for an automatic admission."""

    SLOT_IN_USE = 6
    """The slot belongs to another request."""

    REQUEST_RUNNING = 7
    """The request's stage is pending, or its stages are the device's own."""

    DEVICE_FULL = 8
    """The page has no offer."""

    SLOT_NOT_OFFERED = 9
    """The slot is free but not the one offered to this page."""

    BAD_ATTRIBUTE = 10
    """SCHED_ATTR half written, or a field out of range."""

    GROUP_RESETTING = 11
    """The lane group is being reset."""

    NO_KV_CREDIT = 12
    """The lane group has fewer free KV blocks than asked for."""


class RetireReason(enum.IntEnum):
    """Why a request has retired."""

    FINISHED = 1
    """The lane reported the seat as finished."""

    CANCELLED = 2
    """The host cancelled the request."""

    LANE_LOST = 3
    """GROUP_RESET dropped the request's lane group."""


class CommitKind(enum.IntEnum):
    """What an atomic step did, and its fields on the commit port and in the event trace."""

    ADMIT = 1
    """lane: group, stage: page | automatic << 3 | tier << 4, id, detail: KV blocks, or the target stage of a manual
    request"""

    RETARGET = 2
    """stage: target, id, detail: page"""

    STAGE_DONE = 3
    """id"""

    STAGE_DONE_IGNORED = 4
    """id as written"""

    CANCEL = 5
    """stage: 0 freed, 1 retired from its queue, 2 marked, 3 was marked; id, detail: page"""

    REJECT = 6
    """stage: reason, id, detail: page | target stage [23:0] << 8"""

    SEAT = 7
    """lane: group, stage: seat, id, detail: [1:0] tier, [8] decodes already"""

    RETIRE = 8
    """lane: group, stage: reason, id, detail: [7:0] seat, [8] had none"""

    FREE = 9
    """id, detail: index popped"""

    POP_IGNORED = 10
    """detail: index written to RETIRE_POP"""

    LOOP_POINT = 11
    """lane: group, stage: pass, id: pass number"""

    ADVANCE = 12
    """lane: group, stage: seat, id, detail: [19:0] new start, [31] prompt complete, decodes from now on"""

    PLAN = 13
    """lane: group, stage: pass, id: pass number, detail: [15:0] decode rows, [19:16] lanes of the group"""

    CHUNK = 14
    """lane: group, stage: seat, id, detail: [19:0] start, [29:20] rows (0: binds a seat that decodes), [30] last, [31]
    first"""

    FORM = 15
    """lane: group, stage: entries, id: pass number, detail: rows"""

    DISPATCH = 16
    """lane, stage, id: sequence, detail: [9:0] rows, [12:10] pass, [15:13] its group, [27:16] decision cycles
    (saturated), [31:28] flags"""

    COMPLETE = 17
    """lane, stage, id: sequence"""

    COMPLETE_IGNORED = 18
    """lane, id: value written to BATCH_DONE"""

    TAKEN = 19
    """lane, id: sequence popped from the poll head"""

    GROUP_RESET = 20
    """lane: group; dispatch and pass are dropped, retirements follow"""

    GROUP_READY = 21
    """lane: group; the reset is complete"""

    CONFIG = 22
    """id: register offset, detail: value written"""

    CONFIG_IGNORED = 23
    """id: register offset, detail: value refused"""

    OFFER = 24
    """stage: page, id: OFFER_ID"""

    UNOFFER = 25
    """stage: page, id: OFFER_ID withdrawn"""

    PARK = 26
    """stage: 0 ignored, 1 taken out of its queue, 2 parks at the loop point, 3 was parked or parking, 4 used up a
    credit; id, detail: page"""

    CREDIT = 27
    """stage: 0 ignored, 1 queues again, 2 goes on in its seat, 3 remembered, 4 had one remembered; id, detail: page"""

    PARKED = 28
    """lane: group, stage: seat, detail: 0 parked, 1 used up a credit"""

    PAUSE = 29
    """lane: group, stage: seat, id, detail: [1:0] tier, [8] parked"""

    REOFFERED = 30
    """lane, id: sequence of its oldest outstanding dispatch; it and those after it wait in the poll head again"""


class PushCommand(enum.IntEnum):
    """What the host wants a lane's mode to be."""

    POLL = 1
    """Fall back to POLL."""

    PUSH = 2
    """The host delivers nothing any more: PUSH. Refused unless the lane is in PROBING and no heartbeat is needed any
    more."""

    PROBE = 3
    """Probe. Refused unless the lane is in POLL, GENERATION differs from what it was when the lane fell (at first from
    0), both addresses are set and the function may master."""


class PushMode(enum.IntEnum):
    """How a lane's dispatches are delivered."""

    POLL = 0
    """The host takes the lane's dispatches from the poll window; the device masters nothing for the lane."""

    PROBING = 1
    """As POLL, but heartbeats are read; after enough good ones the host may hand the lane over."""

    PUSH = 2
    """The device writes records and dispatches into the lane's port."""

    FALLING = 3
    """Nothing is pushed any more, and what is outstanding is about to be offered again; POLL follows."""


class FallCause(enum.IntEnum):
    """Why a lane fell from PUSH or PROBING back to POLL."""

    COMMAND = 1
    """COMMAND said so."""

    TIMEOUT = 2
    """No completion in time: the hard block's timer, or COMPLETION_TIMEOUT."""

    UNSUPPORTED = 3
    """The heartbeat read was answered with Unsupported Request."""

    ABORTED = 4
    """It was answered with Completer Abort."""

    POISONED = 5
    """Its completion was poisoned."""

    MALFORMED = 6
    """Its completion was something else than one dword."""

    STOPPED = 7
    """The heartbeat has not moved for STALL."""

    OVERDUE = 8
    """The oldest outstanding dispatch has stayed the oldest for OVERDUE."""

    NO_MASTERING = 9
    """Bus mastering was switched off."""


PAGE = 0x0000
PAGE_STRIDE = 0x1000
PAGE_COUNT = 8
IDENTITY = 0x8000
CONTROL = 0x8100
LANE = 0x8200
LANE_STRIDE = 0x0040
LANE_COUNT = 8
GROUP = 0x8400
GROUP_STRIDE = 0x0040
GROUP_COUNT = 8
TIER = 0x8600
TIER_STRIDE = 0x0020
TIER_COUNT = 4
FIFO = 0x8800
COUNTERS = 0x8A00
COMPLETION = 0xA000
COMPLETION_STRIDE = 0x0400
COMPLETION_COUNT = 8
COMPLETION_ENTRY = 0x0000
COMPLETION_ENTRY_STRIDE = 0x0040
COMPLETION_ENTRY_COUNT = 16
POLL = 0xC000
POLL_STRIDE = 0x0400
POLL_COUNT = 8
PUSH = 0xE000
PUSH_STRIDE = 0x0100
PUSH_COUNT = 8
ENDPOINT = 0xFF00


class Page:
    """Producer page."""

    REQ_STATUS = 0x0000
    REQ_STATUS_RESET = 0xFFFF0000
    SCHED_CMD = 0x0008
    STAGE_DONE = 0x0010
    SCHED_ATTR = 0x0018
    OFFER_ID = 0x0020
    PARK = 0x0028
    CREDIT = 0x0030
    SIZE = 0x1000


class Identity:
    """Identity."""

    MAGIC = 0x0000
    MAGIC_RESET = 0x4C455543
    VERSION = 0x0004
    VERSION_RESET = 0x10000
    BOOT_NONCE = 0x0008
    CAPABILITIES = 0x0010
    TIME_NS = 0x0018
    CYCLES = 0x0020
    RTL_HASH = 0x0040
    RTL_HASH_STRIDE = 0x0004
    RTL_HASH_COUNT = 4
    SIZE = 0x0050


class Control:
    """Control."""

    PAGE_ENABLE = 0x0000
    PAGE_ENABLE_RESET = 1
    GROUP_RESET = 0x0008
    STAGE_COUNT = 0x0010
    STAGE_COUNT_RESET = 0x80
    SIZE = 0x0014


class Lane:
    """Lane."""

    LANE_STATUS = 0x0000
    SEQUENCE = 0x0008
    SEQUENCE_RESET = 1
    PASS = 0x0010
    BUSY_NS = 0x0018
    DEPTH = 0x0020
    DEPTH_RESET = 2
    FIRST_STAGE = 0x0028
    PIPELINE = 0x0030
    PIPELINE_RESET = 1
    OLDEST = 0x0038
    SIZE = 0x0040


class Group:
    """Lane group."""

    SEATS = 0x0000
    ROWS = 0x0008
    KV_BLOCKS = 0x0010
    KV_FREE = 0x0018
    OCCUPANCY = 0x0020
    COST = 0x0028
    COST_RESET = 0xFFFFFFFF
    COST_DECODE = 0x0030
    COST_CHUNK = 0x0038
    SIZE = 0x0040


class Tier:
    """Tier."""

    MIN_SEATS = 0x0000
    MIN_ROWS = 0x0008
    KV_FLOOR = 0x0010
    SEAT_FLOOR = 0x0018
    SIZE = 0x0020


class Fifo:
    """FIFOs."""

    REJECT_HEAD = 0x0000
    REJECT_POP = 0x0008
    RETIRE_HEAD = 0x0010
    RETIRE_POP = 0x0018
    TRACE_HEAD = 0x0020
    TRACE_PAYLOAD = 0x0028
    TRACE_STATE = 0x0030
    TRACE_POP = 0x0038
    SIZE = 0x003C


class Counters:
    """Counters."""

    ADMITTED = 0x0000
    RETIRED = 0x0004
    REJECTED = 0x0008
    REJECTS_LOST = 0x000C
    STAGE_DONE_IGNORED = 0x0010
    COMPLETIONS_IGNORED = 0x0014
    POPS_IGNORED = 0x0018
    CONFIG_IGNORED = 0x001C
    PASSES = 0x0020
    DISPATCHES = 0x0024
    ROWS = 0x0028
    TRACE_LOST = 0x002C
    DECISION_CYCLES = 0x0030
    PAUSES = 0x0038
    SIZE = 0x003C


class Completion:
    """Completion entry."""

    FINISHED = 0x0000
    FINISHED_STRIDE = 0x0004
    FINISHED_COUNT = 8
    BATCH_DONE = 0x0020
    SIZE = 0x0040


class Dispatch:
    """Dispatch descriptor."""

    HEAD = 0x0000
    PASS = 0x0008
    RESERVED = 0x0010
    TAIL = 0x0018
    SIZE = 0x0020


class BitmapUnit:
    """Unit of the decode bitmap."""

    WORD = 0x0000
    WORD_STRIDE = 0x0004
    WORD_COUNT = 3
    TAIL = 0x000C
    SIZE = 0x0010


class Entry:
    """Entry of a pass record."""

    REQUEST = 0x0000
    CHUNK = 0x0004
    ROWS = 0x0008
    TAIL = 0x000C
    SIZE = 0x0010


class Record:
    """Pass record."""

    BITMAP = 0x0000
    BITMAP_STRIDE = 0x0010
    BITMAP_COUNT = 3
    ENTRY = 0x0030
    ENTRY_STRIDE = 0x0010
    ENTRY_COUNT = 16
    SIZE = 0x0200


class Poll:
    """Poll registers."""

    DISPATCH = 0x0000
    POP = 0x0020
    REOFFER = 0x0028
    RECORD = 0x0200
    SIZE = 0x0400


class Push:
    """Push."""

    COMMAND = 0x0000
    STATUS = 0x0008
    PORT_ADDRESS = 0x0010
    HEARTBEAT_ADDRESS = 0x0018
    GENERATION = 0x0020
    COMPLETION_TIMEOUT = 0x0028
    COMPLETION_TIMEOUT_RESET = 0x2710
    OVERDUE = 0x0030
    PERIOD = 0x0038
    PERIOD_RESET = 0x3E8
    STALL = 0x0040
    STALL_RESET = 0x1E8480
    REST = 0x0048
    REST_RESET = 0x186A0
    BEATS = 0x0050
    BEATS_RESET = 4
    HEARTBEAT = 0x0058
    FALLS = 0x0080
    FALLS_STRIDE = 0x0004
    FALLS_COUNT = 10
    RETURNS = 0x00C0
    LATE = 0x00C4
    PUSHED = 0x00C8
    REFUSED = 0x00CC
    SIZE = 0x0100


class Endpoint:
    """PCI Express endpoint."""

    SPOILT = 0x0000
    DROPPED = 0x0004
    REFUSED = 0x0008
    POISONED = 0x000C
    SIZE = 0x0010


class Segment:
    """Shared segment header."""

    MAGIC = 0x0000
    LAYOUT = 0x0004
    LANES = 0x0008
    SLOTS = 0x000C
    SEATS = 0x0010
    TOKENS = 0x0014
    CONTEXT = 0x0018
    BLOCKS = 0x001C
    PORTS = 0x0020
    PORT_STRIDE = 0x0024
    RECORDS = 0x0028
    RECORD_STRIDE = 0x002C
    VOCABULARY = 0x0030
    MASKS = 0x0034
    MASK_STRIDE = 0x0038
    DEVICE_BELL = 0x0040
    HOST_BELL = 0x0080
    SIZE = 0x0084


class Bias:
    """Logit bias."""

    TOKEN = 0x0000
    VALUE = 0x0004
    SIZE = 0x0008


class SlotRecord:
    """Slot record."""

    REQUEST = 0x0000
    PROMPT = 0x0004
    LIMIT = 0x0008
    BLOCKS = 0x000C
    TEMPERATURE = 0x0010
    FLAGS = 0x0014
    SEED = 0x0018
    TOP_K = 0x0020
    TOP_P = 0x0024
    MIN_P = 0x0028
    REPETITION = 0x002C
    PRESENCE = 0x0030
    FREQUENCY = 0x0034
    TOP_LOGPROBS = 0x0038
    BIASES = 0x003C
    PRODUCED = 0x0040
    BIAS = 0x0080
    BIAS_STRIDE = 0x0008
    BIAS_COUNT = 300
    TABLE = 0x0A00
    TABLE_STRIDE = 0x0004
    SIZE = 0x0A00


class Token:
    """Token ring entry."""

    TURN = 0x0000
    REQUEST = 0x0004
    POSITION = 0x0008
    TOKEN = 0x000C
    LOGPROB = 0x0010
    STATUS = 0x0014
    SIZE = 0x0020


class LanePort:
    """Lane port."""

    BELL = 0x0000
    EXPECTED = 0x0040
    PID = 0x0080
    HEARTBEAT = 0x0084
    STOP = 0x0088
    TOKENS_READ = 0x00C0
    RING = 0x0400
    RING_STRIDE = 0x0020
    RING_COUNT = 16
    DONE = 0x0800
    DONE_STRIDE = 0x0040
    DONE_COUNT = 16
    RECORD = 0x1000
    RECORD_STRIDE = 0x0200
    RECORD_COUNT = 16
    TOKEN_RING = 0x3000
    TOKEN_RING_STRIDE = 0x0020
    SIZE = 0x3000


class Mask:
    """Token mask."""

    POSITION = 0x0000
    ALLOWED = 0x0040
    ALLOWED_STRIDE = 0x0004
    SIZE = 0x0040


class PageReqStatus(data.Struct):
    """Request status. Never all ones."""

    active: unsigned(16)
    slot: unsigned(16)


class PageSchedCmd(data.Struct):
    """Scheduling command. Takes effect once, when the last of its eight bytes has arrived."""

    stage: unsigned(32)
    id: unsigned(32)


class PageSchedAttr(data.Struct):
    """Scheduling attributes. For the page's next complete SCHED_CMD, accepted or not. Writing discards a half
    command."""

    automatic: unsigned(1)
    stepped: unsigned(1)
    tier: unsigned(2)
    group: unsigned(3)
    _7: unsigned(1)
    kv_blocks: unsigned(16)
    rows: unsigned(20)
    start: unsigned(20)


class IdentityVersion(data.Struct):
    """Version."""

    minor: unsigned(16)
    major: unsigned(16)


class IdentityCapabilities(data.Struct):
    """Capabilities."""

    slots: unsigned(16)
    seats: unsigned(16)
    stages: unsigned(16)
    lanes: unsigned(4)
    tiers: unsigned(4)
    pages: unsigned(4)
    _60: unsigned(4)


class ControlPageEnable(data.Struct):
    """Page enable."""

    pages: unsigned(8)
    _8: unsigned(24)


class LaneLaneStatus(data.Struct):
    """Lane status."""

    outstanding: unsigned(1)
    offered: unsigned(1)
    in_pass: unsigned(1)
    resetting: unsigned(1)
    _4: unsigned(4)
    stage: unsigned(8)
    _16: unsigned(16)


class GroupOccupancy(data.Struct):
    """Occupancy."""

    queued: unsigned(16)
    seated: unsigned(16)
    decoding: unsigned(16)
    parked: unsigned(16)


class GroupCostDecode(data.Struct):
    """Cost of a decode row. Writable at any time."""

    cost: unsigned(16)
    _16: unsigned(16)


class GroupCostChunk(data.Struct):
    """Cost of chunks. A chunk of n rows costs n (c0 + c1 (start >> 10)). Writable at any time."""

    c0: unsigned(16)
    c1: unsigned(16)


class FifoRejectHead(data.Struct):
    """Reject head."""

    id: unsigned(32)
    reason: unsigned(4)
    page: unsigned(3)
    _39: unsigned(1)
    index: unsigned(16)
    _56: unsigned(7)
    valid: unsigned(1)


class FifoRetireHead(data.Struct):
    """Retirement head."""

    id: unsigned(32)
    reason: unsigned(3)
    _35: unsigned(5)
    index: unsigned(16)
    _56: unsigned(7)
    valid: unsigned(1)


class FifoTraceHead(data.Struct):
    """Trace head."""

    time_ns: unsigned(48)
    kind: unsigned(5)
    lane: unsigned(3)
    stage: unsigned(8)


class FifoTracePayload(data.Struct):
    """Trace head, payload."""

    id: unsigned(32)
    detail: unsigned(32)


class FifoTraceState(data.Struct):
    """Trace state."""

    index: unsigned(32)
    held: unsigned(16)
    _48: unsigned(16)


class DispatchHead(data.Struct):
    """Head. All zero: none."""

    sequence: unsigned(32)
    stage: unsigned(8)
    buffer: unsigned(4)
    first: unsigned(1)
    last: unsigned(1)
    samples: unsigned(1)
    _47: unsigned(1)
    rows: unsigned(16)


class DispatchPass(data.Struct):
    """Pass."""

    pass_number: unsigned(32)
    entries: unsigned(8)
    _40: unsigned(8)
    stamp: unsigned(16)


class DispatchTail(data.Struct):
    """Stamp."""

    _0: unsigned(48)
    stamp: unsigned(16)


class BitmapUnitTail(data.Struct):
    """Stamp."""

    _0: unsigned(16)
    stamp: unsigned(16)


class EntryChunk(data.Struct):
    """Chunk."""

    start: unsigned(20)
    seat: unsigned(8)
    bind: unsigned(1)
    first: unsigned(1)
    last: unsigned(1)
    _31: unsigned(1)


class EntryRows(data.Struct):
    """Rows."""

    rows: unsigned(16)
    _16: unsigned(16)


class EntryTail(data.Struct):
    """Stamp."""

    _0: unsigned(16)
    stamp: unsigned(16)


class PushStatus(data.Struct):
    """Push status."""

    mode: unsigned(2)
    reading: unsigned(1)
    _3: unsigned(1)
    resting: unsigned(2)
    _6: unsigned(2)
    cause: unsigned(4)
    _12: unsigned(4)
    needed: unsigned(8)
    _24: unsigned(8)


class SlotRecordFlags(data.Struct):
    """Flags."""

    ignore_eos: unsigned(1)
    masked: unsigned(1)
    _2: unsigned(30)


class TokenStatus(data.Struct):
    """Status."""

    finish: unsigned(8)
    _8: unsigned(24)
