/* Cuelight: registers, memory layouts and codes.
 * Generated from rtl/cuelight.rdl by `make regs`; do not edit.
 *
 * CUELIGHT_<INSTANCE> is an offset in BAR0, CUELIGHT_<TYPE>_<MEMBER> an offset within a type and
 * CUELIGHT_<TYPE>_SIZE its size, all in bytes; arrays have _STRIDE and, where it is fixed, _COUNT.
 * CUELIGHT_<TYPE>_<REGISTER>_<FIELD> has _BIT (the lowest), _WIDTH and _MASK (in place).
 */
#ifndef CUELIGHT_REGS_H
#define CUELIGHT_REGS_H

enum cuelight_reject_reason {
    CUELIGHT_REJECT_REASON_PAGE_DISABLED = 1,
    CUELIGHT_REJECT_REASON_ILLEGAL_ID = 2,
    CUELIGHT_REJECT_REASON_STALE_EPOCH = 3,
    CUELIGHT_REJECT_REASON_ALREADY_RETIRED = 4,
    CUELIGHT_REJECT_REASON_UNKNOWN_STAGE = 5,
    CUELIGHT_REJECT_REASON_SLOT_IN_USE = 6,
    CUELIGHT_REJECT_REASON_REQUEST_RUNNING = 7,
    CUELIGHT_REJECT_REASON_DEVICE_FULL = 8,
    CUELIGHT_REJECT_REASON_SLOT_NOT_OFFERED = 9,
    CUELIGHT_REJECT_REASON_BAD_ATTRIBUTE = 10,
    CUELIGHT_REJECT_REASON_GROUP_RESETTING = 11,
    CUELIGHT_REJECT_REASON_NO_KV_CREDIT = 12
};

enum cuelight_retire_reason {
    CUELIGHT_RETIRE_REASON_FINISHED = 1,
    CUELIGHT_RETIRE_REASON_CANCELLED = 2,
    CUELIGHT_RETIRE_REASON_LANE_LOST = 3
};

enum cuelight_commit_kind {
    CUELIGHT_COMMIT_KIND_ADMIT = 1,
    CUELIGHT_COMMIT_KIND_RETARGET = 2,
    CUELIGHT_COMMIT_KIND_STAGE_DONE = 3,
    CUELIGHT_COMMIT_KIND_STAGE_DONE_IGNORED = 4,
    CUELIGHT_COMMIT_KIND_CANCEL = 5,
    CUELIGHT_COMMIT_KIND_REJECT = 6,
    CUELIGHT_COMMIT_KIND_SEAT = 7,
    CUELIGHT_COMMIT_KIND_RETIRE = 8,
    CUELIGHT_COMMIT_KIND_FREE = 9,
    CUELIGHT_COMMIT_KIND_POP_IGNORED = 10,
    CUELIGHT_COMMIT_KIND_LOOP_POINT = 11,
    CUELIGHT_COMMIT_KIND_ADVANCE = 12,
    CUELIGHT_COMMIT_KIND_PLAN = 13,
    CUELIGHT_COMMIT_KIND_CHUNK = 14,
    CUELIGHT_COMMIT_KIND_FORM = 15,
    CUELIGHT_COMMIT_KIND_DISPATCH = 16,
    CUELIGHT_COMMIT_KIND_COMPLETE = 17,
    CUELIGHT_COMMIT_KIND_COMPLETE_IGNORED = 18,
    CUELIGHT_COMMIT_KIND_TAKEN = 19,
    CUELIGHT_COMMIT_KIND_GROUP_RESET = 20,
    CUELIGHT_COMMIT_KIND_GROUP_READY = 21,
    CUELIGHT_COMMIT_KIND_CONFIG = 22,
    CUELIGHT_COMMIT_KIND_CONFIG_IGNORED = 23,
    CUELIGHT_COMMIT_KIND_OFFER = 24,
    CUELIGHT_COMMIT_KIND_UNOFFER = 25,
    CUELIGHT_COMMIT_KIND_PARK = 26,
    CUELIGHT_COMMIT_KIND_CREDIT = 27,
    CUELIGHT_COMMIT_KIND_PARKED = 28,
    CUELIGHT_COMMIT_KIND_PAUSE = 29,
    CUELIGHT_COMMIT_KIND_REOFFERED = 30
};

enum cuelight_push_command {
    CUELIGHT_PUSH_COMMAND_POLL = 1,
    CUELIGHT_PUSH_COMMAND_PUSH = 2,
    CUELIGHT_PUSH_COMMAND_PROBE = 3
};

enum cuelight_push_mode {
    CUELIGHT_PUSH_MODE_POLL = 0,
    CUELIGHT_PUSH_MODE_PROBING = 1,
    CUELIGHT_PUSH_MODE_PUSH = 2,
    CUELIGHT_PUSH_MODE_FALLING = 3
};

enum cuelight_fall_cause {
    CUELIGHT_FALL_CAUSE_COMMAND = 1,
    CUELIGHT_FALL_CAUSE_TIMEOUT = 2,
    CUELIGHT_FALL_CAUSE_UNSUPPORTED = 3,
    CUELIGHT_FALL_CAUSE_ABORTED = 4,
    CUELIGHT_FALL_CAUSE_POISONED = 5,
    CUELIGHT_FALL_CAUSE_MALFORMED = 6,
    CUELIGHT_FALL_CAUSE_STOPPED = 7,
    CUELIGHT_FALL_CAUSE_OVERDUE = 8,
    CUELIGHT_FALL_CAUSE_NO_MASTERING = 9
};

