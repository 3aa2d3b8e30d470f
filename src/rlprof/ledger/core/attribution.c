/* Which account gets each instant of the driver: the three rules of the ledger, at O(1) per span.
 *
 * A lane books its time to its innermost node as `self`. On the driver's thread that is the ledger time too, but for
 * `shift`: minus what was given away, plus what was received. On other threads the ledger time is `shift` only.
 *
 * While the driver waits, its time is given to the lanes that work, in equal parts. That needs no list of them: the
 * share clock runs at 1/workers, and a worker's span receives the difference of two readings. The driver's span gives
 * exactly what the clock handed out (parts x workers), so the sum stays the wall time to the nanosecond; what a
 * division leaves over waits in `share_rest` for the next one.
 *
 * The time of a task with no open span goes to the span that its thread has open.
 *
 * An event loop that runs no callback waits as well, if a task is suspended inside a span. If no lane works, that time
 * goes to the suspended spans, by a second such clock. */
#include "core.h"

static bool
entry_waits(const Entry *entry)
{
    return entry->span != NULL && (entry->span->flags & SPAN_WAIT);
}

static bool
lane_works(const Lane *lane)
{
    return lane->top > lane->stack && !entry_waits(lane->top);
}

static bool
loop_idles(const Ledger *ledger)
{
    return ledger->driver->between_steps && ledger->suspended > 0;
}

static bool
driver_waits(const Ledger *ledger)
{
    const Lane *lane = ledger->driver->lane;
    return loop_idles(ledger) || entry_waits(lane->top) ||
           (ledger->supervises && lane->kind == LANE_THREAD && lane->top == lane->stack);
}

int64_t
node_ledger(const Node *node)
{
    return (node->lane->on_driver ? node->self : 0) + node->shift;
}

int64_t
node_marked_ledger(const Node *node)
{
    return (node->lane->on_driver ? node->marked.self : 0) + node->marked.shift;
}

/* Work while the driver was busy with something else. */
int64_t
node_overlapped(const Node *node)
{
    if (node->operation == NULL) {
        return 0;
    }
    if (node->lane->on_driver) {
        return node->overlap;
    }
    /* Never negative, although clocks of processes differ by some nanoseconds. */
    return larger(0, node->self - node->waited - node->covered);
}

/* Hands dt out on `clock` in `parts` equal parts; returns how much of it was handed out. */
static int64_t
hand_out(int64_t dt, int parts, int64_t *clock, int64_t *rest)
{
    int64_t pool = dt + *rest;
    int64_t part = pool / parts;
    *clock += part;
    *rest = pool - part * parts;
    return part * parts;
}

/* Brings the clocks to now. Must come before any change of which threads work or wait. */
void
attribution_advance(Ledger *ledger, int64_t now)
{
    Sharing *sharing = ledger->sharing;
    int64_t dt = now - sharing->waiting_mark;
    if (!sharing->waiting || dt <= 0) {
        return;
    }
    sharing->waiting_mark = now;
    sharing->wait_clock += dt;
    if (sharing->workers > 0) {
        sharing->given += hand_out(dt, sharing->workers, &sharing->share_clock, &sharing->share_rest);
    }
    else if (loop_idles(ledger)) {
        Node *giver = ledger->driver->lane->top->node;
        lane_stand(ledger->driver->lane, giver);
        giver->shift -= hand_out(dt, ledger->suspended, &ledger->idle_clock, &ledger->idle_rest);
    }
}

/* Before anything is booked: another process may have noted that the training began. */
static inline void
look_for_beginning(Ledger *ledger)
{
    const Page *page = ledger->member.page;
    if (UNLIKELY(page != NULL && page->beginning.count != ledger->begun)) {
        startup_look(ledger);
    }
}

