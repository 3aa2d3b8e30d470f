/* Threads and lanes: who runs where, born and ended. */
#include "core.h"

#include <string.h>

/* A pointer, not the struct: a library that is loaded late gets only a little static TLS. */
__thread Thread *this_thread
#if defined(__linux__)
    __attribute__((tls_model("initial-exec")))
#endif
    ;

static int64_t
ledger_time(const Ledger *ledger)
{
    return ledger->mode & MODE_ENABLED ? clock_now(&ledger->clock) : ledger->stopped;
}

/* ---- lanes ---- */

bool
lane_grow(Lane *lane)
{
    size_t used = (size_t)(lane->top - lane->stack) + 1;
    size_t wanted = (size_t)(lane->end - lane->stack) * 2;
    Entry *stack = realloc(lane->stack, wanted * sizeof *stack);
    if (stack == NULL) {
        return false;
    }
    memset(stack + used, 0, (wanted - used) * sizeof *stack);
    lane->stack = stack;
    lane->top = stack + used - 1;
    lane->end = stack + wanted;
    return true;
}

uint32_t
open_spans(const Ledger *ledger)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        open += (uint32_t)(ledger->lanes[i]->top - ledger->lanes[i]->stack);
    }
    return open;
}

static Lane *
lane_new(Ledger *ledger, LaneKind kind, PyObject *name, PyObject *group)
{
    if (ledger->lanes_used == ledger->lanes_capacity) {
        uint32_t wanted = ledger->lanes_capacity ? ledger->lanes_capacity * 2 : 16;
        Lane **lanes = realloc(ledger->lanes, wanted * sizeof *lanes);
        if (lanes == NULL) {
            return NULL;
        }
        ledger->lanes = lanes;
        ledger->lanes_capacity = wanted;
    }
    Lane *lane = calloc(1, sizeof *lane);
    Entry *stack = calloc(16, sizeof *stack);
    Node *root = lane && stack ? node_new(ledger, NULL, NULL, lane) : NULL;
    if (root == NULL) {
        free(stack);
        free(lane);
        return NULL;
    }
    lane->stack = lane->top = stack;
    lane->end = stack + 16;
    stack[0].node = root;
    lane->kind = kind;
    lane->name = Py_NewRef(name);
    lane->group = Py_NewRef(group);
    lane->id = ledger->lanes_used;
    ledger->lanes[ledger->lanes_used++] = lane;
    return lane;
}

/* An ended lane to go on with: of the same name, or any of its (interned) group once there are many. Lanes of the driver's thread
 * and of others are never mixed, for their times are booked by different formulas. */
static Lane *
lane_reuse(Ledger *ledger, LaneKind kind, PyObject *name, PyObject *group, bool on_driver)
{
    Lane *oldest = NULL;
    int ended = 0;
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        if (lane->host != NULL || lane->kind != kind || lane->on_driver != on_driver || lane->group != group) {
            continue;
        }
        if (PyUnicode_Compare(lane->name, name) == 0) {
            return lane;
        }
        oldest = oldest ? oldest : lane;
        ended++;
    }
    if (ended < MAX_ENDED_LANES) {
        return NULL;
    }
    Py_INCREF(group);
    Py_SETREF(oldest->name, group);
    return oldest;
}

static Lane *
lane_take(Thread *host, LaneKind kind, PyObject *name, PyObject *group, int64_t now)
{
    Ledger *ledger = host->ledger;
    bool on_driver = ledger->driver == host || ledger->driver == NULL;
    Py_INCREF(group);
    PyUnicode_InternInPlace(&group);
    Lane *lane = lane_reuse(ledger, kind, name, group, on_driver);
    if (lane == NULL) {
        lane = lane_new(ledger, kind, name, group);
    }
    Py_DECREF(group);
    if (lane == NULL) {
        return NULL;
    }
    lane->on_driver = on_driver;
    lane->host = host;
    lane->mark = now;
    lane->uses++;
    return lane;
}

/* Gives a task's lane back once it has no span open. */
static void
lane_release(Lane *lane)
{
    if (lane->kind == LANE_TASK && lane->top == lane->stack) {
        lane->host = NULL;
    }
}

static void
lane_free(Lane *lane)
{
    for (Entry *entry = lane->stack; entry <= lane->top; entry++) {
        Py_CLEAR(entry->device_event);
    }
    Py_CLEAR(lane->name);
    Py_CLEAR(lane->group);
    free(lane->stack);
    free(lane);
}

