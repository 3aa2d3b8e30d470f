/* Start-up: what a program does before its training. A span that is open until the driver's thread has something better
 * to show.
 *
 * It gives way by itself, so that no span of the training lies inside it. The hot path does not ask: the first span
 * inside start-up is at a place of the call tree that is not there yet, and making it is slow already. But a first span
 * need not be the training: making a buffer resets it. So when the training does begin, all time until then is
 * start-up's, whoever had it: the accounts that follow are the training's alone. What those spans and lanes measured
 * (calls, durations, self time) stays theirs.
 *
 * The training may begin in a worker's process, while the driver only looks after it. Then the worker notes on the page
 * when that was, and how the clocks stood; every process moves its own accounts when it next looks at the page. */
#include "core.h"

bool
startup_gives_way(const Ledger *ledger, const Node *parent)
{
    return ledger->startup != NULL && parent->lane->on_driver;
}

static int64_t
unclaimed(const Node *node)
{
    return node_ledger(node) - (node->lane->on_driver ? node->marked.self : 0) - node->marked.shift;
}

/* What was booked before is start-up's: no later split may move it. */
static void
forget_last_ends(Ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        ledger->lanes[i]->left = ledger->lanes[i]->mark;
    }
}

/* Books all time up to `until` to start-up, whichever account has it. Time of a written iteration stays. */
static void
claim_accounts(Ledger *ledger, Node *startup, int64_t until)
{
    int64_t lacking = ledger->wall + until - ledger->started, moved = 0;
    for (uint32_t i = 0; i < ledger->nodes_used; i++) {
        Node *node = ledger->nodes[i];
        bool stopped = ledger->suspension != NULL && node->operation == ledger->suspension->operation;
        int64_t claimed = node == startup || stopped ? 0 : unclaimed(node);
        lacking -= node_ledger(node);
        node->shift -= claimed;
        moved += claimed;
    }
    startup->shift += moved;
    if (ledger->member.page != NULL && ledger->iterations.count == 0) {
        startup->shift += lacking; /* other processes have that */
    }
}

