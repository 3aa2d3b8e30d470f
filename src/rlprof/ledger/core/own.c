/* Work of rlprof on a training's thread that takes longer than a span: rules in Python, readings of memory and
 * devices, snapshots. It is timed, while the cost of a span is calibrated.
 *
 * Meanwhile all spans of that thread take the slow path, and `charge` also books the innermost node's time as its
 * cost. Only CPU time counts: on a loaded machine other programs take the rest. */
#include "core.h"

static void
set_own(Thread *thread, bool own)
{
    Ledger *ledger = thread->ledger;
    lane_here(thread, false);
    int64_t now = clock_now(&ledger->clock);
    pulse_check(ledger, thread->lane->mark, now);
    sharing_lock(ledger);
    now = not_before(ledger, larger(now, thread->lane->mark));
    charge(thread, now, true);
    thread->own = own;
    thread->own_until = now;
    /* The same threads wait and work as before, so the remainder of the last division is still to be divided. */
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
    return larger(to - larger(from, thread->own_until), 0); /* own work up to own_until is booked */
}

/* A call that a probe follows has ended: it `began`, and its span had `start` and `end`. The time around the span is
 * rlprof's. It is a tenth of a microsecond in an empty loop, but a whole one among real work, because the caches are
 * cold. So it is timed here, without the part that is calibrated for every span. If the thread lost its core in
 * between, the part that is rlprof's is unknown and nothing is booked. */
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

/* own_time(own): the calling thread now begins or ends rlprof's own work. Returns the state before. */
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
