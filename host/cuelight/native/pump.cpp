// The pump: serves the lanes of a device whose registers the host reads and writes. It runs in a thread of its caller's,
// and sleeps when the device can have nothing new: nothing happens there but what a write of the host or a completion
// has begun, or an interrupt tells.

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <deque>
#include <mutex>
#include <vector>

#include "delivery.hpp"

namespace {

using cuelight::bell_at;

enum Status { stuck = 2, late = 1, ok = 0, closed = -10 };

// After the last sign of life the device may still be at work on what began it.
constexpr int64_t settle_ns = 200000;
constexpr unsigned settle_rounds = 3;
// Then it is looked at ever less often, in case its work takes longer than that.
constexpr int64_t first_nap_ns = 1000000, longest_nap_ns = 64000000;
constexpr uint32_t trace_batch = 8, long_trace_batch = 64, rounds_per_trace = 8;
constexpr size_t trace_limit = 1 << 20;
constexpr std::chrono::milliseconds lock_slice{100};
constexpr unsigned lock_slices = 30;
// A lane is in POLL again after REST at most.
constexpr int64_t recall_ns = INT64_C(2000000000);

// MSI-X vectors.
constexpr uint32_t reject_waits = 1 << 0, retirement_waits = 1 << 1, lane_fell = 1 << 2, all_vectors = 0xf;

int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

// What a transport gives: functions that read and write 4 or 8 bytes.
struct Bus {
    void *context;
    int (*read_register)(void *context, uint32_t offset, uint32_t width, uint64_t *value);
    int (*write_register)(void *context, uint32_t offset, uint32_t width, uint64_t value);

    int read(const uint32_t *offsets, unsigned count, uint64_t *values) {
        for (unsigned i = 0; i < count; ++i)
            if (const int status = read_register(context, offsets[i], 8, &values[i])) return status;
        return ok;
    }

    int read32(uint32_t offset, uint32_t *value) {
        uint64_t wide;
        const int status = read_register(context, offset, 4, &wide);
        *value = static_cast<uint32_t>(wide);
        return status;
    }

    int write(uint32_t offset, uint32_t width, uint64_t value) { return write_register(context, offset, width, value); }
};

using Lane = cuelight::Delivery<Bus>;

struct Event {
    uint64_t head, payload;
};

class Pump {
  public:
    Pump(const Bus &bus, uint8_t *memory, uint64_t size, uint32_t lanes, uint32_t seats, uint32_t ports,
         uint32_t port_stride, bool polling)
        : bus_(bus), memory_(memory), size_(size), polling_(polling), lanes_(lanes) {
        for (uint32_t i = 0; i < lanes; ++i)
            lanes_[i].attach(&bus_, i, seats, memory + ports + uint64_t{i} * port_stride);
        device_bell_ = bell_at(memory + CUELIGHT_SEGMENT_DEVICE_BELL);
        host_bell_ = bell_at(memory + CUELIGHT_SEGMENT_HOST_BELL);
    }

    ~Pump() { munmap(memory_, size_); }

    // Serves for `period_ns`, or until something fails or it is closed, which stops it for good.
    int run(int64_t period_ns) {
        const int64_t end = now_ns() + period_ns;
        int64_t news_ns = now_ns(), nap_ns = first_nap_ns;
        uint32_t heard = cuelight_bell_read(device_bell_);
        {
            const std::lock_guard<std::timed_mutex> lock(mutex_);
            if (const int status = remind()) return status;
        }
        for (unsigned quiet = 0; now_ns() < end; ++quiet) {
            if (closing_.load()) return closed;
            const uint32_t seen = cuelight_bell_read(device_bell_);
            bool news = std::exchange(heard, seen) != seen;
            {
                const std::lock_guard<std::timed_mutex> lock(mutex_);
                if (const int status = serve(&news)) return status;
            }
            beats_.fetch_add(1);
            // The mutex is not fair.
            for (int i = 0; callers_.load() && i < 100; ++i) sched_yield();
            if (news) {
                news_ns = now_ns();
                nap_ns = first_nap_ns;
                quiet = 0;
            } else if (quiet >= settle_rounds && now_ns() - news_ns > settle_ns) {
                rest(seen, std::min(nap_ns, end - now_ns()));
                nap_ns = std::min(2 * nap_ns, longest_nap_ns);
            }
        }
        return ok;
    }

    int write(uint32_t offset, uint32_t width, uint64_t value) {
        const bool resets = offset == CUELIGHT_CONTROL + CUELIGHT_CONTROL_GROUP_RESET;
        const bool moves_sequences = resets || offset - CUELIGHT_LANE < CUELIGHT_LANE_STRIDE * CUELIGHT_LANE_COUNT;
        int status = ok;
        if (moves_sequences)
            status = alone([&] {
                if (const int failed = resets && value < lanes_.size() ? begin_anew(lanes_[value]) : ok) return failed;
                const int written = bus_.write(offset, width, value);
                return written ? written : resynchronize();
            });
        else
            status = bus_.write(offset, width, value);
        cuelight_bell_bump(device_bell_);
        if (sleeping_.load()) cuelight_bell_wake(device_bell_);
        return status;
    }