/* Cuelight BAR0 */
#define CUELIGHT_PAGE                                   0x0000u
#define CUELIGHT_PAGE_STRIDE                            0x1000u
#define CUELIGHT_PAGE_COUNT                             8u
#define CUELIGHT_IDENTITY                               0x8000u
#define CUELIGHT_CONTROL                                0x8100u
#define CUELIGHT_LANE                                   0x8200u
#define CUELIGHT_LANE_STRIDE                            0x0040u
#define CUELIGHT_LANE_COUNT                             8u
#define CUELIGHT_GROUP                                  0x8400u
#define CUELIGHT_GROUP_STRIDE                           0x0040u
#define CUELIGHT_GROUP_COUNT                            8u
#define CUELIGHT_TIER                                   0x8600u
#define CUELIGHT_TIER_STRIDE                            0x0020u
#define CUELIGHT_TIER_COUNT                             4u
#define CUELIGHT_FIFO                                   0x8800u
#define CUELIGHT_COUNTERS                               0x8a00u
#define CUELIGHT_COMPLETION                             0xa000u
#define CUELIGHT_COMPLETION_STRIDE                      0x0400u
#define CUELIGHT_COMPLETION_COUNT                       8u
#define CUELIGHT_COMPLETION_ENTRY                       0x0000u
#define CUELIGHT_COMPLETION_ENTRY_STRIDE                0x0040u
#define CUELIGHT_COMPLETION_ENTRY_COUNT                 16u
#define CUELIGHT_POLL                                   0xc000u
#define CUELIGHT_POLL_STRIDE                            0x0400u
#define CUELIGHT_POLL_COUNT                             8u
#define CUELIGHT_PUSH                                   0xe000u
#define CUELIGHT_PUSH_STRIDE                            0x0100u
#define CUELIGHT_PUSH_COUNT                             8u
#define CUELIGHT_ENDPOINT                               0xff00u

/* Producer page */
#define CUELIGHT_PAGE_SIZE                              0x1000u
#define CUELIGHT_PAGE_REQ_STATUS                        0x0000u
#define CUELIGHT_PAGE_REQ_STATUS_RESET                  0xffff0000u
#define CUELIGHT_PAGE_REQ_STATUS_ACTIVE_BIT             0
#define CUELIGHT_PAGE_REQ_STATUS_ACTIVE_WIDTH           16
#define CUELIGHT_PAGE_REQ_STATUS_ACTIVE_MASK            0x0000ffffu
#define CUELIGHT_PAGE_REQ_STATUS_SLOT_BIT               16
#define CUELIGHT_PAGE_REQ_STATUS_SLOT_WIDTH             16
#define CUELIGHT_PAGE_REQ_STATUS_SLOT_MASK              0xffff0000u
#define CUELIGHT_PAGE_SCHED_CMD                         0x0008u
#define CUELIGHT_PAGE_SCHED_CMD_STAGE_BIT               0
#define CUELIGHT_PAGE_SCHED_CMD_STAGE_WIDTH             32
#define CUELIGHT_PAGE_SCHED_CMD_STAGE_MASK              0x00000000ffffffffull
#define CUELIGHT_PAGE_SCHED_CMD_ID_BIT                  32
#define CUELIGHT_PAGE_SCHED_CMD_ID_WIDTH                32
#define CUELIGHT_PAGE_SCHED_CMD_ID_MASK                 0xffffffff00000000ull
#define CUELIGHT_PAGE_STAGE_DONE                        0x0010u
#define CUELIGHT_PAGE_SCHED_ATTR                        0x0018u
#define CUELIGHT_PAGE_SCHED_ATTR_AUTOMATIC_BIT          0
#define CUELIGHT_PAGE_SCHED_ATTR_AUTOMATIC_WIDTH        1
#define CUELIGHT_PAGE_SCHED_ATTR_AUTOMATIC_MASK         0x0000000000000001ull
#define CUELIGHT_PAGE_SCHED_ATTR_STEPPED_BIT            1
#define CUELIGHT_PAGE_SCHED_ATTR_STEPPED_WIDTH          1
#define CUELIGHT_PAGE_SCHED_ATTR_STEPPED_MASK           0x0000000000000002ull
#define CUELIGHT_PAGE_SCHED_ATTR_TIER_BIT               2
#define CUELIGHT_PAGE_SCHED_ATTR_TIER_WIDTH             2
#define CUELIGHT_PAGE_SCHED_ATTR_TIER_MASK              0x000000000000000cull
#define CUELIGHT_PAGE_SCHED_ATTR_GROUP_BIT              4
#define CUELIGHT_PAGE_SCHED_ATTR_GROUP_WIDTH            3
#define CUELIGHT_PAGE_SCHED_ATTR_GROUP_MASK             0x0000000000000070ull
#define CUELIGHT_PAGE_SCHED_ATTR_KV_BLOCKS_BIT          8
#define CUELIGHT_PAGE_SCHED_ATTR_KV_BLOCKS_WIDTH        16
#define CUELIGHT_PAGE_SCHED_ATTR_KV_BLOCKS_MASK         0x0000000000ffff00ull
#define CUELIGHT_PAGE_SCHED_ATTR_ROWS_BIT               24
#define CUELIGHT_PAGE_SCHED_ATTR_ROWS_WIDTH             20
#define CUELIGHT_PAGE_SCHED_ATTR_ROWS_MASK              0x00000fffff000000ull
#define CUELIGHT_PAGE_SCHED_ATTR_START_BIT              44
#define CUELIGHT_PAGE_SCHED_ATTR_START_WIDTH            20
#define CUELIGHT_PAGE_SCHED_ATTR_START_MASK             0xfffff00000000000ull
#define CUELIGHT_PAGE_OFFER_ID                          0x0020u
#define CUELIGHT_PAGE_PARK                              0x0028u
#define CUELIGHT_PAGE_CREDIT                            0x0030u

