/* Start-up: what a program does before its training. It is a span that is open until the driver's first other span.
 *
 * Start-up then ends by itself, so that no span of the training lies inside it. The hot path needs no test for that:
 * the first span inside start-up needs a new node, and making a node is slow anyway. But the first span need not
 * belong to the training, as when a buffer is reset while it is made. So when the training begins, start-up gets all
 * time until then, from every account. Calls, durations and self times stay with their spans and lanes.
 *
 * The training may begin in a worker's process, while the driver only supervises. The worker then notes the time and
 * the state of the clocks on the page. Every process corrects its own accounts when it next looks at the page. */
#include "core.h"

bool
startup_gives_way(const Ledger *ledger, const Node *parent)
{
    return ledger->startup != NULL && parent->lane->on_driver;
}

/* No later split may move time from before: it belongs to start-up. */
static void
forget_last_ends(Ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        ledger->lanes[i]->left = ledger->lanes[i]->mark;
        ledger->lanes[i]->stood.node = NULL;
    }
}

/* No thread receives a share of the waiting before the training began. */
static void
forget_shares(Ledger *ledger)
{
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        thread->share_mark = larger(thread->share_mark, ledger->member.page->beginning.then.share_clock);
    }
}

/* Books all time up to `until` to start-up, from every account. Time in a written iteration stays. */
static void
claim_accounts(Ledger *ledger, Node *startup, int64_t until)
{
    int64_t lacking = ledger->wall + until - ledger->started, moved = 0;
    for (uint32_t i = 0; i < ledger->nodes_used; i++) {
        Node *node = ledger->nodes[i];
        bool stopped = ledger->suspension != NULL && node->operation == ledger->suspension->operation;
        int64_t claimed = node == startup || stopped ? 0 : node_ledger(node) - node_marked_ledger(node);
        lacking -= node_ledger(node);
        node->shift -= claimed;
        moved += claimed;
    }
    startup->shift += moved;
    if (ledger->iterations.count == 0) {
        stacks_move(ledger, NULL, startup, INT64_MIN);
    }
    if (ledger->member.page != NULL && ledger->iterations.count == 0) {
        startup->shift += lacking; /* other processes have it */
    }
}

/* Makes a call of start-up of the driver's time without a span. */
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
    node_count_call(node, time);
}

/* Ends the span, if it is open, and moves all booked time to it. The driver's time must be booked up to `until`. */
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
    collections_begin(ledger);
    forget_last_ends(ledger);
    restate(driver, until);
}

/* For the other processes: the time that the clock has shared out until now belongs to start-up. */
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
report_end(Ledger *ledger, const Span *startup)
{
    if (startup != NULL && ledger->mode & MODE_WATCHED) {
        watch_report(ledger, startup, false);
    }
}

/* Enters the first span inside start-up, which ends start-up unless the span waits. */
bool
startup_enter(Span *span)
{
    Ledger *ledger = span->ledger;
    Span *startup = ledger->startup;
    ledger->startup = NULL;
    if (span->flags & SPAN_WAIT) {
        /* Waiting does not begin the training: importing a library may start a thread and wait for it. */
        bool entered = span_enter(span);
        ledger->startup = startup;
        return entered;
    }
    sharing_lock(ledger);
    ledger->startup = startup;
    int64_t now = settle(ledger, clock_now(&ledger->clock));
    if (ledger->startup != NULL) { /* else a worker has begun to train meanwhile */
        ledger->startup = NULL;
        ledger->startup_rest = startup;
        begin_here(ledger, startup, true, now);
    }
    sharing_unlock(ledger);
    report_end(ledger, startup);
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
    /* If workers learn, the training has begun, and the driver may only evaluate. If they have stepped and the driver
     * learns, it learns from their steps, so the training has begun, too. */
    int32_t workers = page != NULL ? page->beginning.state : NOT_STARTING;
    if (enabled && workers != WORKERS_LEARN && !(learns && workers == WORKERS_STEP)) {
        begin_here(ledger, startup != NULL ? startup : rest, startup != NULL, now);
    }
    if (page != NULL) {
        page->beginning.state = NOT_STARTING;
    }
    sharing_unlock(ledger);
    if (enabled) {
        report_end(ledger, startup);
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
    int32_t state = learns ? WORKERS_LEARN : WORKERS_STEP;
    Page *page = ledger->member.page;
    if (page == NULL || !(ledger->mode & MODE_ENABLED) || page->beginning.state == NOT_STARTING ||
        page->beginning.state >= state) {
        return;
    }
    sharing_lock(ledger);
    page = ledger->member.page;
    if (page != NULL && page->beginning.state == STARTING) {
        int64_t now = not_before(ledger, clock_now(&ledger->clock));
        attribution_advance(ledger, now);
        note_beginning(ledger, now);
        if (page->beginning.open && !page->sharing.waiting) { /* the driver waits for this process from now on */
            page->sharing.waiting_mark = now;
            __atomic_store_n(&page->sharing.waiting, 1, __ATOMIC_RELAXED);
        }
    }
    if (page != NULL && page->beginning.state != NOT_STARTING) {
        page->beginning.state = state;
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

/* In the driver's process: a worker has begun to train. Books the driver's time up to then. Time that was booked later
 * belongs to start-up, too. */
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
    forget_shares(ledger);
    ledger->startup = NULL;
    ledger->startup_rest = startup;
    ledger->supervises = true;
    close_startup(ledger, startup, open, lane->mark);
}

/* In a worker's process: the time it received belongs to start-up, where the driver's process books it. */
static void
give_up_received(Ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->nodes_used; i++) {
        ledger->nodes[i]->shift = ledger->nodes[i]->marked.shift = 0;
    }
    stacks_move(ledger, NULL, NULL, INT64_MIN);
    forget_last_ends(ledger);
    forget_shares(ledger);
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
