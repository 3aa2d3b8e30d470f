/* The ledger's data. All of it is read and written with the GIL held. */
#ifndef RLPROF_CORE_H
#define RLPROF_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "cpu.h"
#include "histogram.h"
#include "map.h"
#include "records.h"
#include "sharing.h"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Read at each span. A library that is loaded later reaches such a variable by a call, unless it asks for one of the few
 * places that glibc keeps for that. */
#ifdef __GLIBC__
#define THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#else
#define THREAD_LOCAL __thread
#endif
/* Kept out of the hot functions, which then need no stack frame: a third of a span's instructions. */
#define SLOW_PATH __attribute__((noinline, cold))

/* Beyond these an operation or a node is folded into a catch-all, with one warning: names made in a loop must not eat
 * the training's memory. */
#define MAX_OPERATIONS 65536
#define MAX_NODES 262144
/* So many lanes of one group have a tree of their own, and so many of all groups. Then a lane continues the tree of one
 * that has ended. Where none has, tasks share a tree: what a report says of 100,000 tasks must not take as many rows. */
#define MAX_TREES 64
#define MAX_TASK_LANES 1024

typedef struct Ledger Ledger;
typedef struct Span Span;
typedef struct Operation Operation;
typedef struct Node Node;
typedef struct Lane Lane;
typedef struct Pool Pool;
typedef struct Thread Thread;
typedef struct Pulse Pulse;

/* One kind of work, known by its name. */
struct Operation {
    PyObject *name;
    Py_hash_t hash;
    PyObject *category;
    bool category_told; /* given by a call, not by the catalogue */
    bool on_device;     /* timed on the device whenever there is one */
    uint32_t id;
    Span *spans; /* one for each combination of options in use; the plain one first */
    Node *cached_parent;
    Node *cached_child;
    Slowdown *slowdown; /* slowdown.c: how it is slowed down, or NULL */
};

/* One operation at one place of one lane's call tree. Times are nanoseconds. */
struct Node {
    int64_t self;   /* innermost on its lane, whoever ran */
    uint64_t calls; /* closed spans */
    int64_t busy;   /* the closed spans' durations */
    int64_t min;
    int64_t max;
    Histogram durations;
    int64_t shift;   /* what attribution adds to the ledger time: see attribution.c */
    int64_t covered; /* elsewhere than on the driver: working while it waited */
    int64_t overlap; /* on the driver: worked beside it before that */
    int64_t waited;  /* of self: in a wait span, or suspended */
    int64_t off_cpu; /* of self: off the CPU */
    int64_t cost;    /* of self: rlprof's own on a CPU, where it was timed and not calibrated */
    int64_t memory_peak; /* bytes, -1: never tracked */
    int64_t memory_rise;
    int64_t device_peak;
    int64_t device_rise;
    int64_t device_time;
    uint64_t device_calls;
    uint32_t id;
    Operation *operation; /* NULL: the lane's root, no span open */
    Node *parent;
    Lane *lane;
    struct { /* as they stood at the last iteration mark */
        int64_t self, shift, overlapped, waited, off_cpu;
        uint64_t calls;
    } marked;
};

/* An open span. */
typedef struct {
    Node *node;
    Span *span; /* NULL: the bottom of the stack */
    int64_t start;
    int64_t memory_start;
    int64_t memory_peak;
    int64_t device_start;
    int64_t device_peak;
    PyObject *device_event;
    int64_t slowed_from; /* CPU time at its start; -1: it is not slowed down */
} Entry;

typedef enum { LANE_THREAD, LANE_TASK } LaneKind;

/* A line of execution with a call tree of its own, or a guest in the tree of another lane that nothing runs on. */
struct Lane {
    Entry *top; /* stack[0] is the root, always open */
    int64_t mark; /* time is booked up to here */
    int64_t left; /* when its last span ended */
    struct {      /* the innermost node, as it was at `left`: see lane_stand */
        const Node *node; /* NULL: nothing of it has changed since */
        int64_t left, shift, covered, waited, off_cpu, cost;
    } stood;
    Entry *stack;
    Entry *end;
    int waits; /* open wait spans */
    bool suspended; /* counted in Ledger.suspended */
    int64_t idle_mark;
    Thread *host; /* NULL: ended */
    PyObject *task; /* borrowed, and only compared: the asyncio task that ran here last */
    PyObject *name;
    LaneKind kind;
    bool on_driver;
    bool shared;   /* its tree is its guests'; nothing runs on it */
    bool guest;
    uint32_t id;   /* of the lane whose tree it is */
    uint64_t uses; /* threads or tasks that have run here */
    Pool *pool;    /* NULL: a guest */
    Lane *before, *after; /* among its pool's ended lanes; `after` also links spare guests, and a thread's shared lanes */
};

