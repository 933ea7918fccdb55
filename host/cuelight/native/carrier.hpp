// Carries a lane's dispatches from the poll registers of a device to its ring in the shared segment, unless the device
// brings them itself (docs/push.md), and completions back. Lanes may write anything into the segment: nothing read from
// it is relied upon.
//
// A Bus has `int read(const uint32_t *offsets, unsigned count, uint64_t *values)`, 64 bits each, and
// `int write(uint32_t offset, uint32_t width, uint64_t value)`; 0 if they could.
#ifndef CUELIGHT_CARRIER_HPP
#define CUELIGHT_CARRIER_HPP

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
        return sequence && reported(sequence);
    }

    // Carries the completion of that dispatch back, and the next one of its pass over.
    int forward() {
        const uint32_t sequence = outstanding_.load(std::memory_order_relaxed);
        if (const int status = report(sequence)) return status;
        outstanding_.store(std::exchange(ahead_, 0), std::memory_order_relaxed);
        expect(next_sequence(sequence));
        if (pushed_) return 0;
        // Within a pass the next dispatch is there by the time the very next read is answered.
        uint64_t head;
        if (const int status = read(poll_ + CUELIGHT_POLL_DISPATCH + CUELIGHT_DISPATCH_HEAD, &head)) return status;
        const bool plain = head && !(head & CUELIGHT_DISPATCH_HEAD_FIRST_MASK) && knows(buffer_of(head)) &&
                           !reported(static_cast<uint32_t>(head));
        return plain ? publish(head) : 0;
    }

    // Carries the dispatch in the poll head over, if there is one, with its record if the lane has not got that from
    // here. One that the lane has reported before is completed instead.
    int deliver(bool *found) {
        uint64_t head;
        if (const int status = read(poll_ + CUELIGHT_POLL_DISPATCH + CUELIGHT_DISPATCH_HEAD, &head)) return status;
        const uint32_t sequence = static_cast<uint32_t>(head);
        *found = head != 0;
        if (!head) return 0;
        if (reported(sequence)) {
            // Those before it come first.
            if (outstanding() && !(*found = outstanding_.load(std::memory_order_relaxed) == sequence)) return 0;
            outstanding_.store(std::exchange(ahead_, 0), std::memory_order_relaxed);
            expect(next_sequence(sequence));
            if (const int status = pop(sequence)) return status;
            return report(sequence);
        }
        if (head & CUELIGHT_DISPATCH_HEAD_FIRST_MASK || !knows(buffer_of(head))) {
            if (const int status = write_record(buffer_of(head))) return status;
            uint64_t still;
            if (const int status = read(poll_ + CUELIGHT_POLL_DISPATCH + CUELIGHT_DISPATCH_HEAD, &still)) return status;
            if (still != head) return 0;
        }
        return publish(head);
    }

    // From now on the device brings dispatches.
    void leave_to_device() { pushed_ = true; }

    // Looks for what the device has brought, and wakes the lane for it.
    void look(bool *found) {
        for (uint32_t sequence = ahead_ ? 0 : outstanding() ? next_sequence(outstanding_) : expected_;
             sequence && holds(sequence); sequence = ahead_ ? 0 : next_sequence(sequence)) {
            note(sequence);
            *found = true;
            cuelight_bell_ring(bell_at(port_ + CUELIGHT_LANE_PORT_BELL));
        }
    }

    // The device has brought what it will. Where it pushed, it offers again what it does not know to be complete.
    int take_back() {
        pushed_ = false;
        known_ = 0;
        bool lost;
        if (const int status = report_again(&lost)) return status;
        return settle();
    }

    // A report may get lost on its way: nothing but this notices where the host delivers.
    int remind() {
        bool lost = false;
        if (outstanding()) return 0;
        if (const int status = report_again(&lost)) return status;
        return lost ? settle() : 0;
    }

    // After what drops dispatches or moves sequences: whose dispatch is gone expects the next one.
    int resynchronize() {
        uint64_t status_word;
        if (const int status = read(lane_ + CUELIGHT_LANE_LANE_STATUS, &status_word)) return status;
        return status_word & CUELIGHT_LANE_LANE_STATUS_OUTSTANDING_MASK ? 0 : settle();
    }

    // Empties ring and records, for another process in the lane's place.
    void clear() {
        for (uint32_t at = CUELIGHT_LANE_PORT_RING; at < CUELIGHT_LANE_PORT_DONE; at += 8) store64(port_ + at, 0);
        for (uint32_t at = CUELIGHT_LANE_PORT_RECORD; at < CUELIGHT_LANE_PORT_TOKEN_RING; at += 8)
            store64(port_ + at, 0);
        known_ = 0;
    }

  private:
    static uint32_t buffer_of(uint64_t head) {
        return head >> CUELIGHT_DISPATCH_HEAD_BUFFER_BIT & (CUELIGHT_LANE_PORT_RECORD_COUNT - 1);
    }

    // The stamp falls before the unit changes and stands again after. The lane may be reading a record that it has got
    // before: that stays as it is.
    static void write_unit(uint8_t *unit, uint64_t low, uint64_t high) {
        if (load64(unit) == low && load64(unit + 8) == high) return;
        store64(unit + 8, 0);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        store64(unit, low);
        store64(unit + 8, high);
    }

    uint8_t *done(uint32_t sequence) const {
        return port_ + CUELIGHT_LANE_PORT_DONE +
               sequence % CUELIGHT_LANE_PORT_DONE_COUNT * CUELIGHT_LANE_PORT_DONE_STRIDE;
    }

    bool reported(uint32_t sequence) const {
        return load32(done(sequence) + CUELIGHT_COMPLETION_BATCH_DONE) == sequence;
    }

    bool knows(uint32_t buffer) const { return known_ >> buffer & 1; }

    uint8_t *place(uint32_t sequence) const {
        return port_ + CUELIGHT_LANE_PORT_RING +
               sequence % CUELIGHT_LANE_PORT_RING_COUNT * CUELIGHT_LANE_PORT_RING_STRIDE;
    }

    // Whether a dispatch is whole in its place of the ring.
    bool holds(uint32_t sequence) const {
        const uint64_t stamp = sequence & 0xffff;
        const uint8_t *const at = place(sequence);
        return load64(at + CUELIGHT_DISPATCH_TAIL) >> CUELIGHT_DISPATCH_PASS_STAMP_BIT == stamp &&
               load64(at + CUELIGHT_DISPATCH_PASS) >> CUELIGHT_DISPATCH_PASS_STAMP_BIT == stamp &&
               static_cast<uint32_t>(load64(at + CUELIGHT_DISPATCH_HEAD)) == sequence;
    }

    void expect(uint32_t sequence) {
        expected_ = sequence;
        store32(port_ + CUELIGHT_LANE_PORT_EXPECTED, sequence);
    }

    // The ring has a dispatch for the lane; it may be a repeat.
    void note(uint32_t sequence) {
        const uint32_t oldest = outstanding_.load(std::memory_order_relaxed);
        if (oldest && oldest != sequence)
            ahead_ = sequence;
        else
            outstanding_.store(sequence, std::memory_order_relaxed);
    }

    // Goes on with the oldest dispatch that the device has for the lane, or else with the next one, and with what is in
    // the ring of them. SEQUENCE first: with none outstanding, none can have been complete in between.
    int settle() {
        uint64_t next, oldest;
        if (const int status = read(lane_ + CUELIGHT_LANE_SEQUENCE, &next)) return status;
        if (const int status = read(lane_ + CUELIGHT_LANE_OLDEST, &oldest)) return status;
        outstanding_.store(0, std::memory_order_relaxed);
        ahead_ = 0;
        expect(static_cast<uint32_t>(oldest) ? oldest : next);
        bool found;
        look(&found);
        return 0;
    }

    int report(uint32_t sequence) {
        const uint32_t entry =
            completion_ + sequence % CUELIGHT_COMPLETION_ENTRY_COUNT * CUELIGHT_COMPLETION_ENTRY_STRIDE;
        for (uint32_t at = 0; at < 8 * finished_pairs_; at += 8)
            if (const uint64_t seats = load64(done(sequence) + at))
                if (const int status = bus_->write(entry + at, 8, seats)) return status;
        return bus_->write(entry + CUELIGHT_COMPLETION_BATCH_DONE, 4, sequence);
    }

    // Reports what the lane has reported of the dispatches that the device has for it; `lost` if there was any. Only the
    // oldest one's report counts, so it goes on until the oldest stands.
    int report_again(bool *lost) {
        *lost = false;
        for (unsigned i = 0; i < CUELIGHT_LANE_PORT_RING_COUNT; ++i) {
            uint64_t oldest;
            if (const int status = read(lane_ + CUELIGHT_LANE_OLDEST, &oldest)) return status;
            const uint32_t sequence = static_cast<uint32_t>(oldest);
            if (!sequence || !reported(sequence)) break;
            *lost = true;
            if (const int status = report(sequence)) return status;
        }
        return 0;
    }

    int pop(uint32_t sequence) { return bus_->write(poll_ + CUELIGHT_POLL_POP, 4, sequence); }

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
        known_ |= 1u << buffer;
        return 0;
    }

    int publish(uint64_t head) {
        const uint32_t sequence = static_cast<uint32_t>(head);
        const uint64_t stamp = uint64_t{sequence & 0xffff} << CUELIGHT_DISPATCH_PASS_STAMP_BIT;
        note(sequence);
        uint8_t *const at = place(sequence);
        store64(at + CUELIGHT_DISPATCH_HEAD, head);
        store64(at + CUELIGHT_DISPATCH_PASS, passes_[buffer_of(head)] | stamp);
        store64(at + CUELIGHT_DISPATCH_RESERVED, 0);
        store64(at + CUELIGHT_DISPATCH_TAIL, stamp);
        cuelight_bell_ring(bell_at(port_ + CUELIGHT_LANE_PORT_BELL));
        return pop(sequence);
    }

    Bus *bus_ = nullptr;
    uint32_t lane_ = 0, poll_ = 0, completion_ = 0;
    uint32_t bitmap_units_ = 0, finished_pairs_ = 0;
    uint8_t *port_ = nullptr;
    std::atomic<uint32_t> outstanding_{0};  // oldest sequence in the ring that is not complete; 0: none
    uint32_t ahead_ = 0;                    // the one after it in the ring; 0: none
    uint32_t expected_ = 0;                 // the next one that will be the oldest
    bool pushed_ = false;
    uint32_t known_ = 0;                    // record buffers that were filled from here
    uint32_t entries_[CUELIGHT_LANE_PORT_RECORD_COUNT] = {};  // in each record buffer
    uint64_t passes_[CUELIGHT_LANE_PORT_RECORD_COUNT] = {};   // PASS word of the pass in it, without stamp
};

}  // namespace cuelight

#endif