/* ---- threads ---- */

Thread *
thread_new(Ledger *ledger, unsigned long ident, PyObject *name, PyObject *group)
{
    Thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return NULL;
    }
    int64_t now = ledger_time(ledger);
    thread->ledger = ledger;
    thread->ident = ident;
    cpu_open(&thread->cpu, CPU_OFF, 0, &ledger->clock, now); /* until a span is seen on it */
    thread->base = thread->lane = lane_take(thread, LANE_THREAD, name, group, now);
    if (thread->lane == NULL) {
        free(thread);
        return NULL;
    }
    thread->share_mark = ledger->share_clock;
    thread->cover_mark = ledger->wait_clock;
    thread->next = ledger->threads;
    ledger->threads = thread;
    return thread;
}

static void
thread_unlink(Thread *thread)
{
    for (Thread **at = &thread->ledger->threads; *at != NULL; at = &(*at)->next) {
        if (*at == thread) {
            *at = thread->next;
            return;
        }
    }
}

/* The thread is over. Spans it left open end here; its lanes are free for others. */
void
thread_end(Thread *thread)
{
    Ledger *ledger = thread->ledger;
    int64_t now = ledger_time(ledger);
    if (ledger->mode & MODE_ENABLED) {
        settle(ledger, now);
    }
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        if (lane->host == thread) {
            lane_unwind(lane, now);
            ledger->suspended -= lane->suspended;
            lane->suspended = false;
            if (lane != thread->base) {
                lane_release(lane);
            }
        }
    }
    thread->lane = thread->base;
    thread->between_steps = false;
    thread->steps = 0;
    restate(thread, now);
    thread->tstate = NULL;
    cpu_open(&thread->cpu, CPU_OFF, 0, &ledger->clock, now);
    thread->ident = 0;
    if (thread != ledger->driver) { /* the driver's time goes on, unattributed, even without its thread */
        thread->base->host = NULL;
        thread_unlink(thread);
        thread->ledger = NULL;
    }
}

/* Lives in the thread state's dictionary, which dies with the thread: the one place that tells of its end. */
typedef struct {
    PyObject_HEAD
    Thread *thread;
} ThreadGuard;

static void
guard_dealloc(PyObject *self)
{
    Thread *thread = ((ThreadGuard *)self)->thread;
    if (thread != NULL) {
        if (this_thread == thread) {
            this_thread = NULL;
        }
        if (thread->ledger != NULL) {
            thread_end(thread);
        }
        if (thread->ledger == NULL) {
            free(thread);
        }
    }
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyType_Slot guard_slots[] = {{Py_tp_dealloc, guard_dealloc}, {0, NULL}};
static PyType_Spec guard_spec = {
    .name = "rlprof.ledger._core.ThreadGuard",
    .basicsize = sizeof(ThreadGuard),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = guard_slots,
};

static bool
thread_guard(Thread *thread)
{
    static PyTypeObject *type;
    if (type == NULL && (type = (PyTypeObject *)PyType_FromSpec(&guard_spec)) == NULL) {
        return false;
    }
    PyObject *dict = PyThreadState_GetDict();
    PyObject *key = PyLong_FromVoidPtr(thread->ledger);
    ThreadGuard *guard = PyObject_New(ThreadGuard, type);
    bool done = false;
    if (guard != NULL) {
        guard->thread = NULL; /* until it is in place */
        done = dict != NULL && key != NULL && PyDict_SetItem(dict, key, (PyObject *)guard) == 0;
        if (done) {
            guard->thread = thread;
        }
        Py_DECREF(guard);
    }
    Py_XDECREF(key);
    return done;
}

static Thread *
thread_find(Ledger *ledger, unsigned long ident)
{
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        if (thread->ident == ident) {
            return thread;
        }
    }
    return NULL;
}

static Thread *
thread_named(Ledger *ledger, unsigned long ident)
{
    PyObject *names = PyObject_CallMethod(ledger->hooks, "name_thread", "k", ident);
    PyObject *name, *group;
    Thread *thread = NULL;
    if (names != NULL && PyArg_ParseTuple(names, "UU", &name, &group)) {
        thread = thread_find(ledger, ident); /* naming it ran Python code, which may have profiled */
        if (thread == NULL) {
            thread = thread_new(ledger, ident, name, group);
        }
    }
    Py_XDECREF(names);
    return thread;
}

