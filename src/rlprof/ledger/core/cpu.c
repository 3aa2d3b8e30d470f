/* Following a thread's CPU time: see cpu.h for the idea. */
#if defined(__linux__)
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "cpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && defined(__GLIBC__)
#define RLPROF_HAVE_RSEQ 1
#else
#define RLPROF_HAVE_RSEQ 0
#endif

/* For the kinds that never or always count as broken. */
static const volatile uint64_t always_zero = 0;

#if RLPROF_HAVE_RSEQ
#if defined(__x86_64__)
#define RSEQ_SIGNATURE 0x53053053u
#else
#define RSEQ_SIGNATURE 0xd428bc00u
#endif

/* The kernel's layout (linux/rseq.h), spelled out because older headers lack it. */
struct rseq_area {
    uint32_t cpu_id_start;
    uint32_t cpu_id;
    uint64_t rseq_cs;
    uint32_t flags;
};

struct rseq_section {
    uint32_t version;
    uint32_t flags;
    uint64_t start_ip;
    uint64_t post_commit_offset;
    uint64_t abort_ip;
} __attribute__((aligned(32)));

/* glibc 2.35 registers the area and exports its place. It is looked up at run time, because even a weak reference would
 * keep the module from loading with an older glibc. */
static ptrdiff_t rseq_offset;

/* Some kernels check the signature before an abort address even for a section that is not running. */
static const uint32_t abort_landing[2] = {RSEQ_SIGNATURE, 0};

/* A thread has one slot for all ledgers. Each ledger has its own descriptor, so that it does not take a slot that
 * another ledger armed for its own. They are static because the kernel may read them at any time. */
#define DESCRIPTORS 64
static struct rseq_section nowhere[DESCRIPTORS];

static volatile struct rseq_area *
rseq_of_this_thread(void)
{
    return (volatile struct rseq_area *)((char *)__builtin_thread_pointer() + rseq_offset);
}

uint64_t
cpu_new_token(void)
{
    static unsigned made;
    struct rseq_section *section = &nowhere[made++ % DESCRIPTORS];
    /* One byte inside this constant: no instruction pointer is ever there. */
    section->start_ip = (uintptr_t)&abort_landing[0];
    section->post_commit_offset = 1;
    section->abort_ip = (uintptr_t)&abort_landing[1];
    return (uintptr_t)section;
}

static void
arm(Cpu *cpu)
{
    *(volatile uint64_t *)cpu->slot = cpu->token;
}

/* Tried out, because a kernel that keeps the pointer over a sleep would hide all time off the CPU. */
static bool
kernel_clears_slot(void)
{
    volatile uint64_t *slot = &rseq_of_this_thread()->rseq_cs;
    uint64_t token = cpu_new_token();
    bool cleared = false;
    /* On a busy machine a short sleep may be over before it has begun. */
    for (long pause = 50000; !cleared && pause < 50000000; pause *= 10) {
        *slot = token;
        nanosleep(&(struct timespec){0, pause}, NULL);
        cleared = *slot != token;
    }
    *slot = 0;
    return cleared;
}

bool
cpu_rseq_works(void)
{
    static int works = -1;
    if (works < 0) {
        const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
        const unsigned int *size = dlsym(RTLD_DEFAULT, "__rseq_size");
        works = 0;
        if (offset != NULL && size != NULL && *size != 0) {
            rseq_offset = *offset;
            works = (int32_t)rseq_of_this_thread()->cpu_id >= 0 && kernel_clears_slot();
        }
    }
    return works;
}
#else
uint64_t
cpu_new_token(void)
{
    return 1;
}

bool
cpu_rseq_works(void)
{
    return false;
}
#endif

static int64_t
read_cpu(const Cpu *cpu, const Clock *clock)
{
    return cpu->kind == CPU_FAKE ? clock->fake_cpu : clock_read(cpu->clock);
}

void
cpu_open(Cpu *cpu, CpuKind kind, uint64_t token, const Clock *clock, int64_t now)
{
    cpu->kind = kind;
    cpu->slot = &always_zero;
    cpu->token = kind == CPU_OFF ? 0 : token;
#if RLPROF_HAVE_RSEQ
    if (kind == CPU_RSEQ) {
        cpu->slot = &rseq_of_this_thread()->rseq_cs;
        arm(cpu);
    }
#endif
#if defined(__linux__)
    bool followed = pthread_getcpuclockid(pthread_self(), &cpu->clock) == 0;
#else
    bool followed = kind == CPU_FAKE;
#endif
    if (!followed) {
        cpu->kind = CPU_OFF;
        cpu->slot = &always_zero;
        cpu->token = 0;
    }
    cpu->synced_wall = now;
    cpu->synced_cpu = cpu->kind == CPU_OFF ? 0 : read_cpu(cpu, clock);
}

int64_t
cpu_collect(Cpu *cpu, const Clock *clock, int64_t now, bool own)
{
    if (cpu->kind == CPU_OFF) {
        return 0;
    }
#if RLPROF_HAVE_RSEQ
    /* Armed before the clock is read: a break in between is collected once more, and never missed. */
    if (own && cpu->kind == CPU_RSEQ) {
        arm(cpu);
    }
#else
    (void)own;
#endif
    int64_t read = read_cpu(cpu, clock);
    if (read < 0) {
        return 0;
    }
    int64_t off = (now - cpu->synced_wall) - (read - cpu->synced_cpu);
    cpu->synced_wall = now;
    cpu->synced_cpu = read;
    return off;
}
