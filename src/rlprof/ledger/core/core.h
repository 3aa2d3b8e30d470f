/* What the files of the core offer one another, and the short functions that are inlined everywhere. data.h has the
 * data. */
#ifndef RLPROF_CORE_H
#define RLPROF_CORE_H

#include "data.h"

extern THREAD_LOCAL Thread *this_thread;

static inline int64_t
smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t
larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A call has ended. The time is booked already. */
static inline void
node_count_call(Node *node, int64_t duration)
{
    node->calls++;
    node->busy += duration;
    if (duration < node->min) {
        node->min = duration;
    }
    if (duration > node->max) {
        node->max = duration;
    }
    histogram_add(&node->durations, duration);
}

/* tree.c */
Operation *operation_get(Ledger *, PyObject *name, PyObject *category); /* NULL: an exception is set */
__attribute__((noinline)) Node *node_child(Ledger *, Node *parent, Operation *); /* NULL: no memory */
Node *node_new(Ledger *, Node *parent, Operation *, Lane *);
void tree_reset(Ledger *);
void tree_free(Ledger *);

static inline Node *
node_of(Ledger *ledger, Node *parent, Operation *operation)
{
    return LIKELY(operation->cached_parent == parent) ? operation->cached_child
                                                      : node_child(ledger, parent, operation);
}

/* lane.c */
Lane *lane_take(Thread *host, LaneKind, PyObject *name, PyObject *group, int64_t now); /* NULL: no memory */
void lane_retake(Lane *, Thread *host, int64_t now); /* one that has ended, and is no guest */
void lane_end(Ledger *, Lane *);
void lane_release(Ledger *, Lane *);
void lane_move(Ledger *, Lane *, bool on_driver); /* to the pool of the driver's lanes, or of the others */
bool lane_grow(Lane *);
void lanes_free(Ledger *);
uint32_t open_spans(const Ledger *);

/* thread.c */
int ledger_follow_other(Ledger *); /* the driver is in another process; -1: no memory */
void ledger_follow_own(Ledger *, Thread *driver, int64_t now); /* it is in this one again */
SLOW_PATH Thread *thread_get(Ledger *); /* the calling thread's; NULL: no memory, already warned */
SLOW_PATH Thread *thread_known(Ledger *); /* the same, NULL if it has recorded nothing yet */
Thread *thread_new(Ledger *, unsigned long ident, PyObject *name, PyObject *group);
void threads_after_fork(Ledger *);
void threads_free(Ledger *);

/* task.c */
SLOW_PATH Lane *lane_follow(Thread *, bool entering); /* the lane to run on after a context switch */
Lane *lane_step(Ledger *, PyObject *handle);
void lane_step_end(Ledger *, Lane *previous);

/* steps.c */
int steps_setup(PyObject *module);
PyObject *ledger_follow(Ledger *, PyObject *run);

/* Stands still while recording is off. */
static inline int64_t
ledger_time(const Ledger *ledger)
{
    return ledger->mode & MODE_ENABLED ? clock_now(&ledger->clock) : ledger->stopped;
}

static inline Thread *
thread_here(Ledger *ledger)
{
    Thread *thread = this_thread;
    return LIKELY(thread != NULL && thread->ledger == ledger) ? thread : thread_get(ledger);
}

static inline Lane *
lane_here(Thread *thread, bool entering)
{
    return LIKELY(thread->tstate->context_ver == thread->context_ver) ? thread->lane
                                                                      : lane_follow(thread, entering);
}

/* ticker.c reads these two fields meanwhile. On all common processors such a store is a plain one. */
static inline void
lane_set_top(Lane *lane, Entry *top)
{
    __atomic_store_n(&lane->top, top, __ATOMIC_RELAXED);
}

static inline void
thread_set_lane(Thread *thread, Lane *lane)
{
    __atomic_store_n(&thread->lane, lane, __ATOMIC_RELEASE);
}

/* sharing.c */
void sharing_enter(Ledger *);
void sharing_after_fork(Ledger *);
void sharing_begin_anew(Ledger *);
PyObject *ledger_share(Ledger *, PyObject *args);
PyObject *ledger_leave(Ledger *, PyObject *);
PyObject *ledger_members(Ledger *, PyObject *);
PyObject *ledger_ended(Ledger *, PyObject *);
PyObject *ledger_dismiss(Ledger *, PyObject *pid);

/* requests.c */
void wake_listeners(Page *);
PyObject *ledger_request(Ledger *, PyObject *seconds);
PyObject *ledger_listen(Ledger *, PyObject *seconds);
PyObject *ledger_answer(Ledger *, PyObject *);

