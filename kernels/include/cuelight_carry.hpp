// Carries a lane's dispatches from the poll registers of a device to its ring in the shared segment, and completions
// back. Lanes may write anything into the segment: nothing read from it is relied upon.
//
// A Bus has `int read(const uint32_t *offsets, unsigned count, uint64_t *values)`, 64 bits each, and
// `int write(uint32_t offset, uint32_t width, uint64_t value)`; 0 if they could.
#ifndef CUELIGHT_CARRY_HPP
#define CUELIGHT_CARRY_HPP

#include <algorithm>
#include <atomic>
#include <utility>

#include "cuelight_bell.h"
#include "cuelight_regs.h"

namespace cuelight {

inline uint64_t load64(const uint8_t *address) {
    return __atomic_load_n(reinterpret_cast<const uint64_t *>(address), __ATOMIC_ACQUIRE);
}

inline uint32_t load32(const uint8_t *address) {
    return __atomic_load_n(reinterpret_cast<const uint32_t *>(address), __ATOMIC_ACQUIRE);
}

inline void store64(uint8_t *address, uint64_t value) {
    __atomic_store_n(reinterpret_cast<uint64_t *>(address), value, __ATOMIC_RELEASE);
}

inline void store32(uint8_t *address, uint32_t value) {
    __atomic_store_n(reinterpret_cast<uint32_t *>(address), value, __ATOMIC_RELEASE);
}

inline uint32_t *bell_at(uint8_t *address) { return reinterpret_cast<uint32_t *>(address); }

inline uint32_t next_sequence(uint32_t sequence) {
    ++sequence;
    return (sequence & 0xffff) == 0xffff ? sequence + 2 : sequence;
}

template <typename Bus>
class Carrier {
  public:
    void attach(Bus *bus, uint32_t lane, uint32_t seats, uint8_t *port) {
        bus_ = bus;
        lane_ = CUELIGHT_LANE + lane * CUELIGHT_LANE_STRIDE;
        poll_ = CUELIGHT_POLL + lane * CUELIGHT_POLL_STRIDE;
        completion_ = CUELIGHT_COMPLETION + lane * CUELIGHT_COMPLETION_STRIDE;
        bitmap_units_ = (seats + 95) / 96;
        finished_pairs_ = (seats + 63) / 64;
        port_ = port;
    }

    // Whether the lane has something to do.
    bool outstanding() const { return outstanding_.load(std::memory_order_relaxed); }

    // Whether it has reported the oldest dispatch in its ring.
    bool complete() const {
        const uint32_t sequence = outstanding_.load(std::memory_order_relaxed);
        return sequence && load32(done(sequence) + CUELIGHT_COMPLETION_BATCH_DONE) == sequence;
    }

    // Carries the completion of that dispatch back, and the next one of its pass over.
    int forward() {
        const uint32_t sequence = outstanding_.load(std::memory_order_relaxed);
        const uint32_t entry =
            completion_ + sequence % CUELIGHT_COMPLETION_ENTRY_COUNT * CUELIGHT_COMPLETION_ENTRY_STRIDE;
        for (uint32_t at = 0; at < 8 * finished_pairs_; at += 8)
            if (const uint64_t seats = load64(done(sequence) + at))
                if (const int status = bus_->write(entry + at, 8, seats)) return status;
        if (const int status = bus_->write(entry + CUELIGHT_COMPLETION_BATCH_DONE, 4, sequence)) return status;
        outstanding_.store(std::exchange(ahead_, 0), std::memory_order_relaxed);
        store32(port_ + CUELIGHT_LANE_PORT_EXPECTED, next_sequence(sequence));
        // Within a pass the next dispatch is there by the time the very next read is answered.
        uint64_t head;
        if (const int status = read(poll_ + CUELIGHT_POLL_DISPATCH + CUELIGHT_DISPATCH_HEAD, &head)) return status;
        return !head || head & CUELIGHT_DISPATCH_HEAD_FIRST_MASK ? 0 : publish(head);
    }

    // Carries the dispatch in the poll head over, if there is one, with its record if it is the first of its pass.
    int deliver(bool *found) {
        uint64_t head;
        if (const int status = read(poll_ + CUELIGHT_POLL_DISPATCH + CUELIGHT_DISPATCH_HEAD, &head)) return status;
        *found = head != 0;
        if (!head) return 0;
        if (head & CUELIGHT_DISPATCH_HEAD_FIRST_MASK)
            if (const int status = write_record(buffer_of(head))) return status;
        return publish(head);
    }

    // After what drops dispatches or moves sequences: whose dispatch is gone expects the next one.
    int resynchronize() {
        const uint32_t offsets[] = {lane_ + CUELIGHT_LANE_LANE_STATUS, lane_ + CUELIGHT_LANE_SEQUENCE};
        uint64_t words[2];
        if (const int status = bus_->read(offsets, 2, words)) return status;
        if (words[0] & CUELIGHT_LANE_LANE_STATUS_OUTSTANDING_MASK) return 0;
        outstanding_.store(0, std::memory_order_relaxed);
        ahead_ = 0;
        store32(port_ + CUELIGHT_LANE_PORT_EXPECTED, static_cast<uint32_t>(words[1]));
        return 0;
    }

