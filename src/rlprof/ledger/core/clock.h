/* Time in nanoseconds that never goes back, from the cheapest source that is safe here. */
#ifndef RLPROF_CLOCK_H
#define RLPROF_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__) && defined(__linux__)
#define RLPROF_HAVE_TSC 1
#include <x86intrin.h>
#else
#define RLPROF_HAVE_TSC 0
#endif

typedef enum { CLOCK_KIND_MONOTONIC, CLOCK_KIND_TSC, CLOCK_KIND_FAKE } ClockKind;

typedef struct {
    ClockKind kind;
    uint64_t tsc_base; /* ticks at ns_base */
    int64_t ns_base;   /* CLOCK_MONOTONIC at tsc_base */
    uint64_t ns_per_tick_q32;
    int64_t fake;     /* what a fake clock reads, set by tests */
    int64_t fake_cpu; /* the same for thread CPU time */
} Clock;

/* Why this process may not use the TSC; NULL if it may. */
const char *clock_tsc_refusal(void);

/* Returns 0, or -1 if this machine lacks that kind of clock. */
int clock_open(Clock *clock, ClockKind kind);

/* The measured rate of the TSC, for RLPROF_TSC in the environment of child processes, which then need not measure it.
 * False: it was not measured, or the machine cannot be identified. */
#define RATE_TEXT 64
bool clock_rate(char text[RATE_TEXT]);

/* Nanoseconds by which the clock has drifted from CLOCK_MONOTONIC since it was opened. */
int64_t clock_drift(const Clock *clock);

/* Nanoseconds of a system clock; -1: it cannot be read, as the CPU clock of a thread that has ended. */
static inline int64_t
clock_read(clockid_t id)
{
    struct timespec ts;
    return clock_gettime(id, &ts) == 0 ? (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec : -1;
}

/* On the hot path of the monotonic clock, so without a check: it can always be read. */
static inline int64_t
clock_monotonic(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static inline void
sleep_ns(int64_t ns)
{
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

static inline int64_t
clock_now(const Clock *clock)
{
#if RLPROF_HAVE_TSC
    if (clock->kind == CLOCK_KIND_TSC) {
        uint64_t ticks = __rdtsc() - clock->tsc_base;
        return clock->ns_base +
               (int64_t)(((unsigned __int128)ticks * clock->ns_per_tick_q32) >> 32);
    }
#endif
    if (clock->kind == CLOCK_KIND_MONOTONIC) {
        return clock_monotonic();
    }
    return clock->fake;
}

#endif