/* Around changes that other processes must not see half done. No Python code may run inside. */
static inline void
sharing_lock(Ledger *ledger)
{
    if (UNLIKELY(ledger->member.page != NULL)) {
        sharing_enter(ledger);
    }
}

static inline void
sharing_unlock(Ledger *ledger)
{
    if (UNLIKELY(ledger->member.page != NULL)) {
        page_unlock(&ledger->member);
    }
}

/* Another process may have advanced the clocks before this one got the lock. */
static inline int64_t
not_before(const Ledger *ledger, int64_t now)
{
    const Sharing *sharing = ledger->sharing;
    return sharing->waiting && now < sharing->waiting_mark ? sharing->waiting_mark : now;
}

/* Keeps the figures that the innermost node had when the lane's last span ended. ledger_split needs them, to move
 * what was booked after that. Call it before any of them changes. The hot path changes none of them. */
static inline void
lane_stand(Lane *lane, const Node *node)
{
    if (lane->stood.node != node || lane->stood.left != lane->left) {
        lane->stood.node = node;
        lane->stood.left = lane->left;
        lane->stood.shift = node->shift;
        lane->stood.covered = node->covered;
        lane->stood.waited = node->waited;
        lane->stood.off_cpu = node->off_cpu;
        lane->stood.cost = node->cost;
    }
}

/* attribution.c */
void attribution_advance(Ledger *, int64_t now);
void charge(Thread *, int64_t now, bool own);
void restate(Thread *, int64_t now);
void switch_lane(Thread *, Lane *, int64_t now);
int64_t settle(Ledger *, int64_t now); /* returns the time it booked up to, which other processes may have advanced */
void attribution_resume(Ledger *, int64_t gap);
void attribution_set_driver(Ledger *, Thread *, int64_t now);
int64_t node_ledger(const Node *);
int64_t node_marked_ledger(const Node *); /* at the last iteration mark */
int64_t node_overlapped(const Node *);

/* own.c: around rlprof's own work on a thread. They run no Python code and cannot fail. */
bool own_begin(Thread *, const Node *only); /* false: already begun, or not recorded */
void own_end(Thread *, bool begun);
void own_around(Ledger *, int64_t began, int64_t start, int64_t end);
PyObject *ledger_own_time(Ledger *, PyObject *own);

/* pulse.c */
PyObject *ledger_pulse(Ledger *, PyObject *span);
PyObject *ledger_stopped(Ledger *, PyObject *args);
void pulse_end(Ledger *);
SLOW_PATH void pulse_look(Ledger *, int64_t now);

/* stacks.c, stack_log.c */
PyObject *ledger_stacks(Ledger *, PyObject *args);
PyObject *ledger_stack_tick(Ledger *, PyObject *);
PyObject *ledger_drain_stacks(Ledger *, PyObject *);
/* Samples of one node since a time belong to another; from NULL: of all nodes; to NULL: to none. */
void stacks_move(Ledger *, const Node *from, const Node *to, int64_t since);
void stacks_forget(Ledger *, const Thread *);
void stacks_reset(Ledger *);
void stacks_after_fork(Ledger *);
void stacks_free(Stacks *);

/* Before a time is booked that is long enough to contain a stop. */
#define LONG_ENOUGH INT64_C(300000000)
static inline void
pulse_check(Ledger *ledger, int64_t since, int64_t now)
{
    if (UNLIKELY(now - since > LONG_ENOUGH) && ledger->pulse != NULL) {
        pulse_look(ledger, now);
    }
}

