// Both sides of a lane port in the shared segment: the lane's (take dispatches, read records, post tokens, complete)
// and the host's (take tokens). Ports are passed by address; nothing is kept here.

#include <algorithm>
#include <cstring>

#include "cuelight_bell.h"
#include "cuelight_regs.h"

namespace {

struct Token {
    uint32_t request, position, token;
    float logprob;
    uint32_t finish;
};

uint32_t *word(uint8_t *base, uint32_t offset) { return reinterpret_cast<uint32_t *>(base + offset); }

uint64_t load64(const uint8_t *address) {
    return __atomic_load_n(reinterpret_cast<const uint64_t *>(address), __ATOMIC_ACQUIRE);
}

uint32_t load32(const uint8_t *address) {
    return __atomic_load_n(reinterpret_cast<const uint32_t *>(address), __ATOMIC_ACQUIRE);
}

void store32(uint8_t *address, uint32_t value) {
    __atomic_store_n(reinterpret_cast<uint32_t *>(address), value, __ATOMIC_RELEASE);
}

// The stamp of a 16-byte unit, its last two bytes. Read first (acquire): what it guards was written before it.
uint32_t stamp(const uint8_t *unit) { return static_cast<uint32_t>(load64(unit + 8) >> 48); }

bool take_dispatch(const uint8_t *port, uint32_t sequence, uint64_t dispatch[2]) {
    const uint8_t *place =
        port + CUELIGHT_LANE_PORT_RING + sequence % CUELIGHT_LANE_PORT_RING_COUNT * CUELIGHT_LANE_PORT_RING_STRIDE;
    const uint32_t low = sequence & 0xffff;
    // A port that the device has not filled yet is all zero.
    if (!low || stamp(place + CUELIGHT_DISPATCH_RESERVED) != low) return false;
    dispatch[1] = load64(place + CUELIGHT_DISPATCH_PASS);
    if (dispatch[1] >> 48 != low) return false;
    dispatch[0] = load64(place + CUELIGHT_DISPATCH_HEAD);
    return static_cast<uint32_t>(dispatch[0]) == sequence;
}

const uint8_t *record_at(const uint8_t *port, uint32_t buffer) {
    return port + CUELIGHT_LANE_PORT_RECORD + buffer % CUELIGHT_LANE_PORT_RECORD_COUNT * CUELIGHT_LANE_PORT_RECORD_STRIDE;
}

// Whether the record of a dispatch's pass is there: where the device brings both, it may have lost its way. `stamps` has
// the stamp of the pass in each record buffer, 0 where that is not known.
bool has_record(const uint8_t *port, const uint64_t dispatch[2], uint32_t units, uint32_t *stamps) {
    const uint32_t buffer = dispatch[0] >> CUELIGHT_DISPATCH_HEAD_BUFFER_BIT & (CUELIGHT_LANE_PORT_RECORD_COUNT - 1);
    const uint32_t entries =
        std::min<uint32_t>(dispatch[1] >> CUELIGHT_DISPATCH_PASS_ENTRIES_BIT & 0xff, CUELIGHT_RECORD_ENTRY_COUNT);
    const uint8_t *const record = record_at(port, buffer);
    const bool first = dispatch[0] & CUELIGHT_DISPATCH_HEAD_FIRST_MASK;
    uint32_t low = first ? static_cast<uint32_t>(dispatch[0]) & 0xffff : stamps[buffer];
    if (!low) low = stamp(record);
    if (!low) return false;
    for (uint32_t i = 0; i < units; ++i)
        if (stamp(record + CUELIGHT_RECORD_BITMAP + i * CUELIGHT_RECORD_BITMAP_STRIDE) != low) return false;
    for (uint32_t i = 0; i < entries; ++i)
        if (stamp(record + CUELIGHT_RECORD_ENTRY + i * CUELIGHT_RECORD_ENTRY_STRIDE) != low) return false;
    stamps[buffer] = low;
    return true;
}

bool take_unit(const uint8_t *unit, uint32_t low, uint32_t *out) {
    if (stamp(unit) != low) return false;
    std::memcpy(out, unit, 16);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return stamp(unit) == low;
}

uint8_t *token_place(uint8_t *port, uint32_t tokens, uint32_t index) {
    return port + CUELIGHT_LANE_PORT_TOKEN_RING + (index & (tokens - 1)) * CUELIGHT_LANE_PORT_TOKEN_RING_STRIDE;
}

}  // namespace

