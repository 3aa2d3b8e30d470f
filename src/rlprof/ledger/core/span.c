/* The hot path: what `with profile("name"):` runs, twice per span. It is one file, so that the compiler can inline
 * all of it into enter and leave. */
#include "core.h"

static bool
wants_device(const Ledger *ledger, const Span *span)
{
    return ledger->device != NULL && !(span->flags & SPAN_NO_DEVICE) &&
           (span->operation->on_device || (span->flags & SPAN_DEVICE));
}

static SLOW_PATH bool
enter_without_memory(Ledger *ledger)
{
    complain(ledger, "no memory for a span; it is not recorded");
    return false;
}

/* Everything that a plain span on the driver does not need: waits, workers, memory, device. A device is Python code, in
 * which spans may open and end. So the entry is put on the stack afterwards. */
static __attribute__((noinline)) bool
enter_full(Span *span, Thread *thread, Lane *lane, Node *node)
{
    Ledger *ledger = span->ledger;
    Entry entry = {.span = span, .memory_start = -1, .memory_peak = -1, .device_peak = -1, .slowed_from = -1};
    int64_t now = clock_now(&ledger->clock);
    bool device = wants_device(ledger, span);
    if (span->flags & SPAN_MEMORY || device) {
        bool own = own_begin(thread, lane->top->node); /* preparing a span is its parent's time */
        if (span->flags & SPAN_MEMORY) {
            memory_enter(ledger, &entry);
        }
        if (device) {
            device_enter(ledger, &entry);
        }
        own_end(thread, own);
        node = ledger->mode & MODE_ENABLED ? node_of(ledger, lane->top->node, span->operation) : NULL;
        if (node == NULL || (lane->top + 1 == lane->end && !lane_grow(lane))) {
            Py_XDECREF(entry.device_event);
            return ledger->mode & MODE_ENABLED ? enter_without_memory(ledger) : false;
        }
        now = clock_now(&ledger->clock);
    }
    pulse_check(ledger, lane->mark, now);
    sharing_lock(ledger);
    now = not_before(ledger, now);
    charge(thread, now, true);
    if (lane == thread->base) {
        thread->between_steps = false; /* not inside a callback: the loop has ended */
    }
    if (UNLIKELY(node->parent != lane->top->node) && ledger->supervises) { /* start-up was open just now */
        Node *place = node_of(ledger, lane->top->node, span->operation);
        node = place != NULL ? place : node;
    }
    entry.node = node;
    entry.start = now;
    lane->top[1] = entry;
    lane_set_top(lane, lane->top + 1);
    lane->waits += (span->flags & SPAN_WAIT) != 0;
    restate(thread, now);
    sharing_unlock(ledger);
    if (UNLIKELY(ledger->mode & MODE_WATCHED)) {
        watch_report(ledger, span, true);
    }
    if (UNLIKELY(ledger->mode & MODE_SLOWED && span->operation->slowdown != NULL)) {
        lane->top->slowed_from = slowdown_begin(lane, span->operation->slowdown);
    }
    return true;
}

static SLOW_PATH void
collect_off_cpu(Thread *thread, Node *node, int64_t now)
{
    pulse_check(thread->ledger, thread->lane->mark, now);
    lane_stand(thread->lane, node);
    node->off_cpu += cpu_collect(&thread->cpu, &thread->ledger->clock, now, true);
}

/* True if a span needs more than its own times. A worker's span does not, if the driver has been busy since the
 * worker's last event: nothing was shared out then, and only the number of working threads may change. Other
 * processes must not see that `changes` half done. */
static inline bool
needs_full(const Ledger *ledger, const Thread *thread, const Span *span, bool changes)
{
    if (LIKELY((span->flags | thread->flags | (ledger->mode & MODE_FULL)) == 0)) {
        return false;
    }
    const Sharing *sharing = ledger->sharing;
    return span->flags != 0 || thread->flags != THREAD_WORKER || (ledger->mode & MODE_FULL) ||
           __atomic_load_n(&sharing->waiting, __ATOMIC_RELAXED) ||
           thread->cover_mark != __atomic_load_n(&sharing->wait_clock, __ATOMIC_RELAXED) ||
           (changes && ledger->member.page != NULL);
}

static inline void
note_working(Ledger *ledger, Thread *thread, bool working)
{
    if (UNLIKELY(thread->flags != 0) && working != thread->working) {
        ledger->sharing->workers += working ? 1 : -1;
        thread->working = working;
    }
}