/* span.c */
void lane_unwind(Lane *, int64_t now); /* ends the spans that are open on it */
void lane_end_below(Lane *, const Span *, int64_t now); /* ends a span; the spans inside it move up one level */
Entry lane_remove(Ledger *, Lane *, Entry *, int64_t now);
bool span_enter(Span *); /* false: not recorded, so do not leave it */
void span_exit(Span *);
PyObject *ledger_split(Ledger *, PyObject *args);  /* split.c */
PyObject *ledger_rename(Ledger *, PyObject *args); /* rename.c */
PyObject *span_call(PyObject *, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *span_exit_method(PyObject *, PyObject *const *args, Py_ssize_t count);

/* startup.c */
bool startup_gives_way(const Ledger *, const Node *parent); /* to a first span inside `parent` */
SLOW_PATH bool startup_enter(Span *);
void startup_end(Ledger *); /* the training begins */
void training_begins(Ledger *, bool learns); /* the same, also in a worker's process, by a step or by learning */
SLOW_PATH void startup_look(Ledger *); /* another process has noted the beginning; the page's lock is held */
PyObject *ledger_begin_startup(Ledger *, PyObject *span);
PyObject *ledger_end_startup(Ledger *, PyObject *);

/* span_type.c */
int span_setup(PyObject *module);
Span *span_get(Ledger *, Operation *, unsigned flags); /* NULL: an exception is set */

/* memory.c, device.c */
void memory_enter(Ledger *, Entry *);
void memory_exit(Ledger *, Entry *);
void memory_after_fork(Ledger *);
int64_t memory_process_peak(Ledger *);
void device_enter(Ledger *, Entry *);
void device_exit(Ledger *, Entry *);
void device_resolve(Ledger *);
void device_detach(Ledger *);
void device_forget(Ledger *);

PyObject *ledger_set_device(Ledger *, PyObject *device);

/* timeline.c, iteration.c, raw.c */
PyObject *ledger_timeline(Ledger *, PyObject *capacity);
PyObject *timeline_drain(Ledger *);
int64_t iteration_mark(Ledger *, int64_t now, bool closes); /* returns its time */
void iteration_reset(Ledger *, int64_t now);
PyObject *ledger_iteration(Ledger *, PyObject *closes);
PyObject *ledger_drop_iteration(Ledger *, PyObject *);
PyObject *ledger_add_steps(Ledger *, PyObject *number);
PyObject *ledger_add_episodes(Ledger *, PyObject *number);
PyObject *iteration_drain(Ledger *);
PyObject *ledger_raw(Ledger *);
int raw_setup(PyObject *rows);
extern const char *const OPERATION_COLUMNS[], *const LANE_COLUMNS[], *const NODE_COLUMNS[];
int layout_setup(PyObject *module); /* layout.c */

static inline void
timeline_add(Ledger *ledger, const Entry *entry, int64_t duration, const Lane *lane)
{
    Timeline *timeline = &ledger->timeline;
    timeline->events[timeline->written++ & (timeline->capacity - 1)] =
        (TimelineEvent){entry->start, duration, entry->node->id, (uint32_t)(entry - lane->stack)};
}

/* Counts a span that ends, in its node and in the timeline. */
static inline void
entry_close(Ledger *ledger, Lane *lane, const Entry *entry, int64_t now)
{
    int64_t duration = now - entry->start;
    lane->left = now;
    node_count_call(entry->node, duration);
    if (UNLIKELY(ledger->mode & MODE_TIMELINE)) {
        timeline_add(ledger, entry, duration, lane);
    }
}

/* switching.c */
PyObject *ledger_start(Ledger *, PyObject *);
PyObject *ledger_stop(Ledger *, PyObject *);
PyObject *ledger_reset(Ledger *, PyObject *);
PyObject *ledger_after_fork(Ledger *, PyObject *);

/* collections.c */
PyObject *ledger_collected(Ledger *, PyObject *const *args, Py_ssize_t count);
PyObject *ledger_collections(const Ledger *, PyObject *);
void collections_begin(Ledger *);

/* watch.c */
SLOW_PATH void watch_report(Ledger *, const Span *, bool begins);
PyObject *ledger_watch(Ledger *, PyObject *watcher);
PyObject *ledger_open_operations(Ledger *, PyObject *);
PyObject *ledger_depth(Ledger *, PyObject *);

/* slowdown.c */
void slowdown_find(Ledger *, Operation *);
int64_t slowdown_begin(const Lane *, Slowdown *);
void slowdown_end(Ledger *, const Entry *ended, int64_t now);
void slowdown_free(Ledger *);
PyObject *ledger_slow_down(Ledger *, PyObject *args);
PyObject *ledger_sample(Ledger *, PyObject *args);

/* ledger.c: warns once of a failure; the training goes on. Keeps a raised exception as it was. */
void complain(Ledger *, const char *what);
/* True if the exception that is set is a request to stop (Ctrl-C, sys.exit in a signal handler) and not a failure of
 * the callback. It is then raised again in the training's own code, and cleared here. */
bool pass_on_interrupt(void);

/* exit_code.c */
PyObject *exit_follow(PyObject *module, PyObject *);
PyObject *exit_code(PyObject *module, PyObject *);

/* signals.c */
PyObject *signal_follow(PyObject *module, PyObject *number);
PyObject *signal_seen(PyObject *module, PyObject *number);
PyObject *signal_unseen(PyObject *module, PyObject *number);

extern PyTypeObject *Ledger_Type, *Span_Type, *Timed_Type;
int ledger_setup(PyObject *module);
int timed_setup(PyObject *module);
PyObject *profile_new(Ledger *);

#endif
