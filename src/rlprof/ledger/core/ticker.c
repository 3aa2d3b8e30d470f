/* The thread that decides when the Python stack is sampled. It has no GIL and never waits for it: a sampler that did
 * would get the GIL mostly where the program releases it, and see only those lines.
 *
 * At each tick it notes what the sampled thread does, as well as that can be seen from outside, and requests a call on
 * the main thread. That call reads the stack: see stacks.c. While one is under way, further ticks are only added up, so
 * a long call into C gets one sample with its whole time.
 *
 * The intervals vary, because a training that repeats itself 20 times per second would always be seen at the same
 * place. */
#define _GNU_SOURCE 1
#include "stacks.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#define ATTEMPTS 8

/* A longer time between two ticks may be a stop of the process: see pulse.c. */
#define MOST_NS LONG_ENOUGH

int
ticker_open_statm(void)
{
#ifdef __linux__
    return open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
#else
    return -1;
#endif
}

int64_t
ticker_memory(int statm)
{
    char text[120] = "";
    if (statm < 0 || pread(statm, text, sizeof text - 1, 0) <= 0) {
        return -1;
    }
    char *rest;
    strtoll(text, &rest, 10);
    int64_t pages = strtoll(rest, &rest, 10);
    return pages > 0 ? pages * sysconf(_SC_PAGESIZE) : -1;
}

void
ticker_release(Ticker *ticker)
{
    if (__atomic_sub_fetch(&ticker->references, 1, __ATOMIC_ACQ_REL) == 0) {
        if (ticker->statm >= 0) {
            close(ticker->statm);
        }
        free(ticker);
    }
}

static bool
hold(Ticker *ticker)
{
    return __atomic_exchange_n(&ticker->held, 1, __ATOMIC_ACQUIRE) == 0;
}

static void
let_go(Ticker *ticker)
{
    __atomic_store_n(&ticker->held, 0, __ATOMIC_RELEASE);
}

static PyThreadState *
state_of(const Ticker *ticker)
{
    return __atomic_load_n(&ticker->tstate, __ATOMIC_RELAXED);
}

/* Notes what the sampled thread does. It runs meanwhile: the lanes stay, but the stack of open spans may move, so that is
 * not read directly. stacks.c checks the node. False: there is nobody to watch. */
static bool
look(Ticker *ticker, Tick *tick)
{
    __atomic_store_n(&ticker->looking, 1, __ATOMIC_SEQ_CST);
    const Thread *thread = __atomic_load_n(&ticker->thread, __ATOMIC_SEQ_CST);
    /* A look that the thread has run through is taken again, which costs a microsecond: else a call in the next line
     * would be booked to the span that has just ended. */
    for (int attempt = 0; thread != NULL && attempt < ATTEMPTS; attempt++) {
        const Lane *lane = __atomic_load_n(&thread->lane, __ATOMIC_ACQUIRE);
        const Entry *top = __atomic_load_n(&lane->top, __ATOMIC_RELAXED);
        bool got;
        Peek node = {&top->node, &tick->node, sizeof tick->node};
        bool whole = peek_spots(state_of(ticker), tick->spots, MOST_SPOTS, &tick->spots_used, node, &got);
        tick->node = got ? tick->node : NULL;
        if (whole && top == __atomic_load_n(&lane->top, __ATOMIC_RELAXED)) {
            break;
        }
        tick->node = NULL; /* the sample then is where the call on the main thread finds the thread */
        tick->spots_used = 0;
    }
    __atomic_store_n(&ticker->looking, 0, __ATOMIC_SEQ_CST);
    return thread != NULL;
}

/* From here on the thread may be freed, if it is not the new one. */
void
ticker_watch(Ticker *ticker, const Thread *thread)
{
    if (ticker->thread == thread) {
        return;
    }
    if (thread != NULL) {
        __atomic_store_n(&ticker->tstate, thread->tstate, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&ticker->thread, thread, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&ticker->looking, __ATOMIC_SEQ_CST)) {
        sched_yield(); /* some microseconds; looking needs no lock */
    }
}

