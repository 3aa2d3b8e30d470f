/* Samples of the Python stack of the thread that trains, about 20 per second, each booked to the node that was open.
 *
 * ticker.c decides when. The stack itself is read by that thread, in a pending call: CPython makes it at the next
 * function call or jump backward. So no signal is sent, no thread waits for the GIL, and a raised exception is not
 * touched. But the thread may have gone on for a few lines since the tick: after `a = b @ c`, the next call is in another
 * line. So the tick notes where the thread was, and the sample is corrected: see place_of.
 *
 * Samples are kept as a log until Python drains it, once per second. rlprof.ledger.stacks adds them up. Time that is
 * moved between nodes later is a record in the same log. */
#include "stacks.h"

#include <stdlib.h>
#include <unistd.h>

#define MOST_FRAMES 128 /* of one stack; the middle of a deeper one is left out */

/* ---- samples ---- */

/* The stack as it is now. */
typedef struct {
    const void *frames[MOST_FRAMES]; /* innermost first */
    int used;
} Now;

static void
walk(const PyThreadState *tstate, Now *now)
{
    const int half = MOST_FRAMES / 2;
    const void *outer[MOST_FRAMES / 2];
    int deep = 0;
    now->used = 0;
    for (const void *frame = frame_innermost(tstate); frame != NULL; frame = frame_back(frame)) {
        if (now->used < half) {
            now->frames[now->used++] = frame;
        }
        else {
            outer[deep++ % half] = frame;
        }
    }
    for (int i = deep > half ? deep - half : 0; i < deep; i++) {
        now->frames[now->used++] = outer[i % half];
    }
}

/* The code of a function that has returned since. Only code that was seen on a stack before is held, and cannot be gone:
 * any other address may be something else by now. Its time then belongs to the line that called it. */
static PyCodeObject *
ended_code(const Stacks *stacks, const Spot *spot)
{
    return map_get(&stacks->codes, (uintptr_t)spot->code);
}

/* Where the thread was at the tick: `lines`, innermost first. Returns their number, and in `rest` the first frame of the
 * stack that lies around them and has not moved since. */
static int
place_of(Stacks *stacks, const Tick *tick, const Now *now, int64_t *lines, int *rest)
{
    for (int i = 0; i < tick->spots_used; i++) {
        for (int j = 0; j < now->used; j++) {
            if (now->frames[j] != tick->spots[i].frame || frame_code(now->frames[j]) != tick->spots[i].code) {
                continue;
            }
            int used = 0;
            for (int k = 0; k <= i; k++) {
                PyCodeObject *code = k < i ? ended_code(stacks, &tick->spots[k]) : frame_code(now->frames[j]);
                int index = code != NULL ? code_index(code, tick->spots[k].instruction) : -1;
                if (k == i && index < 0) {
                    index = frame_instruction(now->frames[j]);
                }
                if (index >= 0 && (lines[used] = stack_line(stacks, code, index)) >= 0) {
                    used++;
                }
            }
            *rest = j + 1;
            return used;
        }
    }
    *rest = 0;
    return 0;
}

/* The node that was innermost at the tick; else the one that is now. */
static const Node *
node_at(const Ledger *ledger, const Thread *thread, const Tick *tick)
{
    for (uint32_t i = 0; tick->node != NULL && i < ledger->nodes_used; i++) {
        if (ledger->nodes[i] == tick->node) {
            return tick->node;
        }
    }
    return thread->lane->top->node;
}

static void
book(Ledger *ledger, const Thread *thread, const Tick *tick, const Now *now)
{
    Stacks *stacks = ledger->stacks;
    int64_t *record = stack_log_room(stacks, 5 + MOST_SPOTS + MOST_FRAMES);
    if (record == NULL) {
        stacks->lost += tick->ns;
        return;
    }
    int rest;
    int used = place_of(stacks, tick, now, record + 5, &rest);
    for (int i = rest; i < now->used; i++) {
        int64_t line = stack_line(stacks, frame_code(now->frames[i]), frame_instruction(now->frames[i]));
        if (line >= 0) {
            record[5 + used++] = line;
        }
    }
    record[0] = 5 + used;
    record[1] = tick->time;
    record[2] = node_at(ledger, thread, tick)->id;
    record[3] = tick->ns;
    record[4] = tick->memory;
    stacks->log_used += 5 + (size_t)used;
    stacks->newest = larger(stacks->newest, tick->time);
}

/* The thread whose stack is sampled: the driver, or the one that may train in a worker's process. */
static Thread *
sampled_thread(const Ledger *ledger)
{
    unsigned long ident = ledger->elsewhere ? ledger->local : ledger->driver != NULL ? ledger->driver->ident : 0;
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        if (thread->ident == ident && thread->tstate != NULL) {
            return thread;
        }
    }
    return NULL;
}

/* Tells the ticker whom to watch. Pending calls are made on the main thread only. */
void
stacks_refresh(Ledger *ledger)
{
    Ticker *ticker = ledger->stacks->ticker;
    Thread *thread = ticker != NULL ? sampled_thread(ledger) : NULL;
    if (thread != NULL && thread->ident == ledger->stacks->main && ledger->mode & MODE_ENABLED) {
        ticker_watch(ticker, thread);
    }
    else if (ticker != NULL) {
        ticker_watch(ticker, NULL);
    }
}