Thread *
thread_get(Ledger *ledger)
{
    unsigned long ident = PyThread_get_thread_ident();
    Thread *thread = thread_find(ledger, ident);
    if (thread != NULL && thread->tstate != NULL) {
        return this_thread = thread; /* it used another ledger meanwhile */
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (thread == NULL) {
        thread = thread_named(ledger, ident);
    }
    if (thread != NULL && thread->tstate == NULL) {
        if (thread_guard(thread)) {
            thread->tstate = PyThreadState_Get();
            thread->context_ver = thread->tstate->context_ver - 1; /* a task may be running: look once */
            int64_t now = ledger_time(ledger);
            cpu_open(&thread->cpu, ledger->cpu_kind, ledger->cpu_token, &ledger->clock, now);
            restate(thread, now);
        }
        else {
            thread = NULL;
        }
    }
    if (thread == NULL) {
        complain(ledger, "a thread could not be registered; its spans are not recorded");
    }
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    return this_thread = thread;
}

/* ---- asyncio: one lane a task ---- */

/* The hooks' answer, once asyncio is imported: what asks for the running loop, and the tasks that run by loop. */
static bool
find_asyncio(Ledger *ledger)
{
    if (ledger->running_loop != NULL) {
        return true;
    }
    PyObject *found = PyObject_CallMethod(ledger->hooks, "find_asyncio", NULL);
    PyObject *running_loop, *current_tasks;
    bool done = found != NULL && found != Py_None &&
                PyArg_ParseTuple(found, "OO!", &running_loop, &PyDict_Type, &current_tasks);
    if (done) {
        ledger->running_loop = Py_NewRef(running_loop);
        ledger->current_tasks = Py_NewRef(current_tasks);
    }
    Py_XDECREF(found);
    return done;
}

/* The asyncio task that runs on this thread, borrowed, or NULL. */
static PyObject *
running_task(Ledger *ledger)
{
    PyObject *loop = find_asyncio(ledger) ? PyObject_CallNoArgs(ledger->running_loop) : NULL;
    PyObject *task = loop && loop != Py_None ? PyDict_GetItemWithError(ledger->current_tasks, loop) : NULL;
    Py_XDECREF(loop);
    if (PyErr_Occurred()) {
        complain(ledger, "the running asyncio task cannot be told; its spans are booked to its thread");
        PyErr_Clear();
    }
    return task;
}

/* Gives a task a lane. One that had a lane before gets the same again, if nobody took it meanwhile. */
static Lane *
task_take(Thread *thread, PyObject *task)
{
    Ledger *ledger = thread->ledger;
    int64_t now = ledger_time(ledger);
    PyObject *name = PyObject_CallMethod(task, "get_name", NULL);
    Lane *lane = map_get(&ledger->tasks, (uintptr_t)task);
    if (lane != NULL && name != NULL && PyUnicode_Compare(lane->name, name) == 0 &&
        lane->on_driver == (thread == ledger->driver)) {
        Py_DECREF(name);
        lane->host = thread;
        lane->mark = now;
        return lane;
    }
    PyObject *group = name ? PyObject_CallMethod(ledger->hooks, "group_of", "O", name) : NULL;
    if (group != NULL && PyUnicode_Check(group)) {
        lane = lane_take(thread, LANE_TASK, name, group, now);
    }
    Py_XDECREF(name);
    Py_XDECREF(group);
    if (lane == NULL || lane->host != thread) {
        return NULL;
    }
    if (lane->task != NULL) {
        map_remove(&ledger->tasks, (uintptr_t)lane->task);
    }
    map_remove(&ledger->tasks, (uintptr_t)task);
    lane->task = task;
    if (map_put(&ledger->tasks, (uintptr_t)task, lane) < 0) {
        lane->host = NULL;
        lane->task = NULL;
        return NULL;
    }
    return lane;
}

static Lane *
task_lane(Thread *thread, PyObject *task, bool entering)
{
    Ledger *ledger = thread->ledger;
    Lane *lane = map_get(&ledger->tasks, (uintptr_t)task);
    if (lane != NULL && lane->host != NULL) {
        return lane->host == thread ? lane : thread->base;
    }
    if (!entering) {
        return thread->base;
    }
    PyObject *done = PyObject_CallMethod(ledger->hooks, "saw_task", NULL);
    Py_XDECREF(done);
    lane = done ? task_take(thread, task) : NULL;
    if (lane == NULL) {
        complain(ledger, "an asyncio task could not be given a lane; its spans are booked to its thread");
        PyErr_Clear();
        return thread->base;
    }
    return lane;
}

static void
run_lane(Thread *thread, Lane *lane, int64_t now)
{
    Lane *previous = thread->lane;
    switch_lane(thread, lane, now);
    if (previous != lane) {
        lane_release(previous);
    }
}

Lane *
lane_follow(Thread *thread, bool entering)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    thread->context_ver = thread->tstate->context_ver;
    PyObject *task = running_task(thread->ledger);
    Lane *lane = task ? task_lane(thread, task, entering) : thread->base;
    if (lane != thread->lane) {
        run_lane(thread, lane, ledger_time(thread->ledger));
    }
    PyErr_Restore(type, value, traceback);
    return thread->lane;
}