/* The lanes of one kind and group, on the driver's thread or not, that have a tree of their own. Times on the driver's
 * thread and on others are booked by different formulas, so their lanes are never mixed. */
struct Pool {
    PyObject *group; /* interned */
    uint32_t trees;
    uint32_t ended;
    Lane *first, *last; /* of those that have ended, in that order */
};

#define THREAD_WORKER 1u  /* not the driver's */
#define THREAD_CAREFUL 2u /* its spans may change which threads work or wait */

/* An operating-system thread, as one ledger sees it. */
struct Thread {
    Ledger *ledger; /* NULL: the ledger is gone */
    unsigned flags;
    Lane *lane; /* running now: the base lane or a task's */
    PyThreadState *tstate; /* NULL: no span seen on it yet */
    uint64_t context_ver;
    Cpu cpu;
    Lane *base;
    unsigned long ident;
    bool working;
    bool own; /* what it does now is rlprof's: own.c */
    const Node *own_only; /* but only here, as it runs code that has spans of its own; NULL: anywhere */
    int64_t own_until;    /* it was so last */
    bool between_steps; /* inside an event loop that runs no callback */
    int steps;          /* callbacks it is inside of: two where a loop runs inside another's callback */
    Lane *shared;       /* its lanes with guests, one for each group */
    int64_t share_mark;
    int64_t cover_mark;
    Thread *next;
};

typedef struct {
    TimelineEvent *events; /* NULL: no timeline */
    uint64_t capacity;     /* a power of two */
    uint64_t written;
    uint64_t drained;
} Timeline;

typedef struct {
    IterationGain *gains;
    size_t gains_used, gains_capacity;
    IterationMark *marks;
    size_t marks_used, marks_capacity;
    uint32_t count;   /* closed iterations */
    uint32_t emitted; /* of them, in a mark already */
    int64_t start;    /* of the first one not emitted */
    int64_t begun;    /* of the open one */
    Histogram durations; /* of all closed ones: marks are merged, and a merged one's mean hides the slow ones in it */
    int64_t shortest, longest, sum; /* of the same */
    bool open;
    int64_t steps, episodes; /* counted since the last reset */
    int64_t marked_steps, marked_episodes;
} Iterations;

#define MODE_ENABLED 1u
#define MODE_TIMELINE 2u
#define MODE_DEVICE 4u
#define MODE_WATCHED 8u
#define MODE_SLOWED 16u
/* With one of these, every span takes the long way. */
#define MODE_FULL (MODE_DEVICE | MODE_WATCHED | MODE_SLOWED)

struct Ledger {
    PyObject_HEAD
    unsigned mode;
    Clock clock;
    CpuKind cpu_kind;
    uint64_t cpu_token;
    int64_t started;  /* enabled since */
    int64_t wall;     /* enabled time before that */
    int64_t stopped;  /* disabled since */
    uint32_t left_open; /* spans open when it was disabled, and still */

    /* attribution.c */
    Thread *driver;
    unsigned long driving; /* the thread that drives a training in this process, as Profiler.driver; 0: none */
    Sharing *sharing; /* the next one, or the page's */
    Sharing alone;
    Membership member;
    bool elsewhere;                /* the driver is in another process; here is a stand-in that does nothing */
    bool seen;                     /* a span was begun in this process */
    uint32_t epoch;                /* of the page, when recording began anew here */
    uint32_t heard;                /* the page's `asked` that is being answered */
    int64_t given_mark;            /* what the driver's spans have given up to now */
    int64_t given_before;          /* of that, before the last reset */
    int64_t idle_clock, idle_rest; /* advances at 1/suspended while no thread works either */
    int suspended;

