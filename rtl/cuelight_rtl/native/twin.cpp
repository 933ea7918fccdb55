// The twin: a model, and a thread that carries dispatches from its poll registers to the lanes' rings in the shared
// segment and completions back. Lanes may write anything into the segment: nothing read from it is relied upon.

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <mutex>
#include <system_error>
#include <utility>

#include "cuelight_bell.h"
#include "cuelight_regs.h"
#include "model.hpp"

namespace {

using cuelight::Model;
using cuelight::read_request;
using cuelight::Request;
using cuelight::write_request;

constexpr uint32_t lanes = CUELIGHT_LANES;
constexpr uint32_t bitmap_units = (CUELIGHT_SEATS + 95) / 96;
constexpr uint32_t finished_pairs = (CUELIGHT_SEATS + 63) / 64;
constexpr uint64_t patience_cycles = 1000000;
constexpr unsigned burst_cycles = 256;
constexpr unsigned time_cycles = 8;
constexpr size_t trace_limit = 1 << 20;

// Waits are cut in slices: time in which the whole process was stopped counts as one of them.
constexpr std::chrono::milliseconds lock_slice{100};
constexpr unsigned lock_slices = 30;
constexpr unsigned join_s = 2;

enum Status { busy_now = 2, late = 1, ok = 0, closed = -1, lost = -2 };
enum Patience { waits, waits_not };

uint64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

uint64_t load64(const uint8_t *address) {
    return __atomic_load_n(reinterpret_cast<const uint64_t *>(address), __ATOMIC_ACQUIRE);
}

uint32_t load32(const uint8_t *address) {
    return __atomic_load_n(reinterpret_cast<const uint32_t *>(address), __ATOMIC_ACQUIRE);
}

void store64(uint8_t *address, uint64_t value) {
    __atomic_store_n(reinterpret_cast<uint64_t *>(address), value, __ATOMIC_RELEASE);
}

void store32(uint8_t *address, uint32_t value) {
    __atomic_store_n(reinterpret_cast<uint32_t *>(address), value, __ATOMIC_RELEASE);
}

uint32_t *bell(uint8_t *address) { return reinterpret_cast<uint32_t *>(address); }

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("yield");
#endif
}

uint32_t next_sequence(uint32_t sequence) {
    ++sequence;
    return (sequence & 0xffff) == 0xffff ? sequence + 2 : sequence;
}

struct Lane {
    uint8_t *port = nullptr;
    std::atomic<uint32_t> outstanding{0};  // oldest sequence in the ring that is not complete; 0: none
    uint32_t ahead = 0;                    // the one after it in the ring; 0: none
    uint32_t entries[CUELIGHT_LANE_PORT_RECORD_COUNT] = {};  // in each record buffer
    uint64_t passes[CUELIGHT_LANE_PORT_RECORD_COUNT] = {};   // PASS word of the pass in it, without stamp

    uint8_t *done(uint32_t sequence) const {
        return port + CUELIGHT_LANE_PORT_DONE +
               sequence % CUELIGHT_LANE_PORT_DONE_COUNT * CUELIGHT_LANE_PORT_DONE_STRIDE;
    }

    bool complete() const {
        const uint32_t sequence = outstanding.load(std::memory_order_relaxed);
        return sequence && load32(done(sequence) + CUELIGHT_COMPLETION_BATCH_DONE) == sequence;
    }

    // Makes the completion entry of a coming dispatch empty.
    void clear_done(uint32_t sequence) const {
        for (uint32_t at = 0; at <= CUELIGHT_COMPLETION_BATCH_DONE; at += 8) store64(done(sequence) + at, 0);
    }

    // The stamp falls before the unit changes and stands again after.
    static void write_unit(uint8_t *unit, uint64_t low, uint64_t high) {
        store64(unit + 8, 0);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        store64(unit, low);
        store64(unit + 8, high);
    }
};

struct Event {
    uint64_t head, payload;
};