/* The pending call. */
int
stacks_on_main(void *argument)
{
    Ticker *ticker = argument;
    Ledger *ledger = ticker->ledger;
    Thread *thread = ledger != NULL && ledger->mode & MODE_ENABLED ? sampled_thread(ledger) : NULL;
    Tick ticks[MOST_TICKS];
    int count = ticker_take(ticker, ticks);
    if (thread != NULL && thread->tstate == PyThreadState_Get()) {
        bool own = own_begin(thread, NULL);
        Now now;
        walk(thread->tstate, &now);
        for (int i = 0; i < count; i++) {
            book(ledger, thread, &ticks[i], &now);
        }
        own_end(thread, own);
    }
    if (ledger != NULL) {
        stacks_refresh(ledger);
    }
    __atomic_store_n(&ticker->requested, 0, __ATOMIC_RELEASE);
    ticker_release(ticker);
    return 0;
}

/* stack_tick(): samples the stack now, from any thread. For drivers that are not the main thread, and for tests. */
PyObject *
ledger_stack_tick(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    Stacks *stacks = ledger->stacks;
    Thread *thread = stacks != NULL && ledger->mode & MODE_ENABLED ? sampled_thread(ledger) : NULL;
    if (thread == NULL) {
        Py_RETURN_FALSE;
    }
    int64_t time = clock_now(&ledger->clock), memory = ticker_memory(stacks->statm);
    Tick tick = {.time = time, .ns = smaller(time - larger(stacks->ticked, ledger->started), LONG_ENOUGH)};
    tick.memory = memory >= 0 && stacks->memory >= 0 ? memory - stacks->memory : 0;
    stacks->ticked = time;
    stacks->memory = memory;
    Now now;
    walk(thread->tstate, &now);
    book(ledger, thread, &tick, &now);
    Py_RETURN_TRUE;
}

/* ---- begin and end ---- */

static void
end_ticker(Stacks *stacks)
{
    if (stacks->ticker != NULL) {
        stacks->cpu += __atomic_load_n(&stacks->ticker->cpu, __ATOMIC_RELAXED);
        ticker_end(stacks->ticker);
        stacks->ticker = NULL;
    }
}

static Stacks *
stacks_new(void)
{
    Stacks *stacks = calloc(1, sizeof *stacks);
    if (stacks != NULL) {
        stacks->statm = ticker_open_statm();
        stacks->memory = ticker_memory(stacks->statm);
    }
    return stacks;
}

/* stacks(period, main): samples about every `period` ns from now on; 0 ends that. `main` is the main thread. */
PyObject *
ledger_stacks(Ledger *ledger, PyObject *args)
{
    long long period;
    unsigned long main;
    if (!PyArg_ParseTuple(args, "Lk", &period, &main)) {
        return NULL;
    }
    if (period <= 0) {
        if (ledger->stacks != NULL) {
            end_ticker(ledger->stacks);
        }
        Py_RETURN_NONE;
    }
    if (ledger->stacks == NULL && (ledger->stacks = stacks_new()) == NULL) {
        return PyErr_NoMemory();
    }
    end_ticker(ledger->stacks);
    ledger->stacks->main = main;
    ledger->stacks->log_used = ledger->stacks->lines_drained = 0;
    ledger->stacks->lost = ledger->stacks->cpu = 0;
    ledger->stacks->ticked = clock_now(&ledger->clock);
    if (ledger->clock.kind != CLOCK_KIND_FAKE) {
        ledger->stacks->ticker = ticker_start(ledger, period);
    }
    stacks_refresh(ledger);
    Py_RETURN_NONE;
}

/* The thread's record is freed next. */
void
stacks_forget(Ledger *ledger, const Thread *thread)
{
    Ticker *ticker = ledger->stacks != NULL ? ledger->stacks->ticker : NULL;
    if (ticker != NULL && ticker->thread == thread) {
        ticker_watch(ticker, NULL);
    }
}

void
stacks_reset(Ledger *ledger)
{
    if (ledger->stacks != NULL) {
        ledger->stacks->log_used = 0;
        ledger->stacks->lost = 0;
        stacks_refresh(ledger);
    }
}

/* The thread that ticks stays with the parent, and so does what the open files show. */
void
stacks_after_fork(Ledger *ledger)
{
    Stacks *stacks = ledger->stacks;
    ledger->stacks = NULL;
    if (stacks == NULL) {
        return;
    }
    if (stacks->ticker != NULL) {
        stacks->ticker->ledger = NULL;
        stacks->ticker->thread = NULL;
        ticker_release(stacks->ticker); /* for the thread */
        ticker_release(stacks->ticker); /* a call that is under way is made here, too, and has the last reference */
        stacks->ticker = NULL;
    }
    stacks_free(stacks);
}

void
stacks_free(Stacks *stacks)
{
    if (stacks == NULL) {
        return;
    }
    end_ticker(stacks);
    for (uint32_t i = 0; i < stacks->codes.capacity; i++) {
        Py_XDECREF((PyObject *)stacks->codes.slots[i].value);
    }
    map_free(&stacks->codes);
    map_free(&stacks->by_instruction);
    map_free(&stacks->by_line);
    if (stacks->statm >= 0) {
        close(stacks->statm);
    }
    free(stacks->lines);
    free(stacks->log);
    free(stacks);
}