    /* tree.c */
    Operation **operations;
    uint32_t operations_used, operations_capacity;
    Operation **by_name;
    size_t by_name_mask;
    Map plain_spans; /* by the address of the operation's interned name: what profile(name) returns */
    Node **nodes;
    uint32_t nodes_used, nodes_capacity;
    Map children;

    /* lane.c, thread.c, task.c */
    Thread *threads;
    Lane **lanes; /* guests too */
    uint32_t lanes_used, lanes_capacity;
    uint32_t trees; /* lanes that are no guests */
    uint32_t lanes_life; /* changes when all lanes are freed */
    Lane *spare; /* guests without a task */
    Map pools;
    Map tasks; /* by address: the lane each had last; only lanes with a host are in use */
    PyObject *running_loop;  /* asyncio's; NULL before it is imported */
    PyObject *current_task;
    char follows_tasks; /* event loops tell of their callbacks */
    int64_t step_cost; /* of following an event loop: what the timing of each callback's own cost leaves out */
    int64_t span_cost; /* what a span costs outside of itself, as calibrated */

    Pulse *pulse;         /* pulse.c: notices when the process is stopped; NULL: off */
    uint32_t stops_seen;
    Span *suspension;     /* what that is booked to */
    Span *startup;      /* startup.c: while it is open */
    Span *startup_rest; /* from when it gave way until the training begins */
    bool supervises;    /* the training is in other processes: with no span open, the driver waits for them */
    int64_t trained;    /* when something was last stepped, learned or marked here; 0: never */
    bool learned;       /* something was learned in this process */
    unsigned long local; /* where the driver is elsewhere: the thread that may drive a training in this process */
    uint32_t begun;     /* of the page's `beginning.count`, what is accounted for here */
    Timeline timeline;
    Iterations iterations;

    /* memory.c, device.c */
    int clear_refs;   /* an open file, -1 not opened, -2 not to be had */
    int64_t process_peak;
    PyObject *device;
    PyObject *pending; /* list of (node id, start event, end event) */
    uint64_t device_lost;
    uint64_t device_epoch; /* pending events belong to it */
    bool resolving;

    PyObject *watcher; /* watch.c: every span is reported to it, or NULL */
    bool telling;

    PyObject *slowed; /* slowdown.c: the names of the operations that are slowed down, or NULL */
    Py_buffer slowdowns;

    PyObject *hooks;
    PyObject *profile;
};

#define SPAN_MEMORY 1u
#define SPAN_WAIT 2u
#define SPAN_DEVICE 4u
#define SPAN_NO_DEVICE 8u

/* What `with` and a decorator hold: an operation with options. The same options share one. */
struct Span {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Ledger *ledger;
    Operation *operation;
    unsigned flags;
    Span *next;
    PyObject *exit; /* the bound __exit__ */
};

extern THREAD_LOCAL Thread *this_thread;

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
void lane_move(Ledger *, Lane *, bool on_driver); /* to the pool where it belongs then */
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

/* While recording is off no time passes. */
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

/* sharing.c */
void sharing_enter(Ledger *);
void sharing_after_fork(Ledger *);
void sharing_begin_anew(Ledger *);
PyObject *ledger_share(Ledger *, PyObject *args);
PyObject *ledger_leave(Ledger *, PyObject *);
PyObject *ledger_members(Ledger *, PyObject *);
PyObject *ledger_ended(Ledger *, PyObject *);
PyObject *ledger_dismiss(Ledger *, PyObject *pid);

/* asking.c */
void wake_listeners(Page *);
PyObject *ledger_ask(Ledger *, PyObject *seconds);
PyObject *ledger_listen(Ledger *, PyObject *seconds);
PyObject *ledger_answer(Ledger *, PyObject *);

/* Around what must be seen as one by the other processes. Nothing inside may run Python code. */
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

/* Another process may have brought the clocks further before this one had the lock. */
static inline int64_t
not_before(const Ledger *ledger, int64_t now)
{
    const Sharing *sharing = ledger->sharing;
    return sharing->waiting && now < sharing->waiting_mark ? sharing->waiting_mark : now;
}

