/* The hot path: what a `with profile("name"):` runs, twice per span.
 *
 * It is one file, although a long one, so that the compiler can inline all of it into enter and leave. */
#include "core.h"

/* The statistics of a span that ends; its node's time is booked already. */
static inline void
close_entry(Ledger *ledger, Lane *lane, const Entry *entry, int64_t now)
{
    Node *node = entry->node;
    int64_t duration = now - entry->start;
    lane->left = now;
    node->calls++;
    node->busy += duration;
    if (duration < node->min) {
        node->min = duration;
    }
    if (duration > node->max) {
        node->max = duration;
    }
    histogram_add(&node->durations, duration);
    if (UNLIKELY(ledger->mode & MODE_TIMELINE)) {
        timeline_add(ledger, entry, duration, lane);
    }
}

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

/* Everything a plain span on the driver does not need: waits, workers, memory, device. A device is Python code: while
 * it runs, spans may open and end here and elsewhere, so nothing is on the stack yet and no place in it is kept. */
static __attribute__((noinline)) bool
enter_full(Span *span, Thread *thread, Lane *lane, Node *node)
{
    Ledger *ledger = span->ledger;
    Entry entry = {.span = span, .memory_start = -1, .memory_peak = -1, .device_peak = -1, .slowed_from = -1};
    int64_t now = clock_now(&ledger->clock);
    bool device = wants_device(ledger, span);
    if (span->flags & SPAN_MEMORY || device) {
        bool own = own_begin(thread, lane->top->node); /* the parent's time, as all of a span's preparation is */
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
        thread->between_steps = false; /* outside of every callback: the loop has ended */
    }
    if (UNLIKELY(node->parent != lane->top->node) && ledger->supervises) { /* start-up was open just now */
        Node *place = node_of(ledger, lane->top->node, span->operation);
        node = place != NULL ? place : node;
    }
    entry.node = node;
    entry.start = now;
    *++lane->top = entry;
    lane->waits += (span->flags & SPAN_WAIT) != 0;
    restate(thread, now);
    sharing_unlock(ledger);
    if (UNLIKELY(ledger->mode & MODE_WATCHED)) {
        watch_tell(ledger, span, true);
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

/* Whether a span needs more than its own times. A worker's does not while the driver is busy, and was since the
 * worker's last event: then nothing is shared out, and only the number of those who work is kept, if it `changes`. That
 * other processes must not see half done. */
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

/* Not inlined: what calls it then needs no stack frame while profiling is off. */
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
    lane->top = entry;
    note_working(ledger, thread, true);
    return true;
}

bool
span_enter(Span *span)
{
    return span->ledger->mode & MODE_ENABLED ? enter(span) : false;
}

/* Takes an open span off its stack, wherever in it it stands; its time must be booked. The caller owns what is
 * returned, and lets go of it last: that may run Python code. */
static Entry
remove_entry(Ledger *ledger, Lane *lane, Entry *entry, int64_t now)
{
    Entry removed = *entry;
    close_entry(ledger, lane, entry, now);
    lane->waits -= (entry->span->flags & SPAN_WAIT) != 0;
    for (; entry < lane->top; entry++) {
        entry[0] = entry[1];
    }
    lane->top->device_event = NULL;
    lane->top--;
    return removed;
}

/* What memory and device say at the end of a span that is off its stack already. Runs Python code, with the exception
 * that ends the span laid aside. */
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

static inline void
slow_down(Ledger *ledger, const Entry *ended, int64_t now)
{
    const Operation *operation = ended->span->operation;
    if (UNLIKELY(ledger->mode & MODE_SLOWED && operation->slowdown != NULL && ended->slowed_from >= 0)) {
        slowdown_end(ledger, operation->slowdown, ended->slowed_from, now - ended->start);
    }
}

static __attribute__((noinline)) void
exit_full(Span *span, Thread *thread, Lane *lane, int64_t now)
{
    Ledger *ledger = span->ledger;
    pulse_check(ledger, lane->mark, now);
    sharing_lock(ledger);
    now = not_before(ledger, now);
    charge(thread, now, true);
    Entry ended = remove_entry(ledger, lane, lane->top, now);
    restate(thread, now);
    sharing_unlock(ledger);
    if (span->flags & SPAN_MEMORY || ended.device_event != NULL) {
        bool own = own_begin(thread, lane->top->node);
        measure_end(ledger, &ended);
        own_end(thread, own);
    }
    if (UNLIKELY(ledger->mode & MODE_WATCHED)) {
        watch_tell(ledger, span, false);
    }
    slow_down(ledger, &ended, now);
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

/* The span that ends is not the innermost one: a generator or an exit stack held it, another task or thread ends it, or
 * it began while profiling was off, which has no entry and is no error. */
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
    Entry ended = remove_entry(ledger, lane, entry, now);
    if (lane->suspended && lane->top == lane->stack) {
        lane->suspended = false;
        ledger->suspended--;
        restate(ledger->driver, now);
    }
    restate(lane->host, now);
    sharing_unlock(ledger);
    if (lane != lane->host->lane) {
        lane_release(ledger, lane); /* its task is gone, or takes a lane again when it runs */
    }
    if (enabled) {
        measure_end(ledger, &ended);
    }
    Py_XDECREF(ended.device_event);
    if (ledger->mode & MODE_WATCHED) {
        watch_tell(ledger, span, false);
    }
}

/* Open since before profiling was switched off, perhaps: its time ended there. */
static SLOW_PATH void
exit_while_off(Span *span)
{
    exit_elsewhere(span, NULL, span->ledger->stopped);
}

static __attribute__((noinline)) void
leave(Span *span)
{
    Ledger *ledger = span->ledger;
    int64_t now = clock_now(&ledger->clock);
    Thread *thread = this_thread;
    if (UNLIKELY(thread == NULL || thread->ledger != ledger)) {
        thread = thread_known(ledger); /* one that is not has entered nothing, so it has nothing to leave */
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
    lane->top = entry - 1;
    note_working(ledger, thread, lane->top > lane->stack);
    close_entry(ledger, lane, entry, now);
}

static inline void
exit_span(Span *span)
{
    if (span->ledger->mode & MODE_ENABLED) {
        leave(span);
    }
    else if (UNLIKELY(span->ledger->left_open > 0)) {
        exit_while_off(span);
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
        Entry ended = remove_entry(lane->host->ledger, lane, lane->top, now);
        Py_XDECREF(ended.device_event);
    }
}

/* Moves what a node has got in the last `gap` ns, since the lane's last span ended, to another one. Returns how much time
 * that is: what an iteration that has ended counts is written, and stays where it is. */
static int64_t
move_rest(const Lane *lane, Node *node, Node *other, int64_t gap)
{
    int64_t own = node->self - node->marked.self;
    bool marked = gap > own;
    gap = marked ? own : gap;
    int64_t covered = node->covered - lane->stood.covered;
    if (marked && !lane->on_driver) {
        covered = gap - (node->waited - node->marked.waited) - (node_overlapped(node) - node->marked.overlapped);
    }
    Node moved = {
        .self = gap,
        .covered = covered,
        .shift = node->shift - (marked ? node->marked.shift : lane->stood.shift),
        .waited = node->waited - (marked ? node->marked.waited : lane->stood.waited),
        .off_cpu = node->off_cpu - (marked ? node->marked.off_cpu : lane->stood.off_cpu),
        .cost = node->cost - lane->stood.cost,
    };
#define MOVE(field)              \
    node->field -= moved.field; \
    other->field += moved.field
    MOVE(self);
    MOVE(covered);
    MOVE(shift);
    MOVE(waited);
    MOVE(off_cpu);
    MOVE(cost);
#undef MOVE
    return gap;
}

void
lane_end_below(Lane *lane, const Span *span, int64_t now)
{
    Ledger *ledger = lane->host->ledger;
    Entry *entry = find_entry(lane, span);
    if (entry == NULL) {
        return;
    }
    Entry ended = remove_entry(ledger, lane, entry, now);
    for (; entry <= lane->top; entry++) {
        Node *node = node_of(ledger, (entry - 1)->node, entry->span->operation);
        entry->node = node != NULL ? node : entry->node;
    }
    Py_XDECREF(ended.device_event);
}

/* split(outer, rest): ends the innermost span as of the end of what it last contained; what came after becomes a call
 * of `rest` beside it. For who learns only afterwards that something else had begun. Returns how long that was, ns; -1
 * where `outer` is not the innermost. */
PyObject *
ledger_split(Ledger *ledger, PyObject *args)
{
    Span *outer, *rest;
    if (!PyArg_ParseTuple(args, "O!O!", Span_Type, &outer, Span_Type, &rest)) {
        return NULL;
    }
    Thread *thread = ledger->mode & MODE_ENABLED ? thread_known(ledger) : NULL;
    Lane *lane = thread ? lane_here(thread, false) : NULL;
    if (lane == NULL || lane->top->span != outer || rest->ledger != ledger || outer->flags != 0) {
        return PyLong_FromLong(-1);
    }
    Node *node = lane->top->node;
    int64_t now = clock_now(&ledger->clock);
    now = now < lane->mark ? lane->mark : now;
    sharing_lock(ledger);
    now = not_before(ledger, now);
    charge(thread, now, true);
    int64_t since = lane->left > lane->top->start ? lane->left : lane->top->start;
    Node *other = now > since ? node_of(ledger, (lane->top - 1)->node, rest->operation) : NULL;
    int64_t gap = other != NULL ? move_rest(lane, node, other, now - since) : 0;
    Entry ended = remove_entry(ledger, lane, lane->top, now - gap);
    if (gap > 0) {
        Entry call = {.node = other, .span = rest, .start = now - gap};
        Entry *place = lane->top + 1; /* where the span stood that has just ended */
        *place = call;
        close_entry(ledger, lane, place, now);
    }
    restate(thread, now);
    sharing_unlock(ledger);
    if (ledger->mode & MODE_WATCHED) {
        watch_tell(ledger, outer, false);
    }
    slow_down(ledger, &ended, now - gap);
    return PyLong_FromLongLong(gap);
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