/* Not inlined, so that the callers need no stack frame while profiling is off. */
static __attribute__((noinline)) bool
enter(Span *span)
{
    Ledger *ledger = span->ledger;
    Thread *thread = thread_here(ledger);
    if (UNLIKELY(thread == NULL)) {
        return false;
    }
    Lane *lane = lane_here(thread, true);
    Node *parent = lane->top->node;
    Node *node = node_of(ledger, parent, span->operation);
    if (UNLIKELY(node == NULL || (lane->top + 1 == lane->end && !lane_grow(lane)))) {
        return node == NULL && startup_gives_way(ledger, parent) ? startup_enter(span) : enter_without_memory(ledger);
    }
    if (UNLIKELY(needs_full(ledger, thread, span, !thread->working))) {
        return enter_full(span, thread, lane, node);
    }
    Entry *entry = lane->top + 1;
    int64_t now = clock_now(&ledger->clock);
    if (UNLIKELY(cpu_broken(&thread->cpu))) {
        collect_off_cpu(thread, parent, now);
    }
    parent->self += now - lane->mark;
    lane->mark = now;
    entry->node = node;
    entry->span = span;
    entry->start = now;
    lane_set_top(lane, entry);
    note_working(ledger, thread, true);
    return true;
}

bool
span_enter(Span *span)
{
    return span->ledger->mode & MODE_ENABLED ? enter(span) : false;
}

/* Takes an open span off its stack, from any place in it. Its time must be booked. The caller owns the returned
 * entry and releases its event last, because that may run Python code. */
Entry
lane_remove(Ledger *ledger, Lane *lane, Entry *entry, int64_t now)
{
    Entry removed = *entry;
    entry_close(ledger, lane, entry, now);
    lane->waits -= (entry->span->flags & SPAN_WAIT) != 0;
    for (; entry < lane->top; entry++) {
        entry[0] = entry[1];
    }
    lane->top->device_event = NULL;
    lane_set_top(lane, lane->top - 1);
    return removed;
}

/* Reads memory and device at the end of a span that is off its stack. Runs Python code, so the exception that ends the
 * span is set aside. */
static void
measure_end(Ledger *ledger, Entry *entry)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (entry->span->flags & SPAN_MEMORY) {
        memory_exit(ledger, entry);
    }
    if (entry->device_event != NULL) {
        device_exit(ledger, entry);
    }
    Py_CLEAR(entry->device_event);
    PyErr_Restore(type, value, traceback);
}

static __attribute__((noinline)) void
exit_full(Span *span, Thread *thread, Lane *lane, int64_t now)
{
    Ledger *ledger = span->ledger;
    pulse_check(ledger, lane->mark, now);
    sharing_lock(ledger);
    now = not_before(ledger, now);
    charge(thread, now, true);
    Entry ended = lane_remove(ledger, lane, lane->top, now);
    restate(thread, now);
    sharing_unlock(ledger);
    if (span->flags & SPAN_MEMORY || ended.device_event != NULL) {
        bool own = own_begin(thread, lane->top->node);
        measure_end(ledger, &ended);
        own_end(thread, own);
    }
    if (UNLIKELY(ledger->mode & MODE_WATCHED)) {
        watch_report(ledger, span, false);
    }
    if (UNLIKELY(ledger->mode & MODE_SLOWED)) {
        slowdown_end(ledger, &ended, now);
    }
}

static Entry *
find_entry(const Lane *lane, const Span *span)
{
    for (Entry *entry = lane->top; entry > lane->stack; entry--) {
        if (entry->span == span) {
            return entry;
        }
    }
    return NULL;
}

/* The span that ends is not the innermost one: a generator or an exit stack held it, or another task or thread ends it.
 * Without an entry it began while profiling was off, which is no error. */
static __attribute__((noinline)) void
exit_elsewhere(Span *span, Lane *lane, int64_t now)
{
    Ledger *ledger = span->ledger;
    Entry *entry = lane ? find_entry(lane, span) : NULL;
    for (uint32_t i = 0; entry == NULL && i < ledger->lanes_used; i++) {
        if (ledger->lanes[i]->host != NULL) {
            lane = ledger->lanes[i];
            entry = find_entry(lane, span);
        }
    }
    if (entry == NULL) {
        return;
    }
    bool enabled = ledger->mode & MODE_ENABLED;
    sharing_lock(ledger);
    if (enabled) {
        now = settle(ledger, now);
    }
    else {
        ledger->left_open--;
    }
    Entry ended = lane_remove(ledger, lane, entry, now);
    if (lane->suspended && lane->top == lane->stack) {
        lane->suspended = false;
        ledger->suspended--;
        restate(ledger->driver, now);
    }
    restate(lane->host, now);
    sharing_unlock(ledger);
    if (lane != lane->host->lane) {
        lane_release(ledger, lane); /* its task has ended, or takes a lane again when it runs */
    }
    if (enabled) {
        measure_end(ledger, &ended);
    }
    Py_XDECREF(ended.device_event);
    if (ledger->mode & MODE_WATCHED) {
        watch_report(ledger, span, false);
    }
}