static bool
same_place(const Tick *a, const Tick *b)
{
    if (a->node != b->node || a->spots_used != b->spots_used) {
        return false;
    }
    for (int i = 0; i < a->spots_used; i++) {
        if (a->spots[i].frame != b->spots[i].frame || a->spots[i].instruction != b->spots[i].instruction) {
            return false;
        }
    }
    return true;
}

/* False: the ticks are being taken at this moment. */
static bool
note(Ticker *ticker, const Tick *tick)
{
    if (!hold(ticker)) {
        return false;
    }
    int used = ticker->ticks_used;
    Tick *last = used > 0 ? &ticker->ticks[used - 1] : NULL;
    if (last != NULL && (used == MOST_TICKS || same_place(last, tick))) {
        last->time = tick->time;
        last->ns += tick->ns;
        last->memory += tick->memory;
    }
    else {
        ticker->ticks[used] = *tick;
        ticker->ticks_used = used + 1;
    }
    let_go(ticker);
    return true;
}

int
ticker_take(Ticker *ticker, Tick *ticks)
{
    if (!hold(ticker)) {
        return 0;
    }
    int used = ticker->ticks_used;
    for (int i = 0; i < used; i++) {
        ticks[i] = ticker->ticks[i];
    }
    ticker->ticks_used = 0;
    let_go(ticker);
    return used;
}

static void
request(Ticker *ticker)
{
    if (!__atomic_load_n(&ticker->requested, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&ticker->requested, 1, __ATOMIC_RELEASE);
        __atomic_add_fetch(&ticker->references, 1, __ATOMIC_ACQ_REL);
        if (!call_on_main(state_of(ticker), stacks_on_main, ticker)) {
            __atomic_store_n(&ticker->requested, 0, __ATOMIC_RELEASE);
            ticker_release(ticker);
            return;
        }
    }
    wake_main(state_of(ticker));
}

static void *
ticker_run(void *argument)
{
    Ticker *ticker = argument;
    int64_t before = clock_now(&ticker->clock), memory = ticker_memory(ticker->statm);
    uint64_t random = (uint64_t)before | 1;
    for (;;) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sleep_ns(ticker->period * 3 / 4 + (int64_t)((random >> 33) % (uint64_t)(ticker->period / 2 + 1)));
        if (__atomic_load_n(&ticker->over, __ATOMIC_ACQUIRE)) {
            break;
        }
        int64_t now = clock_now(&ticker->clock), resident = ticker_memory(ticker->statm);
        Tick tick = {.time = now, .ns = smaller(now - before, MOST_NS)};
        tick.memory = resident >= 0 && memory >= 0 ? resident - memory : 0;
        if (look(ticker, &tick)) {
            if (!note(ticker, &tick)) {
                continue; /* the next tick stands for this one, too */
            }
            request(ticker);
        }
        before = now;
        memory = resident;
        __atomic_store_n(&ticker->cpu, clock_read(CLOCK_THREAD_CPUTIME_ID), __ATOMIC_RELAXED);
    }
    ticker_release(ticker);
    return NULL;
}

Ticker *
ticker_start(Ledger *ledger, int64_t period)
{
    Ticker *ticker = calloc(1, sizeof *ticker);
    pthread_t thread;
    pthread_attr_t attributes;
    if (ticker == NULL || pthread_attr_init(&attributes) != 0) {
        free(ticker);
        return NULL;
    }
    ticker->references = 2; /* the ledger's and the thread's */
    ticker->clock = ledger->clock;
    ticker->period = period;
    ticker->ledger = ledger;
    ticker->statm = ticker_open_statm();
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 128 << 10);
    sigset_t all, before; /* signals are for the program */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, ticker_run, ticker) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (!started) {
        ticker_release(ticker);
        ticker_release(ticker);
        return NULL;
    }
    return ticker;
}

/* The ledger wants no further ticks. */
void
ticker_end(Ticker *ticker)
{
    ticker->ledger = NULL;
    ticker_watch(ticker, NULL);
    __atomic_store_n(&ticker->over, 1, __ATOMIC_RELEASE);
    ticker_release(ticker);
}