/* Identity */
#define CUELIGHT_IDENTITY_SIZE                          0x0050u
#define CUELIGHT_IDENTITY_MAGIC                         0x0000u
#define CUELIGHT_IDENTITY_MAGIC_RESET                   0x4c455543u
#define CUELIGHT_IDENTITY_VERSION                       0x0004u
#define CUELIGHT_IDENTITY_VERSION_RESET                 0x00010000u
#define CUELIGHT_IDENTITY_VERSION_MINOR_BIT             0
#define CUELIGHT_IDENTITY_VERSION_MINOR_WIDTH           16
#define CUELIGHT_IDENTITY_VERSION_MINOR_MASK            0x0000ffffu
#define CUELIGHT_IDENTITY_VERSION_MAJOR_BIT             16
#define CUELIGHT_IDENTITY_VERSION_MAJOR_WIDTH           16
#define CUELIGHT_IDENTITY_VERSION_MAJOR_MASK            0xffff0000u
#define CUELIGHT_IDENTITY_BOOT_NONCE                    0x0008u
#define CUELIGHT_IDENTITY_CAPABILITIES                  0x0010u
#define CUELIGHT_IDENTITY_CAPABILITIES_SLOTS_BIT        0
#define CUELIGHT_IDENTITY_CAPABILITIES_SLOTS_WIDTH      16
#define CUELIGHT_IDENTITY_CAPABILITIES_SLOTS_MASK       0x000000000000ffffull
#define CUELIGHT_IDENTITY_CAPABILITIES_SEATS_BIT        16
#define CUELIGHT_IDENTITY_CAPABILITIES_SEATS_WIDTH      16
#define CUELIGHT_IDENTITY_CAPABILITIES_SEATS_MASK       0x00000000ffff0000ull
#define CUELIGHT_IDENTITY_CAPABILITIES_STAGES_BIT       32
#define CUELIGHT_IDENTITY_CAPABILITIES_STAGES_WIDTH     16
#define CUELIGHT_IDENTITY_CAPABILITIES_STAGES_MASK      0x0000ffff00000000ull
#define CUELIGHT_IDENTITY_CAPABILITIES_LANES_BIT        48
#define CUELIGHT_IDENTITY_CAPABILITIES_LANES_WIDTH      4
#define CUELIGHT_IDENTITY_CAPABILITIES_LANES_MASK       0x000f000000000000ull
#define CUELIGHT_IDENTITY_CAPABILITIES_TIERS_BIT        52
#define CUELIGHT_IDENTITY_CAPABILITIES_TIERS_WIDTH      4
#define CUELIGHT_IDENTITY_CAPABILITIES_TIERS_MASK       0x00f0000000000000ull
#define CUELIGHT_IDENTITY_CAPABILITIES_PAGES_BIT        56
#define CUELIGHT_IDENTITY_CAPABILITIES_PAGES_WIDTH      4
#define CUELIGHT_IDENTITY_CAPABILITIES_PAGES_MASK       0x0f00000000000000ull
#define CUELIGHT_IDENTITY_TIME_NS                       0x0018u
#define CUELIGHT_IDENTITY_CYCLES                        0x0020u
#define CUELIGHT_IDENTITY_RTL_HASH                      0x0040u
#define CUELIGHT_IDENTITY_RTL_HASH_STRIDE               0x0004u
#define CUELIGHT_IDENTITY_RTL_HASH_COUNT                4u

/* Control */
#define CUELIGHT_CONTROL_SIZE                           0x0014u
#define CUELIGHT_CONTROL_PAGE_ENABLE                    0x0000u
#define CUELIGHT_CONTROL_PAGE_ENABLE_RESET              0x00000001u
#define CUELIGHT_CONTROL_PAGE_ENABLE_PAGES_BIT          0
#define CUELIGHT_CONTROL_PAGE_ENABLE_PAGES_WIDTH        8
#define CUELIGHT_CONTROL_PAGE_ENABLE_PAGES_MASK         0x000000ffu
#define CUELIGHT_CONTROL_GROUP_RESET                    0x0008u
#define CUELIGHT_CONTROL_STAGE_COUNT                    0x0010u
#define CUELIGHT_CONTROL_STAGE_COUNT_RESET              0x00000080u

/* Lane */
#define CUELIGHT_LANE_SIZE                              0x0040u
#define CUELIGHT_LANE_LANE_STATUS                       0x0000u
#define CUELIGHT_LANE_LANE_STATUS_OUTSTANDING_BIT       0
#define CUELIGHT_LANE_LANE_STATUS_OUTSTANDING_WIDTH     1
#define CUELIGHT_LANE_LANE_STATUS_OUTSTANDING_MASK      0x00000001u
#define CUELIGHT_LANE_LANE_STATUS_OFFERED_BIT           1
#define CUELIGHT_LANE_LANE_STATUS_OFFERED_WIDTH         1
#define CUELIGHT_LANE_LANE_STATUS_OFFERED_MASK          0x00000002u
#define CUELIGHT_LANE_LANE_STATUS_IN_PASS_BIT           2
#define CUELIGHT_LANE_LANE_STATUS_IN_PASS_WIDTH         1
#define CUELIGHT_LANE_LANE_STATUS_IN_PASS_MASK          0x00000004u
#define CUELIGHT_LANE_LANE_STATUS_RESETTING_BIT         3
#define CUELIGHT_LANE_LANE_STATUS_RESETTING_WIDTH       1
#define CUELIGHT_LANE_LANE_STATUS_RESETTING_MASK        0x00000008u
#define CUELIGHT_LANE_LANE_STATUS_STAGE_BIT             8
#define CUELIGHT_LANE_LANE_STATUS_STAGE_WIDTH           8
#define CUELIGHT_LANE_LANE_STATUS_STAGE_MASK            0x0000ff00u
#define CUELIGHT_LANE_SEQUENCE                          0x0008u
#define CUELIGHT_LANE_SEQUENCE_RESET                    0x00000001u
#define CUELIGHT_LANE_PASS                              0x0010u
#define CUELIGHT_LANE_BUSY_NS                           0x0018u
#define CUELIGHT_LANE_DEPTH                             0x0020u
#define CUELIGHT_LANE_DEPTH_RESET                       0x00000002u
#define CUELIGHT_LANE_FIRST_STAGE                       0x0028u
#define CUELIGHT_LANE_PIPELINE                          0x0030u
#define CUELIGHT_LANE_PIPELINE_RESET                    0x00000001u
#define CUELIGHT_LANE_OLDEST                            0x0038u

