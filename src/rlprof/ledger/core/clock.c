/* Choosing and calibrating the clock; reading it is inline in clock.h. */
#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if RLPROF_HAVE_TSC
#include <cpuid.h>

/* The kernel watches the TSC over all cores and gives it up when it misbehaves. So we may use it where the kernel does,
 * if the CPU also promises a constant rate in every power state. */
const char *
clock_tsc_refusal(void)
{
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) || !(edx & (1u << 8))) {
        return "the CPU does not promise an invariant TSC";
    }
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (file == NULL) {
        return "the kernel's clock source cannot be read";
    }
    char source[32] = "";
    char *line = fgets(source, sizeof source, file);
    fclose(file);
    if (line == NULL || strncmp(source, "tsc", 3) != 0) {
        return "the kernel does not time with the TSC";
    }
    return NULL;
}

typedef struct {
    uint64_t tsc;
    int64_t ns;
} Pair;

/* The tightest of several tries, because an interrupt between the two readings widens the gap. */
static Pair
read_pair(void)
{
    Pair best = {0, 0};
    uint64_t best_gap = UINT64_MAX;
    for (int i = 0; i < 32; i++) {
        uint64_t before = __rdtsc();
        int64_t ns = clock_monotonic();
        uint64_t after = __rdtsc();
        if (after - before < best_gap) {
            best_gap = after - before;
            best.tsc = before + (after - before) / 2;
            best.ns = ns;
        }
    }
    return best;
}

static uint64_t rate; /* ns a tick, in 2^-32; 0: not known yet */

/* Writes "RATE BOOT_ID": the rate is only valid for this boot of this machine. False if the boot id is unknown. */
static bool
write_rate(char text[RATE_TEXT], uint64_t known)
{
    char boot[40] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool known_boot = file != NULL && fscanf(file, "%39s", boot) == 1;
    if (file != NULL) {
        fclose(file);
    }
    snprintf(text, RATE_TEXT, "%llu %s", (unsigned long long)known, boot);
    return known_boot;
}

/* The rate that a parent process has measured on this machine and left in the environment; else 0. */
static uint64_t
inherited_rate(void)
{
    const char *inherited = getenv("RLPROF_TSC");
    uint64_t known = inherited ? strtoull(inherited, NULL, 10) : 0;
    char text[RATE_TEXT];
    return known != 0 && write_rate(text, known) && strcmp(text, inherited) == 0 ? known : 0;
}

bool
clock_rate(char text[RATE_TEXT])
{
    return rate != 0 && write_rate(text, rate);
}

/* The rate is measured once per process. Two pairs 20 ms apart, each good to about 20 ns, give it to about 2 ppm. */
static uint64_t
measured_ns_per_tick_q32(void)
{
    if (rate == 0 && (rate = inherited_rate()) == 0) {
        Pair first = read_pair();
        sleep_ns(20000000);
        Pair second = read_pair();
        rate = (uint64_t)(((unsigned __int128)(uint64_t)(second.ns - first.ns) << 32) /
                          (second.tsc - first.tsc));
    }
    return rate;
}

static void
open_tsc(Clock *clock)
{
    clock->ns_per_tick_q32 = measured_ns_per_tick_q32();
    Pair base = read_pair();
    clock->tsc_base = base.tsc;
    clock->ns_base = base.ns;
}
#else
const char *
clock_tsc_refusal(void)
{
    return "only x86-64 Linux has a TSC to read";
}

bool
clock_rate(char *text)
{
    (void)text;
    return false;
}
#endif

int
clock_open(Clock *clock, ClockKind kind)
{
    memset(clock, 0, sizeof *clock);
    if (kind == CLOCK_KIND_TSC) {
        if (clock_tsc_refusal() != NULL) {
            return -1;
        }
#if RLPROF_HAVE_TSC
        open_tsc(clock);
#endif
    }
    clock->kind = kind;
    return 0;
}

int64_t
clock_drift(const Clock *clock)
{
    return clock->kind == CLOCK_KIND_TSC ? clock_now(clock) - clock_monotonic() : 0;
}
