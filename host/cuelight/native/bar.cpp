// Registers of a board in a mapped BAR: each is read by one load and written by one store, and a device that goes away
// in the midst of that is an answer, not the end of the process.

#include <sched.h>
#include <signal.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <new>

#include "cuelight_regs.h"

static_assert(sizeof(void *) == 8, "a 64-bit register takes one store");

#define CUELIGHT_EXPORT extern "C" __attribute__((visibility("default"), noinline))

// Memory that was written before must stand there before the device hears of it, and what a device announces must be
// read after the announcement. x86 keeps loads in order, and stores too, those to uncached memory included: only the
// compiler must be held. Others need the barrier, which orders the device's memory against the rest.
#if defined(__x86_64__)
#define ORDER_BEFORE_STORE() __asm__ volatile("" ::: "memory")
#define ORDER_AFTER_LOAD() __asm__ volatile("" ::: "memory")
#elif defined(__aarch64__)
#define ORDER_BEFORE_STORE() __asm__ volatile("dmb oshst" ::: "memory")
#define ORDER_AFTER_LOAD() __asm__ volatile("dmb oshld" ::: "memory")
#else
#define ORDER_BEFORE_STORE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define ORDER_AFTER_LOAD() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

// Functions of their own, so that a test can look at their instructions.
CUELIGHT_EXPORT uint32_t cuelight_bar_load32(const volatile uint32_t *address) {
    const uint32_t value = *address;
    ORDER_AFTER_LOAD();
    return value;
}

CUELIGHT_EXPORT uint64_t cuelight_bar_load64(const volatile uint64_t *address) {
    const uint64_t value = *address;
    ORDER_AFTER_LOAD();
    return value;
}

CUELIGHT_EXPORT void cuelight_bar_store32(volatile uint32_t *address, uint32_t value) {
    ORDER_BEFORE_STORE();
    *address = value;
}

CUELIGHT_EXPORT void cuelight_bar_store64(volatile uint64_t *address, uint64_t value) {
    ORDER_BEFORE_STORE();
    *address = value;
}

namespace {

enum Status { ok = 0, closed = -1, fault = -2, absent = -3, reset = -4 };

constexpr unsigned looks = 3;
constexpr int64_t patience_ns = 100000000;
constexpr int64_t pause_ns = 1000000;

int64_t now_ns() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// ---------------------------------------------------------------------- SIGBUS: the mapping has nothing behind it

struct Landing {
    sigjmp_buf place;
    const uint8_t *begin, *end;
};

// Of the static kind: the handler must not be the first to ask for it.
__attribute__((tls_model("initial-exec"))) thread_local Landing *volatile landing = nullptr;

struct sigaction former;

void on_bus_error(int number, siginfo_t *info, void *context) {
    Landing *const here = landing;
    const auto *const address = static_cast<const uint8_t *>(info->si_addr);
    // A handler that was called first, such as Python's faulthandler, raises the signal again in this thread.
    const bool again = info->si_code <= 0 && info->si_pid == getpid();
    if (here && (again || (address >= here->begin && address < here->end))) siglongjmp(here->place, 1);
    if (former.sa_flags & SA_SIGINFO) {
        former.sa_sigaction(number, info, context);
    } else if (former.sa_handler == SIG_DFL || former.sa_handler == SIG_IGN) {
        // It comes again when the instruction is repeated, and ends the process then.
        sigaction(number, &former, nullptr);
        if (info->si_code <= 0) raise(number);
    } else {
        former.sa_handler(number);
    }
}

// Once in a process: a second handler on top of another one's would call itself through it.
void handle_bus_errors() {
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action = {};
        action.sa_sigaction = on_bus_error;
        // Not blocked in the handler, so that leaving it by a jump leaves no mask behind.
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&action.sa_mask);
        sigaction(SIGBUS, &action, &former);
    });
}

template <typename Access>
bool survives(const uint8_t *begin, uint64_t size, Access access) {
    Landing mine;
    mine.begin = begin;
    mine.end = begin + size;
    if (sigsetjmp(mine.place, 0)) {
        landing = nullptr;
        return false;
    }
    landing = &mine;
    __asm__ volatile("" ::: "memory");
    access();
    __asm__ volatile("" ::: "memory");
    landing = nullptr;
    return true;
}

// ---------------------------------------------------------------------- registers

class Bar {
  public:
    Bar(uint8_t *base, uint64_t size) : base_(base), size_(size) {
        load(CUELIGHT_IDENTITY + CUELIGHT_IDENTITY_BOOT_NONCE, 8, &nonce_);
    }

    ~Bar() { munmap(base_, size_); }