/* What had no span on the driver is a call of start-up. */
static void
claim_unattributed(Ledger *ledger, Node *node)
{
    Node *root = ledger->driver->base->stack[0].node;
    int64_t time = root->self - root->marked.self;
    if (time <= 0) {
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

/* Ends the span, if it is open, and claims what was booked. The driver's time is booked up to `until`. */
static void
close_startup(Ledger *ledger, Span *startup, bool open, int64_t until)
{
    Thread *driver = ledger->driver;
    Node *node = node_of(ledger, driver->base->stack[0].node, startup->operation);
    if (node == NULL) {
        return;
    }
    if (ledger->member.page != NULL) {
        ledger->member.page->beginning.open = 0;
    }
    if (open) {
        lane_end_below(driver->base, startup, until);
    }
    else {
        claim_unattributed(ledger, node);
    }
    claim_accounts(ledger, node, until);
    forget_last_ends(ledger);
    restate(driver, until);
}

/* For the other processes: what the clock has shared out until now is start-up's. */
static void
note_beginning(Ledger *ledger, int64_t now)
{
    Page *page = ledger->member.page;
    if (page != NULL) {
        page->beginning.then = page->sharing;
        page->beginning.then.waiting_mark = now;
        page->beginning.count++;
    }
}

static void
begin_here(Ledger *ledger, Span *startup, bool open, int64_t now)
{
    ledger->supervises = false;
    close_startup(ledger, startup, open, now);
    note_beginning(ledger, now);
    ledger->begun = ledger->member.page ? ledger->member.page->beginning.count : 0;
}

static void
tell_end(Ledger *ledger, const Span *startup)
{
    if (startup != NULL && ledger->mode & MODE_WATCHED) {
        watch_tell(ledger, startup, false);
    }
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
    sharing_lock(ledger);
    ledger->startup = startup;
    int64_t now = settle(ledger, clock_now(&ledger->clock));
    if (ledger->startup != NULL) { /* else a worker has begun meanwhile */
        ledger->startup = NULL;
        ledger->startup_rest = startup;
        begin_here(ledger, startup, true, now);
    }
    sharing_unlock(ledger);
    tell_end(ledger, startup);
    return span_enter(span);
}

static void
end_startup(Ledger *ledger, bool learns)
{
    if (ledger->startup == NULL && ledger->startup_rest == NULL) {
        return;
    }
    sharing_lock(ledger);
    bool enabled = ledger->mode & MODE_ENABLED;
    int64_t now = enabled ? settle(ledger, clock_now(&ledger->clock)) : 0;
    Span *startup = ledger->startup, *rest = ledger->startup_rest;
    Page *page = ledger->member.page;
    ledger->startup = ledger->startup_rest = NULL;
    /* Where workers learn, what the driver does later, as an evaluation, is not the beginning; nor is what it learns
     * where they have stepped: it learns from that. */
    int32_t workers = page != NULL ? page->beginning.state : NOT_STARTING;
    if (enabled && workers != WORKERS_LEARN && !(learns && workers == WORKERS_STEP)) {
        begin_here(ledger, startup != NULL ? startup : rest, startup != NULL, now);
    }
    if (page != NULL) {
        page->beginning.state = NOT_STARTING;
    }
    sharing_unlock(ledger);
    if (enabled) {
        tell_end(ledger, startup);
    }
    else if (startup != NULL) {
        span_exit(startup);
    }
}

void
startup_end(Ledger *ledger)
{
    end_startup(ledger, false);
}

void
training_begins(Ledger *ledger, bool learns)
{
    ledger->learned = ledger->learned || learns;
    if (!ledger->elsewhere) {
        end_startup(ledger, learns);
        return;
    }
    int32_t told = learns ? WORKERS_LEARN : WORKERS_STEP;
    Page *page = ledger->member.page;
    if (page == NULL || !(ledger->mode & MODE_ENABLED) || page->beginning.state == NOT_STARTING ||
        page->beginning.state >= told) {
        return;
    }
    sharing_lock(ledger);
    page = ledger->member.page;
    if (page != NULL && page->beginning.state == STARTING) {
        int64_t now = not_before(ledger, clock_now(&ledger->clock));
        attribution_advance(ledger, now);
        note_beginning(ledger, now);
        if (page->beginning.open && !page->sharing.waiting) { /* from now on it waits for this process */
            page->sharing.waiting_mark = now;
            __atomic_store_n(&page->sharing.waiting, 1, __ATOMIC_RELAXED);
        }
    }
    if (page != NULL && page->beginning.state != NOT_STARTING) {
        page->beginning.state = told;
    }
    sharing_unlock(ledger);
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
        if (ledger->member.page != NULL) {
            ledger->member.page->beginning.state = STARTING;
            ledger->member.page->beginning.open = 1;
        }
    }
    Py_RETURN_NONE;
}

PyObject *
ledger_end_startup(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    startup_end(ledger);
    Py_RETURN_NONE;
}

/* In the driver's process: books its time up to when a worker began. What it has booked after that is start-up's, too. */
static void
begin_elsewhere(Ledger *ledger)
{
    bool open = ledger->startup != NULL;
    Span *startup = open ? ledger->startup : ledger->startup_rest;
    const Sharing *then = &ledger->member.page->beginning.then;
    if (startup == NULL || !(ledger->mode & MODE_ENABLED)) {
        return;
    }
    Lane *lane = ledger->driver->lane;
    Entry *innermost = lane->top;
    if (then->waiting_mark > lane->mark) {
        int64_t elapsed = then->waiting_mark - lane->mark;
        innermost->node->self += elapsed;
        innermost->node->waited += innermost->span != NULL && innermost->span->flags & SPAN_WAIT ? elapsed : 0;
        lane->mark = then->waiting_mark;
    }
    if (then->given > ledger->given_mark) {
        innermost->node->shift -= then->given - ledger->given_mark;
        ledger->given_mark = then->given;
    }
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        if (thread->share_mark < then->share_clock) {
            thread->share_mark = then->share_clock;
        }
    }
    ledger->startup = NULL;
    ledger->startup_rest = startup;
    ledger->supervises = true;
    close_startup(ledger, startup, open, lane->mark);
}

/* In a worker's process: what it received was of start-up, and is claimed there. */
static void
give_up_received(Ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->nodes_used; i++) {
        ledger->nodes[i]->shift = ledger->nodes[i]->marked.shift = 0;
    }
    forget_last_ends(ledger);
    const Sharing *then = &ledger->member.page->beginning.then;
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        if (thread->share_mark < then->share_clock) {
            thread->share_mark = then->share_clock;
        }
    }
}

void
startup_look(Ledger *ledger)
{
    ledger->begun = ledger->member.page->beginning.count;
    if (ledger->elsewhere) {
        give_up_received(ledger);
    }
    else {
        begin_elsewhere(ledger);
    }
}
