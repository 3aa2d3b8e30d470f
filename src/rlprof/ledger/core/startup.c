/* Start-up: what a program does before its training. A span that is open until the driver's thread has something better
 * to show.
 *
 * It gives way by itself, so that no span of the training lies inside it. The hot path does not ask: the first span
 * inside start-up is at a place of the call tree that is not there yet, and making it is slow already. But a first span
 * need not be the training: making a buffer resets it. So when the training does begin, what was unattributed until then
 * is start-up, too. */
#include "core.h"

bool
startup_gives_way(const Ledger *ledger, const Node *parent)
{
    return ledger->startup != NULL && parent->lane->on_driver;
}

/* Enters the span for which there was no place because start-up was open. */
bool
startup_enter(Span *span)
{
    Ledger *ledger = span->ledger;
    Span *startup = ledger->startup;
    ledger->startup = NULL;
    if (span->flags & SPAN_WAIT) {
        /* Waiting is no training: importing a library may start a thread and wait for it. */
        bool entered = span_enter(span);
        ledger->startup = startup;
        return entered;
    }
    ledger->startup_rest = startup;
    span_exit(startup);
    return span_enter(span);
}

/* Books the driver's unattributed time, of no iteration yet, as a call of start-up. */
static void
claim_unattributed(Ledger *ledger, Span *startup)
{
    Node *root = ledger->driver->base->stack[0].node;
    Node *node = node_of(ledger, root, startup->operation);
    settle(ledger, clock_now(&ledger->clock));
    int64_t time = root->self - root->marked.self;
    if (node == NULL || time <= 0) {
        return;
    }
#define MOVE(field, kept)                  \
    node->field += root->field - (kept);   \
    root->field = (kept)
    MOVE(self, root->marked.self);
    MOVE(shift, root->marked.shift);
    MOVE(waited, root->marked.waited);
    MOVE(off_cpu, root->marked.off_cpu);
    MOVE(cost, 0);
#undef MOVE
    node->calls++;
    node->busy += time;
    node->min = time < node->min ? time : node->min;
    node->max = time > node->max ? time : node->max;
    histogram_add(&node->durations, time);
}

void
startup_end(Ledger *ledger)
{
    Span *startup = ledger->startup, *rest = ledger->startup_rest;
    ledger->startup = ledger->startup_rest = NULL;
    if (startup != NULL) {
        span_exit(startup);
    }
    else if (rest != NULL && (ledger->mode & MODE_ENABLED)) {
        claim_unattributed(ledger, rest);
    }
}

PyObject *
ledger_begin_startup(Ledger *ledger, PyObject *span)
{
    if (!Py_IS_TYPE(span, Span_Type) || ((Span *)span)->ledger != ledger) {
        PyErr_SetString(PyExc_TypeError, "begin_startup() takes a span of this ledger");
        return NULL;
    }
    Thread *thread = ledger->mode & MODE_ENABLED ? thread_here(ledger) : NULL;
    if (thread != NULL && thread == ledger->driver && ledger->startup == NULL && span_enter((Span *)span)) {
        ledger->startup = (Span *)span; /* the ledger holds all of its spans */
    }
    Py_RETURN_NONE;
}

PyObject *
ledger_end_startup(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    startup_end(ledger);
    Py_RETURN_NONE;
}