/* Lane group */
#define CUELIGHT_GROUP_SIZE                             0x0040u
#define CUELIGHT_GROUP_SEATS                            0x0000u
#define CUELIGHT_GROUP_ROWS                             0x0008u
#define CUELIGHT_GROUP_KV_BLOCKS                        0x0010u
#define CUELIGHT_GROUP_KV_FREE                          0x0018u
#define CUELIGHT_GROUP_OCCUPANCY                        0x0020u
#define CUELIGHT_GROUP_OCCUPANCY_QUEUED_BIT             0
#define CUELIGHT_GROUP_OCCUPANCY_QUEUED_WIDTH           16
#define CUELIGHT_GROUP_OCCUPANCY_QUEUED_MASK            0x000000000000ffffull
#define CUELIGHT_GROUP_OCCUPANCY_SEATED_BIT             16
#define CUELIGHT_GROUP_OCCUPANCY_SEATED_WIDTH           16
#define CUELIGHT_GROUP_OCCUPANCY_SEATED_MASK            0x00000000ffff0000ull
#define CUELIGHT_GROUP_OCCUPANCY_DECODING_BIT           32
#define CUELIGHT_GROUP_OCCUPANCY_DECODING_WIDTH         16
#define CUELIGHT_GROUP_OCCUPANCY_DECODING_MASK          0x0000ffff00000000ull
#define CUELIGHT_GROUP_OCCUPANCY_PARKED_BIT             48
#define CUELIGHT_GROUP_OCCUPANCY_PARKED_WIDTH           16
#define CUELIGHT_GROUP_OCCUPANCY_PARKED_MASK            0xffff000000000000ull
#define CUELIGHT_GROUP_COST                             0x0028u
#define CUELIGHT_GROUP_COST_RESET                       0xffffffffu
#define CUELIGHT_GROUP_COST_DECODE                      0x0030u
#define CUELIGHT_GROUP_COST_DECODE_COST_BIT             0
#define CUELIGHT_GROUP_COST_DECODE_COST_WIDTH           16
#define CUELIGHT_GROUP_COST_DECODE_COST_MASK            0x0000ffffu
#define CUELIGHT_GROUP_COST_CHUNK                       0x0038u
#define CUELIGHT_GROUP_COST_CHUNK_C0_BIT                0
#define CUELIGHT_GROUP_COST_CHUNK_C0_WIDTH              16
#define CUELIGHT_GROUP_COST_CHUNK_C0_MASK               0x0000ffffu
#define CUELIGHT_GROUP_COST_CHUNK_C1_BIT                16
#define CUELIGHT_GROUP_COST_CHUNK_C1_WIDTH              16
#define CUELIGHT_GROUP_COST_CHUNK_C1_MASK               0xffff0000u

/* Tier */
#define CUELIGHT_TIER_SIZE                              0x0020u
#define CUELIGHT_TIER_MIN_SEATS                         0x0000u
#define CUELIGHT_TIER_MIN_ROWS                          0x0008u
#define CUELIGHT_TIER_KV_FLOOR                          0x0010u
#define CUELIGHT_TIER_SEAT_FLOOR                        0x0018u

