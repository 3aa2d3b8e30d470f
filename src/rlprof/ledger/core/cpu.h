/* Thread CPU time at the price of one load.
 *
 * A system call per reading would cost six spans. Instead each thread points its rseq area at a descriptor that no code
 * ever runs inside. The kernel clears that pointer whenever the thread is switched out, moved or signalled; while it is
 * intact the thread has run without a break, so its CPU time grew exactly as wall time did. Only after a break is the
 * CPU clock read, and what is missing is booked as off-CPU time of the span that was innermost meanwhile. */
#ifndef RLPROF_CPU_H
#define RLPROF_CPU_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "clock.h"

typedef enum { CPU_OFF, CPU_RSEQ, CPU_SYSCALL, CPU_FAKE } CpuKind;

typedef struct {
    const volatile uint64_t *slot; /* intact while *slot == token */
    uint64_t token;
    int64_t synced_wall; /* the last moment both clocks were read */
    int64_t synced_cpu;
    clockid_t clock; /* this thread's CPU clock, readable from other threads */
    CpuKind kind;
} Cpu;

/* True if the kernel and glibc give this process an rseq area to use. */
bool cpu_rseq_works(void);

/* The token with which a ledger arms threads; never 0. */
uint64_t cpu_new_token(void);

/* Begins to follow the calling thread. */
void cpu_open(Cpu *cpu, CpuKind kind, uint64_t token, const Clock *clock, int64_t now);

/* Off-CPU nanoseconds since the last call; `own` on the thread itself, which also arms the next interval. */
int64_t cpu_collect(Cpu *cpu, const Clock *clock, int64_t now, bool own);

static inline bool
cpu_broken(const Cpu *cpu)
{
    return *cpu->slot != cpu->token;
}

#endif
