/* A process that was stopped (SIGSTOP, Ctrl-Z, a paused container, a suspended machine) neither worked nor waited.
 * That time has an account of its own.
 *
 * A thread notices it. The thread has no GIL and only sleeps, for a tenth of a second at a time. If it wakes much
 * too late, it either was ready to run and had no core, which the kernel counts, or it was not allowed to run. The
 * stop began within its last sleep. The middle of that sleep is taken, so a stop is known to within 0.05 s.
 *
 * No span may get the time of a stop. So before a long interval is booked, pulse_look fetches the stops from the
 * thread, and waits a moment if the thread is overdue. Then all lanes go on as if the clock had stood still. */
#include "core.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLICE INT64_C(100000000)
#define LEAST_STOP LONG_ENOUGH /* a busy machine wakes threads late, and the kernel does not count all of that */
#define STOPS 16

struct Pulse {
    Clock clock;
    int64_t beat; /* time when the thread last woke */
    uint32_t count;
    int64_t stops[STOPS][2]; /* start and end of each */
    int over;
};

/* How long the calling thread was ready to run and had no core, in ns; -1: unknown. */
static int64_t
held_up(int file)
{
    char text[80] = "";
    if (file < 0 || pread(file, text, sizeof text - 1, 0) <= 0) {
        return -1;
    }
    unsigned long long ran, waited;
    return sscanf(text, "%llu %llu", &ran, &waited) == 2 ? (int64_t)waited : -1;
}

static void *
pulse_run(void *argument)
{
    Pulse *pulse = argument;
    int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    int64_t woke = clock_now(&pulse->clock), held = held_up(file), cpu = clock_read(CLOCK_PROCESS_CPUTIME_ID);
    while (!__atomic_load_n(&pulse->over, __ATOMIC_ACQUIRE)) {
        sleep_ns(SLICE);
        int64_t before = woke, held_before = held, cpu_before = cpu;
        woke = clock_now(&pulse->clock);
        held = held_up(file);
        cpu = clock_read(CLOCK_PROCESS_CPUTIME_ID);
        /* If the kernel does not count it, the process was at least not stopped while it computed. */
        int64_t ready = held >= 0 && held_before >= 0 ? held - held_before : cpu - cpu_before;
        int64_t stopped = woke - before - SLICE - ready;
        if (stopped > LEAST_STOP) {
            int64_t *stop = pulse->stops[pulse->count % STOPS];
            stop[0] = woke - stopped - SLICE / 2;
            stop[1] = woke;
            __atomic_store_n(&pulse->count, pulse->count + 1, __ATOMIC_RELEASE);
        }
        __atomic_store_n(&pulse->beat, woke, __ATOMIC_RELEASE);
    }
    if (file >= 0) {
        close(file);
    }
    free(pulse);
    return NULL;
}

/* The thread blocks all signals, because they are for the program. */
static bool
pulse_start(Pulse *pulse)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_attr_init(&attributes) != 0) {
        return false;
    }
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 128 << 10);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, pulse_run, pulse) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

void
pulse_end(Ledger *ledger)
{
    if (ledger->pulse != NULL) {
        __atomic_store_n(&ledger->pulse->over, 1, __ATOMIC_RELEASE); /* the thread frees it */
        ledger->pulse = NULL;
    }
}

/* pulse(span): books to this span, from now on, the time while the process is stopped; None ends that. */
PyObject *
ledger_pulse(Ledger *ledger, PyObject *span)
{
    pulse_end(ledger);
    if (Py_IS_TYPE(span, Span_Type) && ledger->clock.kind != CLOCK_KIND_FAKE) {
        Pulse *pulse = calloc(1, sizeof *pulse);
        if (pulse != NULL) {
            pulse->clock = ledger->clock;
            pulse->beat = clock_now(&pulse->clock);
            if (pulse_start(pulse)) {
                ledger->pulse = pulse;
                ledger->stops_seen = 0;
                ledger->suspension = (Span *)span; /* the ledger holds all of its spans */
            }
            else {
                free(pulse);
            }
        }
    }
    Py_RETURN_NONE;
}