/* FIFOs */
#define CUELIGHT_FIFO_SIZE                              0x003cu
#define CUELIGHT_FIFO_REJECT_HEAD                       0x0000u
#define CUELIGHT_FIFO_REJECT_HEAD_ID_BIT                0
#define CUELIGHT_FIFO_REJECT_HEAD_ID_WIDTH              32
#define CUELIGHT_FIFO_REJECT_HEAD_ID_MASK               0x00000000ffffffffull
#define CUELIGHT_FIFO_REJECT_HEAD_REASON_BIT            32
#define CUELIGHT_FIFO_REJECT_HEAD_REASON_WIDTH          4
#define CUELIGHT_FIFO_REJECT_HEAD_REASON_MASK           0x0000000f00000000ull
#define CUELIGHT_FIFO_REJECT_HEAD_PAGE_BIT              36
#define CUELIGHT_FIFO_REJECT_HEAD_PAGE_WIDTH            3
#define CUELIGHT_FIFO_REJECT_HEAD_PAGE_MASK             0x0000007000000000ull
#define CUELIGHT_FIFO_REJECT_HEAD_INDEX_BIT             40
#define CUELIGHT_FIFO_REJECT_HEAD_INDEX_WIDTH           16
#define CUELIGHT_FIFO_REJECT_HEAD_INDEX_MASK            0x00ffff0000000000ull
#define CUELIGHT_FIFO_REJECT_HEAD_VALID_BIT             63
#define CUELIGHT_FIFO_REJECT_HEAD_VALID_WIDTH           1
#define CUELIGHT_FIFO_REJECT_HEAD_VALID_MASK            0x8000000000000000ull
#define CUELIGHT_FIFO_REJECT_POP                        0x0008u
#define CUELIGHT_FIFO_RETIRE_HEAD                       0x0010u
#define CUELIGHT_FIFO_RETIRE_HEAD_ID_BIT                0
#define CUELIGHT_FIFO_RETIRE_HEAD_ID_WIDTH              32
#define CUELIGHT_FIFO_RETIRE_HEAD_ID_MASK               0x00000000ffffffffull
#define CUELIGHT_FIFO_RETIRE_HEAD_REASON_BIT            32
#define CUELIGHT_FIFO_RETIRE_HEAD_REASON_WIDTH          3
#define CUELIGHT_FIFO_RETIRE_HEAD_REASON_MASK           0x0000000700000000ull
#define CUELIGHT_FIFO_RETIRE_HEAD_INDEX_BIT             40
#define CUELIGHT_FIFO_RETIRE_HEAD_INDEX_WIDTH           16
#define CUELIGHT_FIFO_RETIRE_HEAD_INDEX_MASK            0x00ffff0000000000ull
#define CUELIGHT_FIFO_RETIRE_HEAD_VALID_BIT             63
#define CUELIGHT_FIFO_RETIRE_HEAD_VALID_WIDTH           1
#define CUELIGHT_FIFO_RETIRE_HEAD_VALID_MASK            0x8000000000000000ull
#define CUELIGHT_FIFO_RETIRE_POP                        0x0018u
#define CUELIGHT_FIFO_TRACE_HEAD                        0x0020u
#define CUELIGHT_FIFO_TRACE_HEAD_TIME_NS_BIT            0
#define CUELIGHT_FIFO_TRACE_HEAD_TIME_NS_WIDTH          48
#define CUELIGHT_FIFO_TRACE_HEAD_TIME_NS_MASK           0x0000ffffffffffffull
#define CUELIGHT_FIFO_TRACE_HEAD_KIND_BIT               48
#define CUELIGHT_FIFO_TRACE_HEAD_KIND_WIDTH             5
#define CUELIGHT_FIFO_TRACE_HEAD_KIND_MASK              0x001f000000000000ull
#define CUELIGHT_FIFO_TRACE_HEAD_LANE_BIT               53
#define CUELIGHT_FIFO_TRACE_HEAD_LANE_WIDTH             3
#define CUELIGHT_FIFO_TRACE_HEAD_LANE_MASK              0x00e0000000000000ull
#define CUELIGHT_FIFO_TRACE_HEAD_STAGE_BIT              56
#define CUELIGHT_FIFO_TRACE_HEAD_STAGE_WIDTH            8
#define CUELIGHT_FIFO_TRACE_HEAD_STAGE_MASK             0xff00000000000000ull
#define CUELIGHT_FIFO_TRACE_PAYLOAD                     0x0028u
#define CUELIGHT_FIFO_TRACE_PAYLOAD_ID_BIT              0
#define CUELIGHT_FIFO_TRACE_PAYLOAD_ID_WIDTH            32
#define CUELIGHT_FIFO_TRACE_PAYLOAD_ID_MASK             0x00000000ffffffffull
#define CUELIGHT_FIFO_TRACE_PAYLOAD_DETAIL_BIT          32
#define CUELIGHT_FIFO_TRACE_PAYLOAD_DETAIL_WIDTH        32
#define CUELIGHT_FIFO_TRACE_PAYLOAD_DETAIL_MASK         0xffffffff00000000ull
#define CUELIGHT_FIFO_TRACE_STATE                       0x0030u
#define CUELIGHT_FIFO_TRACE_STATE_INDEX_BIT             0
#define CUELIGHT_FIFO_TRACE_STATE_INDEX_WIDTH           32
#define CUELIGHT_FIFO_TRACE_STATE_INDEX_MASK            0x00000000ffffffffull
#define CUELIGHT_FIFO_TRACE_STATE_HELD_BIT              32
#define CUELIGHT_FIFO_TRACE_STATE_HELD_WIDTH            16
#define CUELIGHT_FIFO_TRACE_STATE_HELD_MASK             0x0000ffff00000000ull
#define CUELIGHT_FIFO_TRACE_POP                         0x0038u

/* Counters */
#define CUELIGHT_COUNTERS_SIZE                          0x003cu
#define CUELIGHT_COUNTERS_ADMITTED                      0x0000u
#define CUELIGHT_COUNTERS_RETIRED                       0x0004u
#define CUELIGHT_COUNTERS_REJECTED                      0x0008u
#define CUELIGHT_COUNTERS_REJECTS_LOST                  0x000cu
#define CUELIGHT_COUNTERS_STAGE_DONE_IGNORED            0x0010u
#define CUELIGHT_COUNTERS_COMPLETIONS_IGNORED           0x0014u
#define CUELIGHT_COUNTERS_POPS_IGNORED                  0x0018u
#define CUELIGHT_COUNTERS_CONFIG_IGNORED                0x001cu
#define CUELIGHT_COUNTERS_PASSES                        0x0020u
#define CUELIGHT_COUNTERS_DISPATCHES                    0x0024u
#define CUELIGHT_COUNTERS_ROWS                          0x0028u
#define CUELIGHT_COUNTERS_TRACE_LOST                    0x002cu
#define CUELIGHT_COUNTERS_DECISION_CYCLES               0x0030u
#define CUELIGHT_COUNTERS_PAUSES                        0x0038u

/* Completion entry */
#define CUELIGHT_COMPLETION_SIZE                        0x0040u
#define CUELIGHT_COMPLETION_FINISHED                    0x0000u
#define CUELIGHT_COMPLETION_FINISHED_STRIDE             0x0004u
#define CUELIGHT_COMPLETION_FINISHED_COUNT              8u
#define CUELIGHT_COMPLETION_BATCH_DONE                  0x0020u