static __attribute__((noinline)) void
leave(Span *span)
{
    Ledger *ledger = span->ledger;
    int64_t now = clock_now(&ledger->clock);
    Thread *thread = this_thread;
    if (UNLIKELY(thread == NULL || thread->ledger != ledger)) {
        thread = thread_known(ledger); /* an unknown thread has entered nothing */
        if (thread == NULL) {
            return;
        }
    }
    Lane *lane = lane_here(thread, false);
    Entry *entry = lane->top;
    if (UNLIKELY(now < lane->mark)) {
        now = lane->mark; /* the lane was changed after the clock was read */
    }
    if (UNLIKELY(entry->span != span)) {
        exit_elsewhere(span, lane, now);
        return;
    }
    if (UNLIKELY(needs_full(ledger, thread, span, entry - 1 == lane->stack))) {
        exit_full(span, thread, lane, now);
        return;
    }
    Node *node = entry->node;
    if (UNLIKELY(cpu_broken(&thread->cpu))) {
        collect_off_cpu(thread, node, now);
    }
    node->self += now - lane->mark;
    lane->mark = now;
    lane_set_top(lane, entry - 1);
    note_working(ledger, thread, lane->top > lane->stack);
    entry_close(ledger, lane, entry, now);
}

static inline void
exit_span(Span *span)
{
    if (span->ledger->mode & MODE_ENABLED) {
        leave(span);
    }
    else if (UNLIKELY(span->ledger->left_open > 0)) {
        exit_elsewhere(span, NULL, span->ledger->stopped); /* its time ended when recording stopped */
    }
}

void
span_exit(Span *span)
{
    exit_span(span);
}

void
lane_unwind(Lane *lane, int64_t now)
{
    while (lane->top > lane->stack) {
        Entry ended = lane_remove(lane->host->ledger, lane, lane->top, now);
        Py_XDECREF(ended.device_event);
    }
}

void
lane_end_below(Lane *lane, const Span *span, int64_t now)
{
    Ledger *ledger = lane->host->ledger;
    Entry *entry = find_entry(lane, span);
    if (entry == NULL) {
        return;
    }
    Entry ended = lane_remove(ledger, lane, entry, now);
    for (; entry <= lane->top; entry++) {
        Node *node = node_of(ledger, (entry - 1)->node, entry->span->operation);
        entry->node = node != NULL ? node : entry->node;
    }
    Py_XDECREF(ended.device_event);
}

/* ---- called by `with` and as a decorator ---- */

static PyObject *
span_decorate(Span *span, PyObject *function)
{
    return PyObject_CallMethod(span->ledger->hooks, "decorate", "OO", (PyObject *)span, function);
}

static SLOW_PATH PyObject *
span_call_otherwise(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    if (count == 1 && kwnames == NULL) {
        return span_decorate((Span *)self, args[0]);
    }
    PyErr_SetString(PyExc_TypeError, "a span is used as 'with profile(name):' or as '@profile(name)' on a function");
    return NULL;
}

PyObject *
span_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    if (UNLIKELY(count != 0 || kwnames != NULL)) {
        return span_call_otherwise(self, args, count, kwnames);
    }
    Py_INCREF(self);
    if (((Span *)self)->ledger->mode & MODE_ENABLED) {
        enter((Span *)self);
    }
    return self;
}

static SLOW_PATH PyObject *
exit_misused(void)
{
    PyErr_SetString(PyExc_TypeError, "__exit__() takes an exception's type, value and traceback");
    return NULL;
}

PyObject *
span_exit_method(PyObject *self, PyObject *const *Py_UNUSED(args), Py_ssize_t count)
{
    if (UNLIKELY(count != 3)) {
        return exit_misused();
    }
    exit_span((Span *)self);
    Py_RETURN_NONE;
}