/* Books the running lane's time up to now. */
void
charge(Thread *thread, int64_t now, bool own)
{
    Ledger *ledger = thread->ledger;
    Lane *lane = thread->lane;
    pulse_check(ledger, lane->mark, now); /* whoever holds the lock has checked before: see pulse_look */
    sharing_lock(ledger);
    look_for_beginning(ledger);
    Node *node = lane->top->node;
    lane_stand(lane, node);
    attribution_advance(ledger, now);
    Sharing *sharing = ledger->sharing;
    int64_t elapsed = now - lane->mark;
    node->self += elapsed;
    lane->mark = now;
    if (entry_waits(lane->top)) {
        node->waited += elapsed;
    }
    if (lane->kind == LANE_TASK && lane->top == lane->stack && lane->on_driver) {
        Node *behalf = thread->base->top->node;
        lane_stand(thread->base, behalf);
        node->shift -= elapsed;
        behalf->shift += elapsed;
    }
    int64_t off_cpu = 0;
    if (!own || cpu_broken(&thread->cpu)) {
        off_cpu = cpu_collect(&thread->cpu, &ledger->clock, now, own);
        node->off_cpu += off_cpu;
    }
    if (thread->own && elapsed > off_cpu && (thread->own_only == NULL || thread->own_only == node)) {
        node->cost += off_cpu > 0 ? elapsed - off_cpu : elapsed;
    }
    if (thread->working) {
        int64_t received = sharing->share_clock - thread->share_mark;
        node->shift += received;
        node->covered += sharing->wait_clock - thread->cover_mark;
        if (ledger->elsewhere) {
            ledger->driver->base->stack->node->shift -= received; /* the placeholder gave it, so that the sum stays */
        }
    }
    thread->share_mark = sharing->share_clock;
    thread->cover_mark = sharing->wait_clock;
    if (thread == ledger->driver && !ledger->elsewhere) {
        node->shift -= sharing->given - ledger->given_mark;
        ledger->given_mark = sharing->given;
    }
    sharing_unlock(ledger);
}

static void
add_workers(Ledger *ledger, int change)
{
    ledger->sharing->workers += change;
    if (ledger->member.page != NULL) {
        ledger->member.slot->workers += change;
    }
}

/* While recording is off, other processes see no thread of this one work or wait. */
static bool
takes_part(const Ledger *ledger)
{
    return ledger->member.page == NULL || (ledger->mode & MODE_ENABLED);
}

/* After a change of the running lane or its innermost span: decides which threads work and wait from now on. Call
 * `charge` first. */
void
restate(Thread *thread, int64_t now)
{
    Ledger *ledger = thread->ledger;
    bool careful = thread->lane->waits > 0 || thread->lane->kind == LANE_TASK || thread->own;
    sharing_lock(ledger);
    if (thread != ledger->driver) {
        bool working = lane_works(thread->lane) && takes_part(ledger);
        add_workers(ledger, (int)working - (int)thread->working);
        thread->working = working;
    }
    else if (!ledger->elsewhere) {
        Sharing *sharing = ledger->sharing;
        sharing->waiting_mark = not_before(ledger, now);
        sharing->waiting = driver_waits(ledger) && takes_part(ledger);
        sharing->share_rest = ledger->idle_rest = 0; /* the remainder stays with the span that waited */
        careful = careful || sharing->waiting || thread->between_steps || ledger->supervises;
    }
    sharing_unlock(ledger);
    thread->flags = (careful ? THREAD_CAREFUL : 0) | (thread == ledger->driver ? 0 : THREAD_WORKER);
}

/* Books the time of a lane that another one has displaced from its thread. */
static void
charge_displaced(Ledger *ledger, Lane *lane, int64_t now)
{
    Node *node = lane->top->node;
    lane_stand(lane, node);
    int64_t gap = now - lane->mark;
    lane->mark = now;
    node->self += gap;
    node->off_cpu += gap;
    if (lane->kind == LANE_TASK) {
        node->waited += gap;
    }
    if (lane->on_driver) {
        node->shift -= gap;
    }
    if (lane->suspended) {
        node->shift += ledger->idle_clock - lane->idle_mark;
        lane->idle_mark = ledger->idle_clock;
    }
}