class Twin {
  public:
    Twin(int segment, uint64_t size, uint32_t ports, uint32_t port_stride, uint64_t nonce, bool polling)
        : size_(size), polling_(polling), model_(nonce) {
        void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, segment, 0);
        if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category());
        memory_ = static_cast<uint8_t *>(memory);
        device_bell_ = bell(memory_ + CUELIGHT_SEGMENT_DEVICE_BELL);
        host_bell_ = bell(memory_ + CUELIGHT_SEGMENT_HOST_BELL);
        for (uint32_t i = 0; i < lanes; ++i) lanes_[i].port = memory_ + ports + uint64_t{i} * port_stride;
        set_time();
        for (uint64_t i = 0; !idle() && i < patience_cycles; ++i) step(nullptr);
        resynchronize();
        // Signals are for the program's own threads.
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        const int error = pthread_create(&thread_, nullptr, [](void *twin) -> void * {
            static_cast<Twin *>(twin)->run();
            return nullptr;
        }, this);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (error) {
            munmap(memory_, size_);
            throw std::system_error(error, std::generic_category());
        }
        pthread_setname_np(thread_, "cuelight-twin");
    }

    ~Twin() { munmap(memory_, size_); }

    void close() {
        const std::lock_guard<std::mutex> once(close_mutex_);
        closing_.store(true);
        cuelight_bell_ring(device_bell_);
        if (ended_ || abandoned_) return;
        timespec deadline;
        clock_gettime(CLOCK_REALTIME, &deadline);
        deadline.tv_sec += join_s;
        ended_ = !pthread_timedjoin_np(thread_, nullptr, &deadline);
        abandoned_ = !ended_;
    }

    // Closes it; whether it may be deleted then: nobody is in a call, nor stands still in the thread.
    bool quit() {
        close();
        // At the end of a process another thread may still be in a call.
        while (callers_.load()) sched_yield();
        Lock lock(mutex_, std::defer_lock);
        return !abandoned_ && take(lock);
    }

    int read(uint32_t addr, uint64_t *data, Patience patience) {
        return call([&] { return read_all(&addr, 1, data); }, patience);
    }

    int write(uint32_t addr, uint64_t data, uint8_t strobe, Patience patience) {
        return call([&] {
            if (!issue({true, static_cast<uint16_t>(addr), data, strobe})) return false;
            if (!await([&] { return model_.top.req_ready; })) return false;
            const bool moves_sequences = addr - CUELIGHT_LANE < CUELIGHT_LANE_STRIDE * CUELIGHT_LANE_COUNT ||
                                         addr == CUELIGHT_CONTROL + CUELIGHT_CONTROL_GROUP_RESET;
            return !moves_sequences || resynchronize();
        }, patience);
    }

    // Takes up to `limit` events, those kept here first.
    int take_trace(Event *out, uint32_t limit, uint32_t *count) {
        return call([&] {
            // The FIFO shows nothing for a cycle after some pops.
            for (unsigned blank = 0; blank < 3 && trace_.size() < limit; step(nullptr)) {
                model_.settle();
                blank = model_.top.trace_head ? 0 : blank + 1;
                trace_draining_ = true;
            }
            *count = std::min<size_t>(limit, trace_.size());
            std::copy_n(trace_.begin(), *count, out);
            trace_.erase(trace_.begin(), trace_.begin() + *count);
            return true;
        });
    }

    // Whether the thread goes round within so many slices of a millisecond; `late` if not.
    int beat(uint32_t slices) {
        const uint32_t seen = beats_.load();
        cuelight_bell_ring(device_bell_);
        for (uint32_t i = 0; beats_.load() == seen; ++i) {
            if (closing_.load()) return closed;
            if (lost_.load()) return lost;
            if (i == slices) return late;
            const timespec slice{0, 1000000};
            nanosleep(&slice, nullptr);
        }
        return ok;
    }

    uint64_t cycles() {
        Lock lock(mutex_, std::defer_lock);
        return take(lock) ? model_.cycles : 0;
    }

  private:
    using Lock = std::unique_lock<std::timed_mutex>;

    // ------------------------------------------------------------------ the model; all with the lock held

    void set_time() { model_.top.time_ns = now_ns(); }

    bool step(const Request *request) {
        auto &top = model_.top;
        if (model_.cycles % time_cycles == 0) set_time();
        model_.settle(request);
        watch_interrupts();
        const bool accepted = request && top.req_ready;
        // From half full on, the trace moves over while other things are done; it costs no cycles of its own.
        trace_draining_ = (trace_draining_ && top.trace_head) || top.irq_trace;
        top.trace_take = trace_draining_ && top.trace_head && trace_.size() < trace_limit;
        if (top.trace_take) trace_.push_back({top.trace_head, top.trace_payload});
        model_.edge();
        top.trace_take = 0;
        // Registers, so that they stand before the next cycle is settled.
        answered_ = top.rsp_valid;
        answer_ = top.rsp_data;
        return accepted;
    }

    // Notes what rises; to be called in every cycle, and in the last one that is only settled.
    void watch_interrupts() {
        const uint32_t interrupts = model_.top.irq_retire | model_.top.irq_reject << 1;
        host_due_ |= (interrupts & ~interrupts_) != 0;
        interrupts_ = interrupts;
    }

    bool idle() {
        model_.settle();
        return model_.top.idle;
    }

    // Whether the device or its lanes' rings will change without another call.
    bool busy() {
        model_.settle();
        watch_interrupts();
        return !model_.top.idle || waiting();
    }

    // Lanes whose dispatches wait to be carried over.
    uint32_t waiting() {
        model_.settle();
        return model_.top.poll_valid;
    }

    template <typename Condition>
    bool await(Condition condition) {
        for (uint64_t i = 0; i < patience_cycles; ++i) {
            model_.settle();
            if (condition()) return true;
            step(nullptr);
        }
        return give_up();
    }

    bool issue(const Request &request) {
        for (uint64_t i = 0; i < patience_cycles; ++i)
            if (step(&request)) return true;
        return give_up();
    }

    // Reads that follow each other as fast as the bus takes them.
    bool read_all(const uint32_t *addrs, unsigned count, uint64_t *out) {
        unsigned asked = 0, got = 0;
        for (uint64_t i = 0; i < patience_cycles; ++i) {
            const Request request = read_request(addrs[asked < count ? asked : 0]);
            asked += step(asked < count ? &request : nullptr);
            if (answered_) out[got++] = answer_;
            if (got == count) return true;
        }
        return give_up();
    }

    bool give_up() {
        lost_.store(true);
        host_due_ = true;
        return false;
    }

    // ------------------------------------------------------------------ between model and segment

    static uint32_t poll(uint32_t lane) { return CUELIGHT_POLL + lane * CUELIGHT_POLL_STRIDE; }

    static uint32_t buffer_of(uint64_t head) {
        return head >> CUELIGHT_DISPATCH_HEAD_BUFFER_BIT & (CUELIGHT_LANE_PORT_RECORD_COUNT - 1);
    }

    bool forward_completion(Lane &lane, uint32_t number) {
        const uint32_t sequence = lane.outstanding.load(std::memory_order_relaxed);
        const uint32_t entry = CUELIGHT_COMPLETION + number * CUELIGHT_COMPLETION_STRIDE +
                               sequence % CUELIGHT_COMPLETION_ENTRY_COUNT * CUELIGHT_COMPLETION_ENTRY_STRIDE;
        for (uint32_t at = 0; at < 8 * finished_pairs; at += 8)
            if (const uint64_t seats = load64(lane.done(sequence) + at))
                if (!issue({true, static_cast<uint16_t>(entry + at), seats, 0xff})) return false;
        if (!issue(write_request(entry + CUELIGHT_COMPLETION_BATCH_DONE, sequence))) return false;
        lane.outstanding.store(std::exchange(lane.ahead, 0), std::memory_order_relaxed);
        store32(lane.port + CUELIGHT_LANE_PORT_EXPECTED, next_sequence(sequence));
        // Within a pass the next dispatch is there by the time the very next read is answered.
        uint64_t head;
        const uint32_t addr = poll(number) + CUELIGHT_POLL_DISPATCH + CUELIGHT_DISPATCH_HEAD;
        if (!read_all(&addr, 1, &head)) return false;
        return !head || head & CUELIGHT_DISPATCH_HEAD_FIRST_MASK || publish(lane, number, head);
    }

    // Carries the dispatch in the poll head over, with its record if it is the first of its pass.
    bool deliver(Lane &lane, uint32_t number) {
        uint32_t addrs[2 + 2 * bitmap_units] = {poll(number) + CUELIGHT_POLL_DISPATCH + CUELIGHT_DISPATCH_HEAD,
                                                poll(number) + CUELIGHT_POLL_DISPATCH + CUELIGHT_DISPATCH_PASS};
        for (uint32_t i = 0; i < 2 * bitmap_units; ++i)
            addrs[2 + i] = poll(number) + CUELIGHT_POLL_RECORD + CUELIGHT_RECORD_BITMAP + 8 * i;
        uint64_t words[2 + 2 * bitmap_units];
        if (!read_all(addrs, 2 + 2 * bitmap_units, words)) return false;
        const uint64_t head = words[0];
        if (!head) return true;
        lane.passes[buffer_of(head)] = words[1] & ~(UINT64_C(0xffff) << 48);
        if (head & CUELIGHT_DISPATCH_HEAD_FIRST_MASK && !write_record(lane, number, head, words + 2)) return false;
        return publish(lane, number, head);
    }

    bool write_record(Lane &lane, uint32_t number, uint64_t head, const uint64_t *bitmap) {
        const uint32_t buffer = buffer_of(head);
        const uint32_t count = std::min<uint32_t>(lane.passes[buffer] >> CUELIGHT_DISPATCH_PASS_ENTRIES_BIT & 0xff,
                                                  CUELIGHT_RECORD_ENTRY_COUNT);
        uint32_t addrs[2 * CUELIGHT_RECORD_ENTRY_COUNT];
        uint64_t entries[2 * CUELIGHT_RECORD_ENTRY_COUNT];
        for (uint32_t i = 0; i < 2 * count; ++i)
            addrs[i] = poll(number) + CUELIGHT_POLL_RECORD + CUELIGHT_RECORD_ENTRY + 8 * i;
        if (count && !read_all(addrs, 2 * count, entries)) return false;
        uint8_t *const record = lane.port + CUELIGHT_LANE_PORT_RECORD + buffer * CUELIGHT_LANE_PORT_RECORD_STRIDE;
        for (uint32_t i = 0; i < bitmap_units; ++i)
            Lane::write_unit(record + CUELIGHT_RECORD_BITMAP + 16 * i, bitmap[2 * i], bitmap[2 * i + 1]);
        for (uint32_t i = 0; i < std::max(count, lane.entries[buffer]); ++i)
            Lane::write_unit(record + CUELIGHT_RECORD_ENTRY + 16 * i, i < count ? entries[2 * i] : 0,
                             i < count ? entries[2 * i + 1] : 0);
        lane.entries[buffer] = count;
        return true;
    }

    bool publish(Lane &lane, uint32_t number, uint64_t head) {
        const uint32_t sequence = static_cast<uint32_t>(head);
        const uint64_t stamp = uint64_t{sequence & 0xffff} << 48;
        lane.clear_done(sequence);
        if (lane.outstanding.load(std::memory_order_relaxed))
            lane.ahead = sequence;
        else
            lane.outstanding.store(sequence, std::memory_order_relaxed);
        uint8_t *const place = lane.port + CUELIGHT_LANE_PORT_RING +
                               sequence % CUELIGHT_LANE_PORT_RING_COUNT * CUELIGHT_LANE_PORT_RING_STRIDE;
        store64(place + CUELIGHT_DISPATCH_HEAD, head);
        store64(place + CUELIGHT_DISPATCH_PASS, lane.passes[buffer_of(head)] | stamp);
        store64(place + CUELIGHT_DISPATCH_RESERVED, 0);
        store64(place + CUELIGHT_DISPATCH_TAIL, stamp);
        cuelight_bell_ring(bell(lane.port + CUELIGHT_LANE_PORT_BELL));
        // Until the pop has its effect the head still shows this dispatch.
        return issue(write_request(poll(number) + CUELIGHT_POLL_POP, sequence)) && (step(nullptr), true);
    }

    // After what drops dispatches or moves sequences: whose dispatch is gone expects the next one.
    bool resynchronize() {
        for (uint32_t i = 0; i < lanes; ++i) {
            const uint32_t base = CUELIGHT_LANE + i * CUELIGHT_LANE_STRIDE;
            const uint32_t addrs[] = {base + CUELIGHT_LANE_LANE_STATUS, base + CUELIGHT_LANE_SEQUENCE};
            uint64_t words[2];
            if (!read_all(addrs, 2, words)) return false;
            if (words[0] & CUELIGHT_LANE_LANE_STATUS_OUTSTANDING_MASK) continue;
            lanes_[i].outstanding.store(0, std::memory_order_relaxed);
            lanes_[i].ahead = 0;
            store32(lanes_[i].port + CUELIGHT_LANE_PORT_EXPECTED, static_cast<uint32_t>(words[1]));
        }
        return true;
    }

    // ------------------------------------------------------------------ threads

    // Whoever holds the lock for longer stands still, or is gone.
    static bool take(Lock &lock) {
        for (unsigned i = 0; i < lock_slices; ++i)
            if (lock.try_lock_for(lock_slice)) return true;
        return false;
    }

    // One call of a host thread. The device's own work that it causes is left to the thread.
    template <typename Work>
    int call(Work work, Patience patience = waits) {
        if (closing_.load()) return closed;
        if (lost_.load()) return lost;
        callers_.fetch_add(1);
        Lock lock(mutex_, std::defer_lock);
        const bool taken = patience == waits ? take(lock) : lock.try_lock();
        callers_.fetch_sub(1);
        if (closing_.load()) return closed;
        if (!taken && patience == waits_not) return busy_now;
        if (!taken && !lost_.exchange(true)) cuelight_bell_ring(host_bell_);
        if (lost_.load()) return lost;
        set_time();
        const int status = work() ? ok : lost;
        const bool left = busy();
        const bool due = std::exchange(host_due_, false);
        lock.unlock();
        if (due) cuelight_bell_ring(host_bell_);
        if (left) {
            cuelight_bell_bump(device_bell_);
            if (sleeping_.load()) cuelight_bell_wake(device_bell_);
        }
        return status;
    }

    // Does what there is to do, for one burst at most; says whether something is left.
    bool serve() {
        set_time();
        for (uint32_t i = 0; i < lanes; ++i)
            if (lanes_[i].complete() && !forward_completion(lanes_[i], i)) return false;
        for (unsigned i = 0; i < burst_cycles; ++i) {
            if (const uint32_t mask = waiting()) {
                for (uint32_t lane = 0; lane < lanes; ++lane)
                    if (mask >> lane & 1 && !deliver(lanes_[lane], lane)) return false;
            } else if (idle()) {
                break;
            } else {
                step(nullptr);
            }
        }
        return busy() || complete();
    }

    void run() {
        while (!closing_.load()) {
            const uint32_t seen = cuelight_bell_read(device_bell_);
            Lock lock(mutex_);
            const bool more = serve();
            const bool due = std::exchange(host_due_, false);
            const bool dead = lost_.load();
            lock.unlock();
            beats_.fetch_add(1);
            if (due) cuelight_bell_ring(host_bell_);
            if (dead) return;
            // The mutex is not fair: whoever asks for a register goes first.
            for (int i = 0; callers_.load() && i < 100; ++i) sched_yield();
            if (!more) rest(seen);
        }
    }

    void rest(uint32_t seen) {
        if (polling_ && outstanding()) {
            for (unsigned i = 0; !complete() && cuelight_bell_read(device_bell_) == seen; ++i) relax();
            return;
        }
        sleeping_.store(true);
        cuelight_bell_sleep(device_bell_, seen, -1);
        sleeping_.store(false);
    }

    bool outstanding() const {
        for (const Lane &lane : lanes_)
            if (lane.outstanding.load(std::memory_order_relaxed)) return true;
        return false;
    }

    bool complete() const {
        for (const Lane &lane : lanes_)
            if (lane.complete()) return true;
        return false;
    }

    const uint64_t size_;
    const bool polling_;
    uint8_t *memory_ = nullptr;
    uint32_t *device_bell_ = nullptr, *host_bell_ = nullptr;

    std::timed_mutex mutex_;  // guards what follows
    Model model_;
    Lane lanes_[lanes];
    std::deque<Event> trace_;
    bool trace_draining_ = false;
    bool host_due_ = false;
    bool answered_ = false;
    uint64_t answer_ = 0;
    uint32_t interrupts_ = 0;

    std::atomic<int> callers_{0};
    std::atomic<uint32_t> beats_{0};
    std::atomic<bool> sleeping_{false}, closing_{false}, lost_{false};
    std::mutex close_mutex_;
    bool ended_ = false, abandoned_ = false;
    pthread_t thread_;
};