    int start() {
        return alone([&] {
            if (const int status = bus_.read32(retired, &retired_)) return status;
            if (const int status = bus_.read32(rejected, &rejected_)) return status;
            return resynchronize();
        });
    }

    // Takes up to `limit` events, those kept here first; none where the device has no more.
    int take_trace(Event *out, uint32_t limit, uint32_t *count) {
        return alone([&] {
            bool news = false;
            if (const int status = trace_.empty() ? take_events(limit, &news) : ok) return status;
            *count = std::min<size_t>(limit, trace_.size());
            std::copy_n(trace_.begin(), *count, out);
            trace_.erase(trace_.begin(), trace_.begin() + *count);
            return int{ok};
        });
    }

    // Has the device probe a lane that is sound.
    int probe(uint32_t lane, uint32_t generation) {
        const int status = alone([&] { return lanes_[lane].probe(generation); });
        cuelight_bell_ring(device_bell_);
        return status;
    }

    // The mode of a lane, as far as it has been seen.
    uint32_t mode(uint32_t lane) const { return static_cast<uint32_t>(lanes_[lane].mode()); }

    // Listens to eventfds that count the device's interrupts, one for each vector, for `period_ms`, or until it is
    // closed. From the first call on, rejects, retirements and falls are looked for only when they are announced.
    int listen(const int *descriptors, uint32_t count, int period_ms) {
        if (!listening_.exchange(true)) announced_.fetch_or(all_vectors);
        std::vector<pollfd> waiting(count);
        for (uint32_t i = 0; i < count; ++i) waiting[i] = {descriptors[i], POLLIN, 0};
        const int64_t end = now_ns() + int64_t{period_ms} * 1000000;
        for (int64_t left = end - now_ns(); left > 0; left = end - now_ns()) {
            if (closing_.load()) return closed;
            if (poll(waiting.data(), count, static_cast<int>(left / 1000000) + 1) <= 0) continue;
            uint32_t vectors = 0;
            uint64_t counted;
            for (uint32_t i = 0; i < count; ++i)
                if (waiting[i].revents & POLLIN && read(descriptors[i], &counted, sizeof counted) == sizeof counted)
                    vectors |= 1u << i;
            announced_.fetch_or(vectors);
            cuelight_bell_ring(device_bell_);
        }
        return ok;
    }

    // Whether it goes round within so many slices of a millisecond; `late` if not.
    int beat(uint32_t slices) {
        const uint32_t seen = beats_.load();
        cuelight_bell_ring(device_bell_);
        for (uint32_t i = 0; beats_.load() == seen; ++i) {
            if (closing_.load()) return closed;
            if (i == slices) return late;
            const timespec slice{0, 1000000};
            nanosleep(&slice, nullptr);
        }
        return ok;
    }

    void close() {
        closing_.store(true);
        cuelight_bell_ring(device_bell_);
    }

  private:
    static constexpr uint32_t retired = CUELIGHT_COUNTERS + CUELIGHT_COUNTERS_RETIRED;
    static constexpr uint32_t rejected = CUELIGHT_COUNTERS + CUELIGHT_COUNTERS_REJECTED;

    // Works with the lock held, for a thread of the host.
    template <typename Work>
    int alone(Work work) {
        callers_.fetch_add(1);
        std::unique_lock<std::timed_mutex> lock(mutex_, std::defer_lock);
        for (unsigned i = 0; !lock && i < lock_slices; ++i) lock.try_lock_for(lock_slice);
        callers_.fetch_sub(1);
        if (closing_.load()) return closed;
        return lock ? work() : int{late};
    }

    int resynchronize() {
        for (auto &lane : lanes_)
            if (const int status = lane.resynchronize()) return status;
        return ok;
    }

    // Leaves nothing to another process in the lane's place; before its group is reset.
    int begin_anew(Lane &lane) {
        bool back = false;
        for (const int64_t end = now_ns() + recall_ns; !back;)
            if (const int status = now_ns() > end ? int{stuck} : lane.recall(&back)) return status;
        lane.clear();
        return ok;
    }

    // What no interrupt may have told: it can get lost.
    int remind() {
        announced_.fetch_or(all_vectors);
        for (auto &lane : lanes_)
            if (const int status = lane.remind()) return status;
        return ok;
    }

    // One round; `news` if the device or a lane had any.
    int serve(bool *news) {
        const uint32_t announced = listening_.load() ? announced_.exchange(0) : all_vectors;
        for (auto &lane : lanes_)
            if (const int status = lane.serve(announced & lane_fell, news)) return status;
        if (announced & (reject_waits | retirement_waits))
            if (const int status = watch(news)) return status;
        // Where lanes leave no pause in it, the trace must still not overflow.
        if (*news && ++busy_rounds_ % rounds_per_trace) return ok;
        return take_events(*news ? long_trace_batch : trace_batch, news);
    }