/* An event loop is about to run a callback. Returns the id of the lane it interrupts, which only a loop inside another
 * loop's callback has, or -1. */
PyObject *
lane_step(Ledger *ledger, PyObject *handle)
{
    Thread *thread = thread_here(ledger);
    if (thread == NULL) {
        return PyLong_FromLong(-1);
    }
    PyObject *callback = PyObject_GetAttrString(handle, "_callback");
    PyObject *task = callback ? PyObject_GetAttrString(callback, "__self__") : NULL;
    PyErr_Clear(); /* not every callback belongs to a task */
    Lane *lane = task ? map_get(&ledger->tasks, (uintptr_t)task) : NULL;
    Py_XDECREF(callback);
    Py_XDECREF(task);
    long previous = thread->steps++ > 0 ? (long)thread->lane->id : -1;
    int64_t now = ledger_time(ledger);
    charge(thread, now, true); /* the pause since the last callback was the loop's */
    thread->between_steps = false;
    run_lane(thread, lane != NULL && lane->host == thread ? lane : thread->base, now);
    return PyLong_FromLong(previous);
}

void
lane_step_end(Ledger *ledger, long previous)
{
    Thread *thread = thread_here(ledger);
    if (thread == NULL) {
        return;
    }
    Lane *lane = thread->base;
    thread->steps -= thread->steps > 0;
    if (previous >= 0 && (uint32_t)previous < ledger->lanes_used && ledger->lanes[previous]->host == thread) {
        lane = ledger->lanes[previous];
    }
    int64_t now = ledger_time(ledger);
    charge(thread, now, true);
    thread->between_steps = thread->steps == 0;
    run_lane(thread, lane, now);
    thread->base->top->node->cost += ledger->step_cost;
}

/* ---- fork and the end ---- */

/* The child has one thread and a life of its own: what was recorded, and what was open, is the parent's. */
void
lane_after_fork(Ledger *ledger)
{
    unsigned long ident = PyThread_get_thread_ident();
    Thread *mine = thread_find(ledger, ident);
    for (Thread *thread = ledger->threads; thread != NULL;) {
        Thread *next = thread->next;
        if (thread != mine) {
            thread->ledger = NULL; /* without a guard by now: leaked, as few as there were threads */
        }
        thread = next;
    }
    ledger->threads = NULL;
    ledger->driver = NULL;
    ledger->workers = ledger->suspended = 0;
    ledger->waiting = false;
    PyObject *name = PyUnicode_InternFromString("main");
    lanes_free(ledger);
    tree_free(ledger);
    if (mine != NULL && name != NULL) {
        int64_t now = ledger_time(ledger);
        mine->lane = mine->base = lane_take(mine, LANE_THREAD, name, name, now);
        mine->working = mine->between_steps = false;
        mine->steps = 0;
        mine->next = NULL;
        ledger->threads = mine;
        if (mine->tstate != NULL) {
            cpu_open(&mine->cpu, ledger->cpu_kind, ledger->cpu_token, &ledger->clock, now);
        }
    }
    else if (name != NULL) {
        mine = thread_new(ledger, ident, name, name);
    }
    Py_XDECREF(name);
    if (mine == NULL || mine->lane == NULL) {
        PyErr_Clear();
        ledger->mode = 0;
        ledger->threads = NULL;
        complain(ledger, "no memory for a forked process; it is not recorded");
        return;
    }
    ledger->driver = mine;
    restate(mine, ledger_time(ledger));
}

void
lanes_free(Ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        lane_free(ledger->lanes[i]);
    }
    ledger->lanes_used = 0;
    map_free(&ledger->tasks);
}