    int read(uint32_t offset, uint32_t width, uint64_t *value) {
        if (const int status = status_.load()) return status;
        const uint64_t all_ones = width == 8 ? ~UINT64_C(0) : UINT32_MAX;
        if (!load(offset, width, value)) return settle(fault);
        // Each answer may be lost, also those after it was confirmed that the device is there.
        for (unsigned i = 0; i < looks && *value == all_ones; ++i) {
            if (const int status = confirm()) return settle(status);
            if (!load(offset, width, value)) return settle(fault);
        }
        return status_.load();
    }

    int write(uint32_t offset, uint32_t width, uint64_t value) {
        const Inside inside(writers_);
        if (const int status = status_.load()) return status;
        const bool stored = survives(base_, size_, [&] {
            if (width == 8)
                cuelight_bar_store64(reinterpret_cast<uint64_t *>(base_ + offset), value);
            else
                cuelight_bar_store32(reinterpret_cast<uint32_t *>(base_ + offset), static_cast<uint32_t>(value));
        });
        return stored ? status_.load() : settle(fault);
    }

    // Another thread may be in an access: it finds plain memory instead of the device, and says that this is closed.
    void close() {
        // The device may be reset next, and what waits in its hard block is carried out after that (docs/push.md). An
        // answer comes behind all writes.
        const bool open = status_.exchange(closed) != closed;
        for (const int64_t deadline = now_ns() + patience_ns; writers_.load() && now_ns() < deadline;) sched_yield();
        uint64_t answer;
        if (open) load(CUELIGHT_IDENTITY + CUELIGHT_IDENTITY_BOOT_NONCE, 8, &answer);
        mmap(base_, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }

  private:
    // Counts who is in a call.
    class Inside {
      public:
        explicit Inside(std::atomic<int> &count) : count_(count) { count_.fetch_add(1); }
        ~Inside() { count_.fetch_sub(1); }

      private:
        std::atomic<int> &count_;
    };

    bool load(uint32_t offset, uint32_t width, uint64_t *value) {
        // Written before a jump back and read after it.
        volatile uint64_t loaded = 0;
        const bool done = survives(base_, size_, [&] {
            loaded = width == 8 ? cuelight_bar_load64(reinterpret_cast<uint64_t *>(base_ + offset))
                                : cuelight_bar_load32(reinterpret_cast<uint32_t *>(base_ + offset));
        });
        *value = loaded;
        return done;
    }

    // Whether a read of all ones came from the device that was opened: it must say who it is several times in a row,
    // as one read may succeed while the link goes down, and one may get lost while it does not.
    int confirm() {
        const int64_t deadline = now_ns() + patience_ns;
        for (unsigned good = 0; good < looks;) {
            uint64_t magic, nonce;
            if (!load(CUELIGHT_IDENTITY + CUELIGHT_IDENTITY_MAGIC, 4, &magic)) return fault;
            if (!load(CUELIGHT_IDENTITY + CUELIGHT_IDENTITY_BOOT_NONCE, 8, &nonce)) return fault;
            if (magic == CUELIGHT_IDENTITY_MAGIC_RESET && nonce == nonce_) {
                ++good;
                continue;
            }
            if (magic == CUELIGHT_IDENTITY_MAGIC_RESET && nonce != ~UINT64_C(0)) return reset;
            if (now_ns() > deadline) return absent;
            good = 0;
            const timespec pause{0, pause_ns};
            nanosleep(&pause, nullptr);
        }
        return ok;
    }

    // A device that was lost stays so for this mapping, whatever it answers later.
    int settle(int status) {
        int expected = ok;
        return status_.compare_exchange_strong(expected, status) ? status : expected;
    }

    uint8_t *const base_;
    const uint64_t size_;
    uint64_t nonce_ = 0;
    std::atomic<int> status_{ok}, writers_{0};
};

}  // namespace

// Maps `size` bytes at `offset` of an open file; null (errno) if that can't be done.
CUELIGHT_EXPORT void *cuelight_bar_open(int descriptor, uint64_t offset, uint64_t size) {
    handle_bus_errors();
    void *const memory =
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset));
    return memory == MAP_FAILED ? nullptr : new Bar(static_cast<uint8_t *>(memory), size);
}

CUELIGHT_EXPORT int cuelight_bar_read(void *bar, uint32_t offset, uint32_t width, uint64_t *value) {
    return static_cast<Bar *>(bar)->read(offset, width, value);
}

CUELIGHT_EXPORT int cuelight_bar_write(void *bar, uint32_t offset, uint32_t width, uint64_t value) {
    return static_cast<Bar *>(bar)->write(offset, width, value);
}

CUELIGHT_EXPORT void cuelight_bar_close(void *bar) { static_cast<Bar *>(bar)->close(); }

// Nobody may be in a call.
CUELIGHT_EXPORT void cuelight_bar_free(void *bar) { delete static_cast<Bar *>(bar); }