    // Rings for retirements and rejects.
    int watch(bool *news) {
        uint32_t now_retired, now_rejected;
        if (const int status = bus_.read32(retired, &now_retired)) return status;
        if (const int status = bus_.read32(rejected, &now_rejected)) return status;
        if (now_retired != retired_ || now_rejected != rejected_) {
            retired_ = now_retired;
            rejected_ = now_rejected;
            *news = true;
            cuelight_bell_ring(host_bell_);
        }
        return ok;
    }

    int take_events(uint32_t limit, bool *news) {
        constexpr uint32_t state = CUELIGHT_FIFO + CUELIGHT_FIFO_TRACE_STATE;
        constexpr uint32_t event[] = {CUELIGHT_FIFO + CUELIGHT_FIFO_TRACE_HEAD,
                                      CUELIGHT_FIFO + CUELIGHT_FIFO_TRACE_PAYLOAD};
        if (trace_.size() >= trace_limit) return ok;
        uint64_t held;
        if (const int status = bus_.read(&state, 1, &held)) return status;
        uint32_t index = static_cast<uint32_t>(held);
        held = (held & CUELIGHT_FIFO_TRACE_STATE_HELD_MASK) >> CUELIGHT_FIFO_TRACE_STATE_HELD_BIT;
        for (uint32_t i = 0; i < std::min<uint64_t>(limit, held); ++i, ++index) {
            uint64_t words[2];
            if (const int status = bus_.read(event, 2, words)) return status;
            // The head is behind for a cycle after some pops.
            if (!words[0]) break;
            if (const int status = bus_.write(CUELIGHT_FIFO + CUELIGHT_FIFO_TRACE_POP, 4, index)) return status;
            trace_.push_back({words[0], words[1]});
            *news = true;
        }
        return ok;
    }

    // Until the bell differs from `seen`, at most so long.
    void rest(uint32_t seen, int64_t longest_ns) {
        if (longest_ns <= 0) return;
        if (polling_ && outstanding()) {
            const int64_t end = now_ns() + longest_ns;
            while (!complete() && cuelight_bell_read(device_bell_) == seen && now_ns() < end)
                for (unsigned i = 0; i < 16; ++i) relax();
            return;
        }
        sleeping_.store(true);
        cuelight_bell_sleep(device_bell_, seen, longest_ns);
        sleeping_.store(false);
    }

    bool outstanding() const {
        for (const auto &lane : lanes_)
            if (lane.outstanding()) return true;
        return false;
    }

    bool complete() const {
        for (const auto &lane : lanes_)
            if (lane.complete()) return true;
        return false;
    }

    Bus bus_;
    uint8_t *const memory_;
    const uint64_t size_;
    const bool polling_;
    uint32_t *device_bell_, *host_bell_;

    std::timed_mutex mutex_;  // guards what follows
    std::vector<Lane> lanes_;
    std::deque<Event> trace_;
    uint32_t retired_ = 0, rejected_ = 0, busy_rounds_ = 0;

    std::atomic<int> callers_{0};
    std::atomic<uint32_t> beats_{0};
    std::atomic<uint32_t> announced_{0};  // vectors that have come
    std::atomic<bool> listening_{false}, sleeping_{false}, closing_{false};
};

Pump &pump(void *handle) { return *static_cast<Pump *>(handle); }

}  // namespace

extern "C" {

// A pump on the segment with this file descriptor, which may be closed afterwards; null (errno) if it can't be mapped.
void *cuelight_pump_open(void *context, decltype(Bus::read_register) read, decltype(Bus::write_register) write,
                         int segment, uint64_t size, uint32_t lanes, uint32_t seats, uint32_t ports,
                         uint32_t port_stride, int polling) {
    void *const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, segment, 0);
    if (memory == MAP_FAILED) return nullptr;
    return new Pump({context, read, write}, static_cast<uint8_t *>(memory), size, lanes, seats, ports, port_stride,
                    polling != 0);
}

int cuelight_pump_start(void *handle) { return pump(handle).start(); }

int cuelight_pump_run(void *handle, int64_t period_ns) { return pump(handle).run(period_ns); }

int cuelight_pump_write(void *handle, uint32_t offset, uint32_t width, uint64_t value) {
    return pump(handle).write(offset, width, value);
}

int cuelight_pump_take_trace(void *handle, void *events, uint32_t limit, uint32_t *count) {
    return pump(handle).take_trace(static_cast<Event *>(events), limit, count);
}

int cuelight_pump_probe(void *handle, uint32_t lane, uint32_t generation) {
    return pump(handle).probe(lane, generation);
}

uint32_t cuelight_pump_mode(void *handle, uint32_t lane) { return pump(handle).mode(lane); }

int cuelight_pump_listen(void *handle, const int *descriptors, uint32_t count, int period_ms) {
    return pump(handle).listen(descriptors, count, period_ms);
}

int cuelight_pump_beat(void *handle, uint32_t timeout_ms) { return pump(handle).beat(timeout_ms); }

// Ends `run`; later calls say so.
void cuelight_pump_close(void *handle) { pump(handle).close(); }

// Nobody may be in a call.
void cuelight_pump_free(void *handle) { delete &pump(handle); }

}  // extern "C"
