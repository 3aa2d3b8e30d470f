/* The ledger's data. All of it is read and written with the GIL held. */
#ifndef RLPROF_DATA_H
#define RLPROF_DATA_H

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
/* Read at each span. In a library that is loaded late, such a variable is reached by a call, except in one of the few
 * places that glibc reserves for this model. */
#ifdef __GLIBC__
#define THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))
#else
#define THREAD_LOCAL __thread
#endif
/* Kept out of the hot functions. They then need no stack frame, which would be a third of a span's instructions. */
#define SLOW_PATH __attribute__((noinline, cold))

/* Beyond these an operation or a node is folded into a catch-all, with one warning: names that a loop makes must not
 * use up the training's memory. */
#define MAX_OPERATIONS 65536
#define MAX_NODES 262144
/* Number of lanes of one group, and of all groups, that have a tree of their own. A further lane continues the tree
 * of one that has ended. If none has, tasks share a tree, because 100,000 tasks must not make as many rows in a
 * report. */
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
typedef struct Stacks Stacks;

/* One kind of work, known by its name. */
struct Operation {
    PyObject *name;
    Py_hash_t hash;
    PyObject *category;
    bool category_given; /* by a call, not by the catalogue */
    bool on_device;      /* timed on the device if there is one */
    uint32_t id;
    Span *spans; /* one for each combination of options in use; the plain one first */
    Node *cached_parent;
    Node *cached_child;
    Slowdown *slowdown; /* slowdown.c: how it is slowed down, or NULL */
};

/* One operation at one place of one lane's call tree. Times are nanoseconds. */
struct Node {
    int64_t self;   /* innermost on its lane, running or not */
    uint64_t calls; /* closed spans */
    int64_t busy;   /* the closed spans' durations */
    int64_t min;
    int64_t max;
    Histogram durations;
    int64_t shift;   /* what attribution adds to the ledger time: see attribution.c */
    int64_t covered; /* on other threads than the driver: work while the driver waited */
    int64_t overlap; /* on the driver: work beside a former driver, before this thread became the driver */
    int64_t waited;  /* part of self: in a wait span, or suspended */
    int64_t off_cpu; /* part of self: off the CPU */
    int64_t cost;    /* part of self: CPU time of rlprof's own work, where it was timed and not calibrated */
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
    int64_t slowed_from; /* CPU time at its start; -1: not slowed down */
} Entry;

typedef enum { LANE_THREAD, LANE_TASK } LaneKind;

/* A line of execution with a call tree of its own, or a guest in the tree of another lane that nothing runs on. */
struct Lane {
    Entry *top; /* stack[0] is the root, always open */
    int64_t mark; /* time is booked up to here */
    int64_t left; /* when its last span ended */
    struct {      /* the innermost node, as it was at `left`: see lane_stand */
        const Node *node; /* NULL: it has not changed since */
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
    bool shared;   /* guests use its tree; nothing runs on it */
    bool guest;
    uint32_t id;   /* of the lane that owns the tree */
    uint64_t uses; /* threads or tasks that have run here */
    Pool *pool;    /* NULL: a guest */
    Lane *before, *after; /* in its pool's ended lanes; `after` also links spare guests and a thread's shared lanes */
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
    bool own; /* it does rlprof's own work now: own.c */
    const Node *own_only; /* only time of this node is rlprof's, as the work has spans of its own; NULL: of any node */
    int64_t own_until;    /* end of the last own work */
    bool between_steps; /* inside an event loop that runs no callback */
    int steps;          /* open callbacks; two where a loop runs inside another loop's callback */
    Lane *shared;       /* its lanes with guests, one per group */
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
    uint32_t emitted; /* closed iterations that are in a mark */
    int64_t start;    /* of the first iteration not emitted */
    int64_t begun;    /* start of the open iteration */
    Histogram durations; /* of all closed iterations: the mean of a merged mark would hide the slow ones */
    int64_t shortest, longest, sum; /* of the same durations */
    bool open;
    int64_t steps, episodes; /* counted since the last reset */
    int64_t marked_steps, marked_episodes;
} Iterations;

#define GENERATIONS 3 /* of Python's garbage collector */

typedef struct {
    int64_t count, ns, longest, freed;
} Generation;

/* collections.c */
typedef struct {
    Generation of[GENERATIONS];  /* since the training began */
    int64_t before[GENERATIONS]; /* ns */
    bool runs;                   /* a collection is under way, since `began` */
    int64_t began;
} Collections;

#define MODE_ENABLED 1u
#define MODE_TIMELINE 2u
#define MODE_DEVICE 4u
#define MODE_WATCHED 8u
#define MODE_SLOWED 16u
/* With any of these, every span takes the slow path. */
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
    Sharing *sharing; /* `unshared`, or the page's */
    Sharing unshared;
    Membership member;
    bool elsewhere;                /* the driver is in another process; `driver` is a placeholder that never runs */
    bool seen;                     /* a span was begun in this process */
    uint32_t epoch;                /* of the page, at the last reset here */
    uint32_t request;              /* the page's `requests` that is being answered */
    int64_t given_mark;            /* time that the driver's spans have given up to now */
    int64_t given_before;          /* part of it before the last reset */
    int64_t idle_clock, idle_rest; /* advances at 1/suspended while no thread works either */
    int suspended;

    /* tree.c */
    Operation **operations;
    uint32_t operations_used, operations_capacity;
    Operation **by_name;
    size_t by_name_mask;
    Map plain_spans; /* what profile(name) returns, by the address of the operation's interned name */
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
    char follows_tasks; /* event loops report their callbacks */
    int64_t step_cost; /* calibrated: cost of following a callback that its own timing leaves out */
    int64_t span_cost; /* calibrated: cost of a span outside of its two clock readings */

    Pulse *pulse;         /* pulse.c: notices when the process is stopped; NULL: off */
    uint32_t stops_seen;
    Span *suspension;     /* the time of stops is booked to it */
    Stacks *stacks;       /* stacks.c: samples of the Python stack; NULL: never switched on */
    Span *startup;      /* startup.c: while it is open */
    Span *startup_rest; /* from when it gave way until the training begins */
    bool supervises;    /* the training is in other processes: with no span open, the driver waits for them */
    int64_t trained;    /* time of the last step, learning or iteration mark here; 0: none yet */
    bool learned;       /* something was learned in this process */
    unsigned long local; /* if the driver is in another process: the thread that may drive a training in this one */
    uint32_t begun;     /* the page's `beginning.count` up to which the accounts here are corrected */
    Timeline timeline;
    Iterations iterations;
    Collections collections;

    /* memory.c, device.c */
    int clear_refs;   /* an open file; -1: not opened yet; -2: not available */
    int64_t process_peak;
    PyObject *device;
    PyObject *pending; /* list of (node id, start event, end event) */
    uint64_t device_lost;
    uint64_t device_epoch; /* pending events belong to it */
    bool resolving;

    PyObject *watcher; /* watch.c: every span is reported to it, or NULL */
    bool reporting;

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

#endif