static void
suspend(Ledger *ledger, Lane *lane, bool suspended)
{
    ledger->suspended += (int)suspended - (int)lane->suspended;
    lane->suspended = suspended;
    lane->idle_mark = ledger->idle_clock;
}

void
switch_lane(Thread *thread, Lane *lane, int64_t now)
{
    Ledger *ledger = thread->ledger;
    Lane *previous = thread->lane;
    pulse_check(ledger, previous->mark, now);
    sharing_lock(ledger);
    now = not_before(ledger, now);
    charge(thread, now, true);
    if (lane != previous) {
        charge_displaced(ledger, lane, now);
        bool counts = previous->on_driver && previous->kind == LANE_TASK && previous->top > previous->stack;
        suspend(ledger, previous, counts);
        suspend(ledger, lane, false);
        thread_set_lane(thread, lane);
    }
    restate(thread, now);
    sharing_unlock(ledger);
}

/* Books the time of all lanes up to now, open spans included. */
int64_t
settle(Ledger *ledger, int64_t now)
{
    if (ledger->pulse != NULL && (ledger->mode & MODE_ENABLED)) {
        pulse_look(ledger, now); /* before the lock is taken, because this may sleep */
    }
    sharing_lock(ledger);
    look_for_beginning(ledger);
    now = not_before(ledger, now);
    attribution_advance(ledger, now);
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        charge(thread, now, thread == this_thread);
    }
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        if (lane->host != NULL && lane->host->lane != lane && !lane->shared) {
            charge_displaced(ledger, lane, now);
        }
    }
    sharing_unlock(ledger);
    return now;
}

/* After a pause of the recording, which belongs to no lane and to no open span. */
void
attribution_resume(Ledger *ledger, int64_t gap)
{
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        if (lane->host == NULL) {
            continue;
        }
        lane->mark += gap;
        for (Entry *entry = lane->stack; entry <= lane->top; entry++) {
            entry->start += gap;
        }
    }
    if (ledger->member.page == NULL) {
        ledger->sharing->waiting_mark += gap;
    }
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        if (thread->tstate != NULL) {
            cpu_collect(&thread->cpu, &ledger->clock, ledger->stopped + gap, thread == this_thread);
        }
    }
}

/* Figures up to now stay as they are. Later ones follow the other formula. */
static void
set_on_driver(Ledger *ledger, Lane *lane, bool on_driver)
{
    if (lane->on_driver == on_driver) {
        return;
    }
    for (uint32_t i = 0; i < ledger->nodes_used && !lane->guest; i++) {
        Node *node = ledger->nodes[i];
        if (node->lane != lane) {
            continue;
        }
        node->overlap = node_overlapped(node);
        node->covered = node->self - node->waited - node->overlap;
        node->shift += on_driver ? -node->self : node->self;
        node->marked.shift += on_driver ? -node->marked.self : node->marked.self;
    }
    lane->left = lane->mark; /* no later split may move time that the other formula has booked */
    lane->stood.node = NULL; /* what it remembers was booked by the other formula, perhaps at this very instant */
    lane_move(ledger, lane, on_driver);
}

void
attribution_set_driver(Ledger *ledger, Thread *driver, int64_t now)
{
    Thread *previous = ledger->driver;
    if (driver == previous) {
        return;
    }
    sharing_lock(ledger);
    if (ledger->mode & MODE_ENABLED) {
        now = settle(ledger, now);
    }
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        set_on_driver(ledger, lane, lane->host == driver);
        bool displaced = lane->host == driver && lane != driver->lane;
        suspend(ledger, lane, displaced && lane->kind == LANE_TASK && lane->top > lane->stack);
    }
    add_workers(ledger, -(int)driver->working);
    driver->working = false;
    ledger->driver = driver;
    restate(driver, now);
    restate(previous, now);
    sharing_unlock(ledger);
}
