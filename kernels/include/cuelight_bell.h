/* Bells of the shared segment: 32-bit words that are bumped and woken (futex) across processes.
 *
 * A sleeper reads the bell, looks for work, and sleeps only while the bell still has the value it read; who makes
 * work rings after the work is visible. So a wakeup can't be lost, however the two interleave.
 */
#ifndef CUELIGHT_BELL_H
#define CUELIGHT_BELL_H

#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline uint32_t cuelight_bell_read(const uint32_t *bell) { return __atomic_load_n(bell, __ATOMIC_SEQ_CST); }

/* Makes sleepers look again, but does not wake them: for a caller who knows that nobody sleeps. */
static inline void cuelight_bell_bump(uint32_t *bell) { __atomic_fetch_add(bell, 1u, __ATOMIC_SEQ_CST); }

static inline void cuelight_bell_wake(uint32_t *bell) {
    syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void cuelight_bell_ring(uint32_t *bell) {
    cuelight_bell_bump(bell);
    cuelight_bell_wake(bell);
}

/* Sleeps while the bell still reads `seen`, at most `timeout_ns` (negative: without limit); may return early. */
static inline void cuelight_bell_sleep(uint32_t *bell, uint32_t seen, int64_t timeout_ns) {
    struct timespec timeout;
    timeout.tv_sec = timeout_ns / 1000000000;
    timeout.tv_nsec = timeout_ns % 1000000000;
    syscall(SYS_futex, bell, FUTEX_WAIT, seen, timeout_ns < 0 ? NULL : &timeout, NULL, 0);
}

#endif