/* The driver's waiting that another process has already left out, because it noticed the stop first. */
static int64_t
left_out(const Ledger *ledger)
{
    const Sharing *sharing = ledger->sharing;
    const Thread *driver = ledger->driver;
    if (!sharing->waiting || ledger->elsewhere || sharing->waiting_mark <= driver->lane->mark) {
        return 0;
    }
    int64_t skipped = sharing->waiting_mark - driver->lane->mark - (sharing->wait_clock - driver->cover_mark);
    return skipped > LEAST_STOP ? skipped : 0;
}

/* The part of a stop after `mark`. Its start is not known exactly, but nothing was marked inside of it. */
static int64_t
behind(int64_t mark, int64_t start, int64_t end)
{
    return larger(0, end - larger(mark, start));
}

static void
shift_lanes(Ledger *ledger, int64_t start, int64_t end)
{
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        int64_t gap = lane->host != NULL ? behind(lane->mark, start, end) : 0;
        lane->mark += gap;
        if (lane->stood.left == lane->left) {
            lane->stood.left += gap;
        }
        lane->left += gap;
        for (Entry *entry = lane->stack; gap > 0 && entry <= lane->top; entry++) {
            entry->start += gap;
        }
    }
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        thread->cpu.synced_wall += behind(thread->cpu.synced_wall, start, end);
    }
}

static Node *
suspension_node(Ledger *ledger)
{
    Span *startup = ledger->startup;
    ledger->startup = NULL; /* start-up does not give way to a stop */
    Node *node = node_of(ledger, ledger->driver->base->stack->node, ledger->suspension->operation);
    ledger->startup = startup;
    return node;
}

/* The process was stopped from `start` to `end`, which is not booked yet. Books it to the suspension, and lets all
 * lanes go on as if the stop had not been. A worker's process books nothing: the driver's process does. */
static void
carve(Ledger *ledger, int64_t start, int64_t end)
{
    Sharing *sharing = ledger->sharing;
    Lane *lane = ledger->driver->lane;
    sharing_lock(ledger);
    int64_t skipped = left_out(ledger);
    if (skipped > 0) {
        start = end - skipped; /* exactly the time that no account has */
    }
    if (!ledger->elsewhere) {
        if (skipped == 0 && sharing->waiting && sharing->waiting_mark > start) {
            start = sharing->waiting_mark; /* others have worked until then, and got the time */
        }
        start = larger(start, lane->mark); /* the time before is booked */
    }
    int64_t gap = end - start;
    Node *node = gap > 0 && !ledger->elsewhere ? suspension_node(ledger) : NULL;
    if (gap > 0 && (node != NULL || ledger->elsewhere)) {
        shift_lanes(ledger, start, end);
        if (sharing->waiting && skipped == 0) {
            sharing->waiting_mark += behind(sharing->waiting_mark, start, end);
        }
    }
    if (node != NULL) {
        node->self += gap;
        node->off_cpu += gap;
        node_count_call(node, gap);
        ledger->iterations.begun += behind(ledger->iterations.begun, start, end);
    }
    sharing_unlock(ledger);
}

/* Before a long time up to now is booked. */
void
pulse_look(Ledger *ledger, int64_t now)
{
    Pulse *pulse = ledger->pulse;
    /* Waits up to a tenth of a second, once per stop, because both threads were resumed at the same time. Not while
     * this process holds the lock, which others wait for: so every caller of `charge` checks before it takes it. */
    for (int tries = 0; tries < 100 && ledger->member.depth == 0; tries++) {
        if (now - __atomic_load_n(&pulse->beat, __ATOMIC_ACQUIRE) < SLICE + LEAST_STOP) {
            break;
        }
        sleep_ns(1000000);
    }
    uint32_t count = __atomic_load_n(&pulse->count, __ATOMIC_ACQUIRE);
    for (; ledger->stops_seen != count; ledger->stops_seen++) {
        const int64_t *stop = pulse->stops[ledger->stops_seen % STOPS];
        carve(ledger, stop[0], smaller(stop[1], now));
    }
}

/* stopped(span, start, end): books a stop, for tests. */
PyObject *
ledger_stopped(Ledger *ledger, PyObject *args)
{
    Span *span;
    long long start, end;
    if (!PyArg_ParseTuple(args, "O!LL", Span_Type, &span, &start, &end)) {
        return NULL;
    }
    if (ledger->mode & MODE_ENABLED) {
        ledger->suspension = span;
        carve(ledger, start, end);
    }
    Py_RETURN_NONE;
}