extern "C" {

void cuelight_ring(uint8_t *bell) { cuelight_bell_ring(word(bell, 0)); }

// Sleeps until `bell` differs from `seen`, a signal comes or the time is over; returns the bell.
uint32_t cuelight_sleep(uint8_t *bell, uint32_t seen, int64_t timeout_ns) {
    if (load32(bell) == seen) cuelight_bell_sleep(word(bell, 0), seen, timeout_ns);
    return load32(bell);
}

// Waits for dispatch `*sequence`, or for a later one if the device has moved on (then it is updated), and for its record
// of so many units of the bitmap. Returns 1 with HEAD and PASS in `dispatch`, 2 if the lane shall stop, 0 when the time
// is over or it was woken for something else.
int cuelight_port_wait(uint8_t *port, uint32_t *sequence, int64_t timeout_ns, uint32_t units, uint32_t *stamps,
                       uint64_t dispatch[2]) {
    for (bool slept = false;; slept = true) {
        const uint32_t bell = load32(port + CUELIGHT_LANE_PORT_BELL);
        __atomic_fetch_add(word(port, CUELIGHT_LANE_PORT_HEARTBEAT), 1u, __ATOMIC_RELAXED);
        if (load32(port + CUELIGHT_LANE_PORT_STOP)) return 2;
        const uint32_t expected = load32(port + CUELIGHT_LANE_PORT_EXPECTED);
        if (static_cast<int32_t>(expected - *sequence) > 0) *sequence = expected;
        if (take_dispatch(port, *sequence, dispatch) && has_record(port, dispatch, units, stamps)) return 1;
        if (slept) return 0;
        cuelight_bell_sleep(word(port, CUELIGHT_LANE_PORT_BELL), bell, timeout_ns);
    }
}

// Copies the bitmap's first `units` units and `entries` entries of a record, all with the stamp `low`, to `out`, 4 words
// a unit. Returns 0 if some unit does not match.
int cuelight_port_record(const uint8_t *port, uint32_t buffer, uint32_t low, uint32_t units, uint32_t entries,
                         uint32_t *out) {
    const uint8_t *const record = record_at(port, buffer);
    for (uint32_t i = 0; i < units; ++i, out += 4)
        if (!take_unit(record + CUELIGHT_RECORD_BITMAP + i * CUELIGHT_RECORD_BITMAP_STRIDE, low, out)) return 0;
    for (uint32_t i = 0; i < entries; ++i, out += 4)
        if (!take_unit(record + CUELIGHT_RECORD_ENTRY + i * CUELIGHT_RECORD_ENTRY_STRIDE, low, out)) return 0;
    return 1;
}

void cuelight_port_complete(uint8_t *port, uint8_t *device_bell, uint32_t sequence, const uint32_t finished[8]) {
    uint8_t *done =
        port + CUELIGHT_LANE_PORT_DONE + sequence % CUELIGHT_LANE_PORT_DONE_COUNT * CUELIGHT_LANE_PORT_DONE_STRIDE;
    std::memcpy(done + CUELIGHT_COMPLETION_FINISHED, finished, 4 * CUELIGHT_COMPLETION_FINISHED_COUNT);
    store32(done + CUELIGHT_COMPLETION_BATCH_DONE, sequence);
    __atomic_fetch_add(word(port, CUELIGHT_LANE_PORT_HEARTBEAT), 1u, __ATOMIC_RELAXED);
    cuelight_bell_ring(word(device_bell, 0));
}

// Running index of the next token a lane that has just started may post.
uint32_t cuelight_port_posted(uint8_t *port, uint32_t tokens) {
    uint32_t index = load32(port + CUELIGHT_LANE_PORT_TOKENS_READ);
    for (uint32_t i = 0; i < tokens && load32(token_place(port, tokens, index)) == index + 1; ++i) ++index;
    return index;
}

// Posts the first of `count` tokens, the first one as number `index`, for which the host has made room, and rings once.
// Returns how many; none only when the time is over or a signal came.
uint32_t cuelight_port_post(uint8_t *port, uint8_t *host_bell, uint32_t tokens, uint32_t index, const Token *from,
                            uint32_t count, int64_t timeout_ns) {
    uint8_t *const read = port + CUELIGHT_LANE_PORT_TOKENS_READ;
    uint32_t seen = load32(read);
    if (index - seen >= tokens) {
        cuelight_bell_sleep(word(read, 0), seen, timeout_ns);
        seen = load32(read);
        if (index - seen >= tokens) return 0;
    }
    count = std::min(count, tokens - (index - seen));
    for (uint32_t i = 0; i < count; ++i) {
        uint8_t *const place = token_place(port, tokens, index + i);
        std::memcpy(place + CUELIGHT_TOKEN_REQUEST, from + i, sizeof *from);
        store32(place + CUELIGHT_TOKEN_TURN, index + i + 1);
    }
    __atomic_fetch_add(word(port, CUELIGHT_LANE_PORT_HEARTBEAT), 1u, __ATOMIC_RELAXED);
    cuelight_bell_ring(word(host_bell, 0));
    return count;
}

// Takes up to `limit` tokens from number `index` on into `out`; returns how many there were.
uint32_t cuelight_port_take(uint8_t *port, uint32_t tokens, uint32_t index, Token *out, uint32_t limit) {
    uint32_t count = 0;
    for (; count < std::min(limit, tokens); ++count) {
        const uint8_t *const place = token_place(port, tokens, index + count);
        if (load32(place + CUELIGHT_TOKEN_TURN) != index + count + 1) break;
        std::memcpy(&out[count], place + CUELIGHT_TOKEN_REQUEST, sizeof *out);
    }
    if (count) {
        store32(port + CUELIGHT_LANE_PORT_TOKENS_READ, index + count);
        cuelight_bell_wake(word(port, CUELIGHT_LANE_PORT_TOKENS_READ));
    }
    return count;
}

}  // extern "C"
