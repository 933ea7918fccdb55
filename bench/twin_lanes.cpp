// Lanes that spin: each takes a dispatch, works for a while, reports it, and notes how long the next descriptor takes.
// One thread plays all of them, so that the twin's thread has a core of its own on a machine with two.

#include <cstring>

#include "cuelight_bell.h"
#include "cuelight_regs.h"

namespace {

int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

uint32_t next_sequence(uint32_t sequence) {
    ++sequence;
    return (sequence & 0xffff) == 0xffff ? sequence + 2 : sequence;
}

struct Lane {
    uint8_t *port;
    uint32_t sequence;
    int64_t reported_ns = 0;  // when BATCH_DONE of the dispatch before was stored; 0: none was
    int64_t due_ns = 0;       // when the work on the dispatch in hand ends; 0: there is none
    bool last = false;

    // HEAD of the dispatch that is due, 0 until all of it is there.
    uint64_t arrived() const {
        const uint8_t *place = port + CUELIGHT_LANE_PORT_RING +
                               sequence % CUELIGHT_LANE_PORT_RING_COUNT * CUELIGHT_LANE_PORT_RING_STRIDE;
        uint64_t words[4];
        for (int i = 3; i >= 0; --i)
            words[i] = __atomic_load_n(reinterpret_cast<const uint64_t *>(place) + i, __ATOMIC_ACQUIRE);
        const bool whole = words[3] >> 48 == (sequence & 0xffff) && words[1] >> 48 == (sequence & 0xffff);
        return whole && static_cast<uint32_t>(words[0]) == sequence ? words[0] : 0;
    }

    void report() {
        uint8_t *done = port + CUELIGHT_LANE_PORT_DONE +
                        sequence % CUELIGHT_LANE_PORT_DONE_COUNT * CUELIGHT_LANE_PORT_DONE_STRIDE;
        reported_ns = now_ns();
        __atomic_store_n(reinterpret_cast<uint32_t *>(done + CUELIGHT_COMPLETION_BATCH_DONE), sequence,
                         __ATOMIC_RELEASE);
    }
};

}  // namespace

// Plays lanes until `count` gaps are measured. `gaps_ns` gets the time from the store of BATCH_DONE to the next
// descriptor in the ring; `crossed` whether a new pass began in between. Returns how many were measured before
// `timeout_ns` was over.
extern "C" uint32_t play_lanes(uint8_t *segment, uint32_t ports, uint32_t port_stride, uint32_t lane_count, int ring,
                               int64_t least_work_ns, uint32_t spread_ns, int64_t timeout_ns, uint32_t count,
                               int32_t *gaps_ns, uint8_t *crossed) {
    Lane lanes[CUELIGHT_LANE_COUNT];
    for (uint32_t i = 0; i < lane_count; ++i) {
        lanes[i].port = segment + ports + i * port_stride;
        std::memcpy(&lanes[i].sequence, lanes[i].port + CUELIGHT_LANE_PORT_EXPECTED, 4);
    }
    uint32_t measured = 0, noise = 1;
    const int64_t end_ns = now_ns() + timeout_ns;
    while (measured < count) {
        for (uint32_t i = 0; i < lane_count && measured < count; ++i) {
            Lane &lane = lanes[i];
            if (lane.due_ns) {
                if (now_ns() < lane.due_ns) continue;
                lane.due_ns = 0;
                lane.report();
                if (ring) cuelight_bell_ring(reinterpret_cast<uint32_t *>(segment + CUELIGHT_SEGMENT_DEVICE_BELL));
                lane.sequence = next_sequence(lane.sequence);
            } else if (const uint64_t head = lane.arrived()) {
                const int64_t now = now_ns();
                if (lane.reported_ns) {
                    gaps_ns[measured] = static_cast<int32_t>(now - lane.reported_ns);
                    crossed[measured++] = lane.last;
                }
                lane.last = head >> CUELIGHT_DISPATCH_HEAD_LAST_BIT & 1;
                noise = noise * 1664525u + 1013904223u;
                lane.due_ns = now + least_work_ns + (noise >> 8) % spread_ns;
            }
        }
        if (now_ns() > end_ns) break;
    }
    return measured;
}