/* Dispatch descriptor */
#define CUELIGHT_DISPATCH_SIZE                          0x0020u
#define CUELIGHT_DISPATCH_HEAD                          0x0000u
#define CUELIGHT_DISPATCH_HEAD_SEQUENCE_BIT             0
#define CUELIGHT_DISPATCH_HEAD_SEQUENCE_WIDTH           32
#define CUELIGHT_DISPATCH_HEAD_SEQUENCE_MASK            0x00000000ffffffffull
#define CUELIGHT_DISPATCH_HEAD_STAGE_BIT                32
#define CUELIGHT_DISPATCH_HEAD_STAGE_WIDTH              8
#define CUELIGHT_DISPATCH_HEAD_STAGE_MASK               0x000000ff00000000ull
#define CUELIGHT_DISPATCH_HEAD_BUFFER_BIT               40
#define CUELIGHT_DISPATCH_HEAD_BUFFER_WIDTH             4
#define CUELIGHT_DISPATCH_HEAD_BUFFER_MASK              0x00000f0000000000ull
#define CUELIGHT_DISPATCH_HEAD_FIRST_BIT                44
#define CUELIGHT_DISPATCH_HEAD_FIRST_WIDTH              1
#define CUELIGHT_DISPATCH_HEAD_FIRST_MASK               0x0000100000000000ull
#define CUELIGHT_DISPATCH_HEAD_LAST_BIT                 45
#define CUELIGHT_DISPATCH_HEAD_LAST_WIDTH               1
#define CUELIGHT_DISPATCH_HEAD_LAST_MASK                0x0000200000000000ull
#define CUELIGHT_DISPATCH_HEAD_SAMPLES_BIT              46
#define CUELIGHT_DISPATCH_HEAD_SAMPLES_WIDTH            1
#define CUELIGHT_DISPATCH_HEAD_SAMPLES_MASK             0x0000400000000000ull
#define CUELIGHT_DISPATCH_HEAD_ROWS_BIT                 48
#define CUELIGHT_DISPATCH_HEAD_ROWS_WIDTH               16
#define CUELIGHT_DISPATCH_HEAD_ROWS_MASK                0xffff000000000000ull
#define CUELIGHT_DISPATCH_PASS                          0x0008u
#define CUELIGHT_DISPATCH_PASS_PASS_NUMBER_BIT          0
#define CUELIGHT_DISPATCH_PASS_PASS_NUMBER_WIDTH        32
#define CUELIGHT_DISPATCH_PASS_PASS_NUMBER_MASK         0x00000000ffffffffull
#define CUELIGHT_DISPATCH_PASS_ENTRIES_BIT              32
#define CUELIGHT_DISPATCH_PASS_ENTRIES_WIDTH            8
#define CUELIGHT_DISPATCH_PASS_ENTRIES_MASK             0x000000ff00000000ull
#define CUELIGHT_DISPATCH_PASS_STAMP_BIT                48
#define CUELIGHT_DISPATCH_PASS_STAMP_WIDTH              16
#define CUELIGHT_DISPATCH_PASS_STAMP_MASK               0xffff000000000000ull
#define CUELIGHT_DISPATCH_RESERVED                      0x0010u
#define CUELIGHT_DISPATCH_TAIL                          0x0018u
#define CUELIGHT_DISPATCH_TAIL_STAMP_BIT                48
#define CUELIGHT_DISPATCH_TAIL_STAMP_WIDTH              16
#define CUELIGHT_DISPATCH_TAIL_STAMP_MASK               0xffff000000000000ull

/* Unit of the decode bitmap */
#define CUELIGHT_BITMAP_UNIT_SIZE                       0x0010u
#define CUELIGHT_BITMAP_UNIT_WORD                       0x0000u
#define CUELIGHT_BITMAP_UNIT_WORD_STRIDE                0x0004u
#define CUELIGHT_BITMAP_UNIT_WORD_COUNT                 3u
#define CUELIGHT_BITMAP_UNIT_TAIL                       0x000cu
#define CUELIGHT_BITMAP_UNIT_TAIL_STAMP_BIT             16
#define CUELIGHT_BITMAP_UNIT_TAIL_STAMP_WIDTH           16
#define CUELIGHT_BITMAP_UNIT_TAIL_STAMP_MASK            0xffff0000u

/* Entry of a pass record */
#define CUELIGHT_ENTRY_SIZE                             0x0010u
#define CUELIGHT_ENTRY_REQUEST                          0x0000u
#define CUELIGHT_ENTRY_CHUNK                            0x0004u
#define CUELIGHT_ENTRY_CHUNK_START_BIT                  0
#define CUELIGHT_ENTRY_CHUNK_START_WIDTH                20
#define CUELIGHT_ENTRY_CHUNK_START_MASK                 0x000fffffu
#define CUELIGHT_ENTRY_CHUNK_SEAT_BIT                   20
#define CUELIGHT_ENTRY_CHUNK_SEAT_WIDTH                 8
#define CUELIGHT_ENTRY_CHUNK_SEAT_MASK                  0x0ff00000u
#define CUELIGHT_ENTRY_CHUNK_BIND_BIT                   28
#define CUELIGHT_ENTRY_CHUNK_BIND_WIDTH                 1
#define CUELIGHT_ENTRY_CHUNK_BIND_MASK                  0x10000000u
#define CUELIGHT_ENTRY_CHUNK_FIRST_BIT                  29
#define CUELIGHT_ENTRY_CHUNK_FIRST_WIDTH                1
#define CUELIGHT_ENTRY_CHUNK_FIRST_MASK                 0x20000000u
#define CUELIGHT_ENTRY_CHUNK_LAST_BIT                   30
#define CUELIGHT_ENTRY_CHUNK_LAST_WIDTH                 1
#define CUELIGHT_ENTRY_CHUNK_LAST_MASK                  0x40000000u
#define CUELIGHT_ENTRY_ROWS                             0x0008u
#define CUELIGHT_ENTRY_ROWS_ROWS_BIT                    0
#define CUELIGHT_ENTRY_ROWS_ROWS_WIDTH                  16
#define CUELIGHT_ENTRY_ROWS_ROWS_MASK                   0x0000ffffu
#define CUELIGHT_ENTRY_TAIL                             0x000cu
#define CUELIGHT_ENTRY_TAIL_STAMP_BIT                   16
#define CUELIGHT_ENTRY_TAIL_STAMP_WIDTH                 16
#define CUELIGHT_ENTRY_TAIL_STAMP_MASK                  0xffff0000u