  private:
    static uint32_t buffer_of(uint64_t head) {
        return head >> CUELIGHT_DISPATCH_HEAD_BUFFER_BIT & (CUELIGHT_LANE_PORT_RECORD_COUNT - 1);
    }

    // The stamp falls before the unit changes and stands again after.
    static void write_unit(uint8_t *unit, uint64_t low, uint64_t high) {
        store64(unit + 8, 0);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        store64(unit, low);
        store64(unit + 8, high);
    }

    uint8_t *done(uint32_t sequence) const {
        return port_ + CUELIGHT_LANE_PORT_DONE +
               sequence % CUELIGHT_LANE_PORT_DONE_COUNT * CUELIGHT_LANE_PORT_DONE_STRIDE;
    }

    int read(uint32_t offset, uint64_t *value) { return bus_->read(&offset, 1, value); }

    int write_record(uint32_t buffer) {
        uint32_t offsets[2 * CUELIGHT_RECORD_ENTRY_COUNT];
        uint64_t pass_and_bitmap[1 + 2 * CUELIGHT_RECORD_BITMAP_COUNT], entries[2 * CUELIGHT_RECORD_ENTRY_COUNT];
        offsets[0] = poll_ + CUELIGHT_POLL_DISPATCH + CUELIGHT_DISPATCH_PASS;
        for (uint32_t i = 0; i < 2 * bitmap_units_; ++i)
            offsets[1 + i] = poll_ + CUELIGHT_POLL_RECORD + CUELIGHT_RECORD_BITMAP + 8 * i;
        if (const int status = bus_->read(offsets, 1 + 2 * bitmap_units_, pass_and_bitmap)) return status;
        passes_[buffer] = pass_and_bitmap[0] & ~CUELIGHT_DISPATCH_PASS_STAMP_MASK;
        const uint32_t count = std::min<uint32_t>(passes_[buffer] >> CUELIGHT_DISPATCH_PASS_ENTRIES_BIT & 0xff,
                                                  CUELIGHT_RECORD_ENTRY_COUNT);
        for (uint32_t i = 0; i < 2 * count; ++i)
            offsets[i] = poll_ + CUELIGHT_POLL_RECORD + CUELIGHT_RECORD_ENTRY + 8 * i;
        if (count)
            if (const int status = bus_->read(offsets, 2 * count, entries)) return status;
        uint8_t *const record = port_ + CUELIGHT_LANE_PORT_RECORD + buffer * CUELIGHT_LANE_PORT_RECORD_STRIDE;
        for (uint32_t i = 0; i < bitmap_units_; ++i)
            write_unit(record + CUELIGHT_RECORD_BITMAP + CUELIGHT_RECORD_BITMAP_STRIDE * i, pass_and_bitmap[1 + 2 * i],
                       pass_and_bitmap[2 + 2 * i]);
        for (uint32_t i = 0; i < std::max(count, entries_[buffer]); ++i)
            write_unit(record + CUELIGHT_RECORD_ENTRY + CUELIGHT_RECORD_ENTRY_STRIDE * i,
                       i < count ? entries[2 * i] : 0, i < count ? entries[2 * i + 1] : 0);
        entries_[buffer] = count;
        return 0;
    }

    int publish(uint64_t head) {
        const uint32_t sequence = static_cast<uint32_t>(head);
        const uint64_t stamp = uint64_t{sequence & 0xffff} << CUELIGHT_DISPATCH_PASS_STAMP_BIT;
        for (uint32_t at = 0; at <= CUELIGHT_COMPLETION_BATCH_DONE; at += 8) store64(done(sequence) + at, 0);
        if (outstanding())
            ahead_ = sequence;
        else
            outstanding_.store(sequence, std::memory_order_relaxed);
        uint8_t *const place = port_ + CUELIGHT_LANE_PORT_RING +
                               sequence % CUELIGHT_LANE_PORT_RING_COUNT * CUELIGHT_LANE_PORT_RING_STRIDE;
        store64(place + CUELIGHT_DISPATCH_HEAD, head);
        store64(place + CUELIGHT_DISPATCH_PASS, passes_[buffer_of(head)] | stamp);
        store64(place + CUELIGHT_DISPATCH_RESERVED, 0);
        store64(place + CUELIGHT_DISPATCH_TAIL, stamp);
        cuelight_bell_ring(bell_at(port_ + CUELIGHT_LANE_PORT_BELL));
        return bus_->write(poll_ + CUELIGHT_POLL_POP, 4, sequence);
    }

    Bus *bus_ = nullptr;
    uint32_t lane_ = 0, poll_ = 0, completion_ = 0;
    uint32_t bitmap_units_ = 0, finished_pairs_ = 0;
    uint8_t *port_ = nullptr;
    std::atomic<uint32_t> outstanding_{0};  // oldest sequence in the ring that is not complete; 0: none
    uint32_t ahead_ = 0;                    // the one after it in the ring; 0: none
    uint32_t entries_[CUELIGHT_LANE_PORT_RECORD_COUNT] = {};  // in each record buffer
    uint64_t passes_[CUELIGHT_LANE_PORT_RECORD_COUNT] = {};   // PASS word of the pass in it, without stamp
};

}  // namespace cuelight

#endif
