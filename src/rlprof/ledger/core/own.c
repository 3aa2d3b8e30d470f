/* What rlprof does on a training's thread for longer than a span takes: rules in Python, readings of memory and devices,
 * snapshots. It is timed, where a span's cost is calibrated.
 *
 * Meanwhile all spans of that thread take the long way, and `charge` books the time of whichever is innermost as its
 * cost, too: the rules end spans and begin others. Only time on a CPU counts. On a loaded machine the rest is what others
 * took, not what rlprof did. */
#include "core.h"

static void
set_own(Thread *thread, bool own)
{
    Ledger *ledger = thread->ledger;
    lane_here(thread, false);
    int64_t now = clock_now(&ledger->clock);
    sharing_lock(ledger);
    now = not_before(ledger, now < thread->lane->mark ? thread->lane->mark : now);
    charge(thread, now, true);
    thread->own = own;
    thread->own_until = now;
    /* Who waits and who works is as before: what a division has left over is still to be divided. */
    int64_t share_rest = ledger->sharing->share_rest, idle_rest = ledger->idle_rest;
    restate(thread, now);
    ledger->sharing->share_rest = share_rest;
    ledger->idle_rest = idle_rest;
    sharing_unlock(ledger);
}

bool
own_begin(Thread *thread, const Node *only)
{
    if (thread == NULL || thread->own || !(thread->ledger->mode & MODE_ENABLED)) {
        return false;
    }
    set_own(thread, true);
    thread->own_only = only;
    return true;
}

void
own_end(Thread *thread, bool begun)
{
    if (!begun || !thread->own) {
        return;
    }
    if (thread->ledger != NULL && thread->ledger->mode & MODE_ENABLED) {
        set_own(thread, false);
    }
    thread->own = false;
}

static int64_t
between(const Thread *thread, int64_t from, int64_t to)
{
    from = from < thread->own_until ? thread->own_until : from; /* up to then it is booked */
    return to > from ? to - from : 0;
}

/* A call that a probe follows began, its span started and ended, and all is done now: what lay around the span is rlprof's.
 * In a loop of nothing else that is a tenth of a microsecond, but among real work a whole one, for nothing it needs is in
 * the caches. So it is timed, and what every span is taken to cost outside is left out. Not where the thread lost its core
 * in between: how much of that was rlprof's is not known. */
void
own_around(Ledger *ledger, int64_t began, int64_t start, int64_t end)
{
    Thread *thread = this_thread;
    if (thread == NULL || thread->ledger != ledger || thread->own || !(ledger->mode & MODE_ENABLED) ||
        thread->lane->mark != end || cpu_broken(&thread->cpu)) {
        return;
    }
    int64_t now = clock_now(&ledger->clock);
    int64_t around = between(thread, end, now);
    if (thread->cpu.synced_wall < began || thread->cpu.synced_wall > start) {
        around += between(thread, began, start);
    }
    if (around > ledger->span_cost) {
        Node *node = thread->lane->top->node;
        lane_stand(thread->lane, node);
        node->cost += around - ledger->span_cost;
    }
}

PyObject *
ledger_set_span_cost(Ledger *ledger, PyObject *cost)
{
    int64_t ns = PyLong_AsLongLong(cost);
    if (ns == -1 && PyErr_Occurred()) {
        return NULL;
    }
    ledger->span_cost = ns;
    Py_RETURN_NONE;
}

/* own_time(own): from here on the calling thread's time is rlprof's own, or is so no more. Returns what it was. */
PyObject *
ledger_own_time(Ledger *ledger, PyObject *own)
{
    Thread *thread = ledger->mode & MODE_ENABLED ? thread_known(ledger) : NULL;
    bool before = thread != NULL && thread->own;
    if (own == Py_True) {
        own_begin(thread, NULL);
    }
    else if (before) {
        own_end(thread, true);
    }
    return PyBool_FromLong(before);
}