Twin &twin(void *handle) { return *static_cast<Twin *>(handle); }

}  // namespace

#define CUELIGHT_EXPORT extern "C" __attribute__((visibility("default")))

// A twin on the segment with this file descriptor, which may be closed afterwards; null (errno) if it can't be mapped.
CUELIGHT_EXPORT void *cuelight_twin_open(int segment, uint64_t size, uint32_t ports, uint32_t port_stride,
                                         uint64_t nonce, int polling) {
    try {
        return new Twin(segment, size, ports, port_stride, nonce, polling != 0);
    } catch (const std::system_error &error) {
        errno = error.code().value();
        return nullptr;
    }
}

// Ends the thread; later calls say so. The handle stays valid.
CUELIGHT_EXPORT void cuelight_twin_close(void *handle) { twin(handle).close(); }

// Closes it too. One whose thread stands still is left where it is.
CUELIGHT_EXPORT void cuelight_twin_free(void *handle) {
    if (twin(handle).quit()) delete &twin(handle);
}

CUELIGHT_EXPORT int cuelight_twin_beat(void *handle, uint32_t timeout_ms) { return twin(handle).beat(timeout_ms); }

CUELIGHT_EXPORT int cuelight_twin_read(void *handle, uint32_t addr, uint64_t *data) {
    return twin(handle).read(addr, data, waits);
}

CUELIGHT_EXPORT int cuelight_twin_write(void *handle, uint32_t addr, uint64_t data, uint32_t strobe) {
    return twin(handle).write(addr, data, static_cast<uint8_t>(strobe), waits);
}

// These two do nothing, and say so, where they would have to wait for another thread.
CUELIGHT_EXPORT int cuelight_twin_read_now(void *handle, uint32_t addr, uint64_t *data) {
    return twin(handle).read(addr, data, waits_not);
}

CUELIGHT_EXPORT int cuelight_twin_write_now(void *handle, uint32_t addr, uint64_t data, uint32_t strobe) {
    return twin(handle).write(addr, data, static_cast<uint8_t>(strobe), waits_not);
}

CUELIGHT_EXPORT int cuelight_twin_take_trace(void *handle, void *events, uint32_t limit, uint32_t *count) {
    return twin(handle).take_trace(static_cast<Event *>(events), limit, count);
}

CUELIGHT_EXPORT uint64_t cuelight_twin_cycles(void *handle) { return twin(handle).cycles(); }