/* Keeps what the innermost node had when the lane's last span ended. Must come before any of it changes: whoever learns
 * later that the node's span was over then (ledger_split) has to know what came after. The hot path changes none of it. */
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
int64_t settle(Ledger *, int64_t now); /* returns up to when: with other processes, perhaps a little later */
void attribution_resume(Ledger *, int64_t gap);
void attribution_set_driver(Ledger *, Thread *, int64_t now);
int64_t node_ledger(const Node *);
int64_t node_overlapped(const Node *);

/* own.c: around rlprof's own work on a thread. Neither runs Python code nor fails. */
bool own_begin(Thread *, const Node *only); /* false: it had begun, or is not recorded */
void own_end(Thread *, bool begun);
void own_around(Ledger *, int64_t began, int64_t start, int64_t end);
PyObject *ledger_set_span_cost(Ledger *, PyObject *cost);
PyObject *ledger_own_time(Ledger *, PyObject *own);

/* pulse.c */
PyObject *ledger_pulse(Ledger *, PyObject *span);
PyObject *ledger_stopped(Ledger *, PyObject *args);
void pulse_end(Ledger *);
SLOW_PATH void pulse_look(Ledger *, int64_t now);

/* Before time is booked that is long enough to hold a stop. */
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
void lane_end_below(Lane *, const Span *, int64_t now); /* ends one; those inside go on where they would be without it */
bool span_enter(Span *); /* false: not recorded, so not to be left */
void span_exit(Span *);
PyObject *ledger_split(Ledger *, PyObject *args);
PyObject *ledger_rename(Ledger *, PyObject *args); /* rename.c */
PyObject *span_call(PyObject *, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *span_exit_method(PyObject *, PyObject *const *args, Py_ssize_t count);

/* startup.c */
bool startup_gives_way(const Ledger *, const Node *parent); /* to a first span inside `parent` */
SLOW_PATH bool startup_enter(Span *);
void startup_end(Ledger *); /* the training begins */
void training_begins(Ledger *, bool learns); /* the same, here or in a worker's process, by a step or by learning */
SLOW_PATH void startup_look(Ledger *); /* another process knows when it began; the page's lock is held */
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

/* timeline.c, iteration.c, raw.c */
int timeline_open(Ledger *, Py_ssize_t capacity);
PyObject *timeline_drain(Ledger *);
int64_t iteration_mark(Ledger *, int64_t now, bool closes); /* returns when it was */
void iteration_reset(Ledger *, int64_t now);
PyObject *ledger_drop_iteration(Ledger *, PyObject *);
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

/* switching.c */
PyObject *ledger_start(Ledger *, PyObject *);
PyObject *ledger_stop(Ledger *, PyObject *);
PyObject *ledger_reset(Ledger *, PyObject *);
PyObject *ledger_after_fork(Ledger *, PyObject *);

/* watch.c */
SLOW_PATH void watch_tell(Ledger *, const Span *, bool begins);
PyObject *ledger_watch(Ledger *, PyObject *watcher);
PyObject *ledger_open_operations(Ledger *, PyObject *);

/* slowdown.c */
void slowdown_find(Ledger *, Operation *);
int64_t slowdown_begin(const Lane *, Slowdown *);
void slowdown_end(Ledger *, Slowdown *, int64_t begun, int64_t wall);
void slowdown_free(Ledger *);
PyObject *ledger_slow_down(Ledger *, PyObject *args);
PyObject *ledger_sample(Ledger *, PyObject *args);

/* ledger.c: says once what went wrong and lets the training go on. Keeps a raised exception as it was. */
void complain(Ledger *, const char *what);
/* Whether the exception that is set is not the callback's own failure but a request to stop (Ctrl-C, sys.exit in a signal
 * handler). If so it is raised again in the training's own code, and no longer set. */
bool pass_on_interrupt(void);

/* signals.c */
PyObject *signal_follow(PyObject *module, PyObject *number);
PyObject *signal_seen(PyObject *module, PyObject *number);
PyObject *signal_unseen(PyObject *module, PyObject *number);

extern PyTypeObject *Ledger_Type, *Span_Type, *Timed_Type;
int ledger_setup(PyObject *module);
int timed_setup(PyObject *module);
PyObject *profile_new(Ledger *);

#endif