/* Pass record */
#define CUELIGHT_RECORD_SIZE                            0x0200u
#define CUELIGHT_RECORD_BITMAP                          0x0000u
#define CUELIGHT_RECORD_BITMAP_STRIDE                   0x0010u
#define CUELIGHT_RECORD_BITMAP_COUNT                    3u
#define CUELIGHT_RECORD_ENTRY                           0x0030u
#define CUELIGHT_RECORD_ENTRY_STRIDE                    0x0010u
#define CUELIGHT_RECORD_ENTRY_COUNT                     16u

/* Poll registers */
#define CUELIGHT_POLL_SIZE                              0x0400u
#define CUELIGHT_POLL_DISPATCH                          0x0000u
#define CUELIGHT_POLL_POP                               0x0020u
#define CUELIGHT_POLL_REOFFER                           0x0028u
#define CUELIGHT_POLL_RECORD                            0x0200u

/* Push */
#define CUELIGHT_PUSH_SIZE                              0x0100u
#define CUELIGHT_PUSH_COMMAND                           0x0000u
#define CUELIGHT_PUSH_STATUS                            0x0008u
#define CUELIGHT_PUSH_STATUS_MODE_BIT                   0
#define CUELIGHT_PUSH_STATUS_MODE_WIDTH                 2
#define CUELIGHT_PUSH_STATUS_MODE_MASK                  0x00000003u
#define CUELIGHT_PUSH_STATUS_READING_BIT                2
#define CUELIGHT_PUSH_STATUS_READING_WIDTH              1
#define CUELIGHT_PUSH_STATUS_READING_MASK               0x00000004u
#define CUELIGHT_PUSH_STATUS_RESTING_BIT                4
#define CUELIGHT_PUSH_STATUS_RESTING_WIDTH              2
#define CUELIGHT_PUSH_STATUS_RESTING_MASK               0x00000030u
#define CUELIGHT_PUSH_STATUS_CAUSE_BIT                  8
#define CUELIGHT_PUSH_STATUS_CAUSE_WIDTH                4
#define CUELIGHT_PUSH_STATUS_CAUSE_MASK                 0x00000f00u
#define CUELIGHT_PUSH_STATUS_NEEDED_BIT                 16
#define CUELIGHT_PUSH_STATUS_NEEDED_WIDTH               8
#define CUELIGHT_PUSH_STATUS_NEEDED_MASK                0x00ff0000u
#define CUELIGHT_PUSH_PORT_ADDRESS                      0x0010u
#define CUELIGHT_PUSH_HEARTBEAT_ADDRESS                 0x0018u
#define CUELIGHT_PUSH_GENERATION                        0x0020u
#define CUELIGHT_PUSH_COMPLETION_TIMEOUT                0x0028u
#define CUELIGHT_PUSH_COMPLETION_TIMEOUT_RESET          0x00002710u
#define CUELIGHT_PUSH_OVERDUE                           0x0030u
#define CUELIGHT_PUSH_PERIOD                            0x0038u
#define CUELIGHT_PUSH_PERIOD_RESET                      0x000003e8u
#define CUELIGHT_PUSH_STALL                             0x0040u
#define CUELIGHT_PUSH_STALL_RESET                       0x001e8480u
#define CUELIGHT_PUSH_REST                              0x0048u
#define CUELIGHT_PUSH_REST_RESET                        0x000186a0u
#define CUELIGHT_PUSH_BEATS                             0x0050u
#define CUELIGHT_PUSH_BEATS_RESET                       0x00000004u
#define CUELIGHT_PUSH_HEARTBEAT                         0x0058u
#define CUELIGHT_PUSH_FALLS                             0x0080u
#define CUELIGHT_PUSH_FALLS_STRIDE                      0x0004u
#define CUELIGHT_PUSH_FALLS_COUNT                       10u
#define CUELIGHT_PUSH_RETURNS                           0x00c0u
#define CUELIGHT_PUSH_LATE                              0x00c4u
#define CUELIGHT_PUSH_PUSHED                            0x00c8u
#define CUELIGHT_PUSH_REFUSED                           0x00ccu

/* PCI Express endpoint */
#define CUELIGHT_ENDPOINT_SIZE                          0x0010u
#define CUELIGHT_ENDPOINT_SPOILT                        0x0000u
#define CUELIGHT_ENDPOINT_DROPPED                       0x0004u
#define CUELIGHT_ENDPOINT_REFUSED                       0x0008u
#define CUELIGHT_ENDPOINT_POISONED                      0x000cu

/* Shared segment header */
#define CUELIGHT_SEGMENT_SIZE                           0x0084u
#define CUELIGHT_SEGMENT_MAGIC                          0x0000u
#define CUELIGHT_SEGMENT_LAYOUT                         0x0004u
#define CUELIGHT_SEGMENT_LANES                          0x0008u
#define CUELIGHT_SEGMENT_SLOTS                          0x000cu
#define CUELIGHT_SEGMENT_SEATS                          0x0010u
#define CUELIGHT_SEGMENT_TOKENS                         0x0014u
#define CUELIGHT_SEGMENT_CONTEXT                        0x0018u
#define CUELIGHT_SEGMENT_BLOCKS                         0x001cu
#define CUELIGHT_SEGMENT_PORTS                          0x0020u
#define CUELIGHT_SEGMENT_PORT_STRIDE                    0x0024u
#define CUELIGHT_SEGMENT_RECORDS                        0x0028u
#define CUELIGHT_SEGMENT_RECORD_STRIDE                  0x002cu
#define CUELIGHT_SEGMENT_VOCABULARY                     0x0030u
#define CUELIGHT_SEGMENT_MASKS                          0x0034u
#define CUELIGHT_SEGMENT_MASK_STRIDE                    0x0038u
#define CUELIGHT_SEGMENT_DEVICE_BELL                    0x0040u
#define CUELIGHT_SEGMENT_HOST_BELL                      0x0080u

/* Logit bias */
#define CUELIGHT_BIAS_SIZE                              0x0008u
#define CUELIGHT_BIAS_TOKEN                             0x0000u
#define CUELIGHT_BIAS_VALUE                             0x0004u

/* Slot record */
#define CUELIGHT_SLOT_RECORD_SIZE                       0x0a00u
#define CUELIGHT_SLOT_RECORD_REQUEST                    0x0000u
#define CUELIGHT_SLOT_RECORD_PROMPT                     0x0004u
#define CUELIGHT_SLOT_RECORD_LIMIT                      0x0008u
#define CUELIGHT_SLOT_RECORD_BLOCKS                     0x000cu
#define CUELIGHT_SLOT_RECORD_TEMPERATURE                0x0010u
#define CUELIGHT_SLOT_RECORD_FLAGS                      0x0014u
#define CUELIGHT_SLOT_RECORD_FLAGS_IGNORE_EOS_BIT       0
#define CUELIGHT_SLOT_RECORD_FLAGS_IGNORE_EOS_WIDTH     1
#define CUELIGHT_SLOT_RECORD_FLAGS_IGNORE_EOS_MASK      0x00000001u
#define CUELIGHT_SLOT_RECORD_FLAGS_MASKED_BIT           1
#define CUELIGHT_SLOT_RECORD_FLAGS_MASKED_WIDTH         1
#define CUELIGHT_SLOT_RECORD_FLAGS_MASKED_MASK          0x00000002u
#define CUELIGHT_SLOT_RECORD_SEED                       0x0018u
#define CUELIGHT_SLOT_RECORD_TOP_K                      0x0020u
#define CUELIGHT_SLOT_RECORD_TOP_P                      0x0024u
#define CUELIGHT_SLOT_RECORD_MIN_P                      0x0028u
#define CUELIGHT_SLOT_RECORD_REPETITION                 0x002cu
#define CUELIGHT_SLOT_RECORD_PRESENCE                   0x0030u
#define CUELIGHT_SLOT_RECORD_FREQUENCY                  0x0034u
#define CUELIGHT_SLOT_RECORD_TOP_LOGPROBS               0x0038u
#define CUELIGHT_SLOT_RECORD_BIASES                     0x003cu
#define CUELIGHT_SLOT_RECORD_PRODUCED                   0x0040u
#define CUELIGHT_SLOT_RECORD_BIAS                       0x0080u
#define CUELIGHT_SLOT_RECORD_BIAS_STRIDE                0x0008u
#define CUELIGHT_SLOT_RECORD_BIAS_COUNT                 300u
#define CUELIGHT_SLOT_RECORD_TABLE                      0x0a00u
#define CUELIGHT_SLOT_RECORD_TABLE_STRIDE               0x0004u

/* Token ring entry */
#define CUELIGHT_TOKEN_SIZE                             0x0020u
#define CUELIGHT_TOKEN_TURN                             0x0000u
#define CUELIGHT_TOKEN_REQUEST                          0x0004u
#define CUELIGHT_TOKEN_POSITION                         0x0008u
#define CUELIGHT_TOKEN_TOKEN                            0x000cu
#define CUELIGHT_TOKEN_LOGPROB                          0x0010u
#define CUELIGHT_TOKEN_STATUS                           0x0014u
#define CUELIGHT_TOKEN_STATUS_FINISH_BIT                0
#define CUELIGHT_TOKEN_STATUS_FINISH_WIDTH              8
#define CUELIGHT_TOKEN_STATUS_FINISH_MASK               0x000000ffu

/* Lane port */
#define CUELIGHT_LANE_PORT_SIZE                         0x3000u
#define CUELIGHT_LANE_PORT_BELL                         0x0000u
#define CUELIGHT_LANE_PORT_EXPECTED                     0x0040u
#define CUELIGHT_LANE_PORT_PID                          0x0080u
#define CUELIGHT_LANE_PORT_HEARTBEAT                    0x0084u
#define CUELIGHT_LANE_PORT_STOP                         0x0088u
#define CUELIGHT_LANE_PORT_TOKENS_READ                  0x00c0u
#define CUELIGHT_LANE_PORT_RING                         0x0400u
#define CUELIGHT_LANE_PORT_RING_STRIDE                  0x0020u
#define CUELIGHT_LANE_PORT_RING_COUNT                   16u
#define CUELIGHT_LANE_PORT_DONE                         0x0800u
#define CUELIGHT_LANE_PORT_DONE_STRIDE                  0x0040u
#define CUELIGHT_LANE_PORT_DONE_COUNT                   16u
#define CUELIGHT_LANE_PORT_RECORD                       0x1000u
#define CUELIGHT_LANE_PORT_RECORD_STRIDE                0x0200u
#define CUELIGHT_LANE_PORT_RECORD_COUNT                 16u
#define CUELIGHT_LANE_PORT_TOKEN_RING                   0x3000u
#define CUELIGHT_LANE_PORT_TOKEN_RING_STRIDE            0x0020u

/* Token mask */
#define CUELIGHT_MASK_SIZE                              0x0040u
#define CUELIGHT_MASK_POSITION                          0x0000u
#define CUELIGHT_MASK_ALLOWED                           0x0040u
#define CUELIGHT_MASK_ALLOWED_STRIDE                    0x0004u

#endif
