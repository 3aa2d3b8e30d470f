/* Operating-system threads as a ledger sees them: their first span, their end, and forks. */
#include "core.h"

/* A pointer and not the struct, because a library that is loaded late gets only a little static TLS. */
THREAD_LOCAL Thread *this_thread;

/* The thread state that is being destroyed. Finalisers may still run on it, but no guard would report its end again. */
static __thread uint64_t ending;

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
    thread->share_mark = ledger->sharing->share_clock;
    thread->cover_mark = ledger->sharing->wait_clock;
    thread->next = ledger->threads;
    ledger->threads = thread;
    return thread;
}

/* The thread has ended. Spans that it left open end here, and its lanes are free for others. */
static void
thread_end(Thread *thread)
{
    Ledger *ledger = thread->ledger;
    int64_t now = ledger_time(ledger);
    stacks_forget(ledger, thread);
    sharing_lock(ledger);
    if (ledger->mode & MODE_ENABLED) {
        now = settle(ledger, now);
    }
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        if (lane->host == thread) {
            lane_unwind(lane, now);
            ledger->suspended -= lane->suspended;
            lane->suspended = false;
            if (lane != thread->base) {
                lane_release(ledger, lane);
            }
        }
    }
    thread_set_lane(thread, thread->base);
    thread->shared = NULL;
    thread->between_steps = false;
    thread->steps = 0;
    restate(thread, now);
    sharing_unlock(ledger);
    thread->tstate = NULL;
    cpu_open(&thread->cpu, CPU_OFF, 0, &ledger->clock, now);
    thread->ident = 0;
    if (thread != ledger->driver) { /* the driver's time goes on without its thread, unattributed */
        lane_end(ledger, thread->base);
        Thread **at = &ledger->threads;
        while (*at != NULL && *at != thread) {
            at = &(*at)->next;
        }
        *at = *at != NULL ? thread->next : NULL;
        thread->ledger = NULL;
    }
}

/* An object in the thread state's dictionary. It is destroyed with the thread, which reports the thread's end. */
typedef struct {
    PyObject_HEAD
    Thread *thread;
} ThreadGuard;

static void
guard_dealloc(PyObject *self)
{
    Thread *thread = ((ThreadGuard *)self)->thread;
    if (thread != NULL) {
        if (thread->ledger != NULL) {
            if (thread->tstate == PyThreadState_Get()) { /* not after a fork or at exit */
                ending = PyThreadState_GetID(thread->tstate);
            }
            thread_end(thread);
        }
        if (this_thread == thread) {
            this_thread = NULL;
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
        guard->thread = NULL; /* the guard must not end the thread if it is not put in place */
        done = dict != NULL && key != NULL && PyDict_SetItem(dict, key, (PyObject *)guard) == 0;
        guard->thread = done ? thread : NULL;
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

Thread *
thread_known(Ledger *ledger)
{
    Thread *thread = thread_find(ledger, PyThread_get_thread_ident());
    if (thread == NULL || thread->tstate == NULL) {
        return NULL;
    }
    return ledger->seen ? (this_thread = thread) : thread; /* the process's first span must go through thread_get */
}

static Thread *
thread_named(Ledger *ledger, unsigned long ident)
{
    PyObject *names = PyObject_CallMethod(ledger->hooks, "name_thread", "k", ident);
    PyObject *name, *group;
    Thread *thread = NULL;
    if (names != NULL && PyArg_ParseTuple(names, "UU", &name, &group)) {
        thread = thread_find(ledger, ident); /* the hook ran Python code, which may have recorded a span */
        thread = thread != NULL ? thread : thread_new(ledger, ident, name, group);
    }
    Py_XDECREF(names);
    return thread;
}

/* Calls the hook at the first span in this process, once, whatever Python code it runs. */
static void
saw_thread(Ledger *ledger)
{
    if (LIKELY(ledger->seen)) {
        return;
    }
    ledger->seen = true;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *done = PyObject_CallMethod(ledger->hooks, "saw_thread", NULL);
    if (done == NULL && !pass_on_interrupt()) {
        complain(ledger, "what this process records could not be followed");
    }
    Py_XDECREF(done);
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

Thread *
thread_get(Ledger *ledger)
{
    if (UNLIKELY(ending != 0) && ending == PyThreadState_GetID(PyThreadState_Get())) {
        return NULL;
    }
    unsigned long ident = PyThread_get_thread_ident();
    Thread *thread = thread_find(ledger, ident);
    if (thread != NULL && thread->tstate != NULL) {
        this_thread = thread; /* it has used another ledger, or the process was forked */
        saw_thread(ledger);
        return thread;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (thread == NULL) {
        thread = thread_named(ledger, ident);
    }
    if (thread != NULL && thread->tstate == NULL) {
        if (thread_guard(thread)) {
            thread->tstate = PyThreadState_Get();
            thread->context_ver = thread->tstate->context_ver - 1; /* look once whether a task is running */
            int64_t now = ledger_time(ledger);
            cpu_open(&thread->cpu, ledger->cpu_kind, ledger->cpu_token, &ledger->clock, now);
            restate(thread, now);
        }
        else {
            thread = NULL;
        }
    }
    if (thread == NULL) {
        pass_on_interrupt();
        complain(ledger, "a thread could not be registered; its spans are not recorded");
    }
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
    this_thread = thread;
    if (thread != NULL) {
        saw_thread(ledger);
    }
    return thread;
}

/* ---- fork ---- */

static void
forget_fork(Ledger *ledger)
{
    ledger->mode = 0;
    complain(ledger, "no memory for a forked process; it is not recorded");
}

/* The child has one thread and records anew. Records and open spans belong to the parent. */
void
threads_after_fork(Ledger *ledger)
{
    unsigned long ident = PyThread_get_thread_ident();
    Thread *mine = thread_find(ledger, ident);
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        if (thread != mine) {
            thread->ledger = NULL; /* it has no guard any more: a few bytes per thread are leaked */
        }
    }
    ledger->threads = NULL;
    ledger->driver = NULL;
    ledger->suspended = 0;
    ledger->seen = false;
    this_thread = NULL;
    sharing_after_fork(ledger);
    PyObject *name = PyUnicode_InternFromString("main");
    unsigned mode = ledger->mode;
    ledger->mode = 0; /* finalisers of events must not find freed lanes */
    ledger->left_open = 0;
    lanes_free(ledger);
    tree_free(ledger);
    ledger->mode = mode;
    if (mine != NULL && name != NULL) {
        int64_t now = ledger_time(ledger);
        mine->lane = mine->base = lane_take(mine, LANE_THREAD, name, name, now);
        mine->working = mine->between_steps = false;
        mine->steps = 0;
        mine->shared = NULL;
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
        ledger->threads = NULL;
        forget_fork(ledger);
        return;
    }
    ledger->driver = mine;
    mine->share_mark = ledger->sharing->share_clock;
    mine->cover_mark = ledger->sharing->wait_clock;
    ledger->given_mark = ledger->sharing->given;
    if (ledger->member.page == NULL) {
        ledger->elsewhere = false;
        restate(mine, ledger_time(ledger));
    }
    else if (ledger_follow_other(ledger) < 0) {
        forget_fork(ledger);
    }
}

/* All threads here are workers of a driver in another process. A thread that never runs takes the driver's place. */
int
ledger_follow_other(Ledger *ledger)
{
    PyObject *name = PyUnicode_InternFromString("driver");
    Thread *placeholder = name ? thread_new(ledger, 0, name, name) : NULL;
    Py_XDECREF(name);
    if (placeholder == NULL) {
        PyErr_Clear();
        return -1;
    }
    ledger->elsewhere = true;
    attribution_set_driver(ledger, placeholder, ledger_time(ledger));
    return 0;
}

void
ledger_follow_own(Ledger *ledger, Thread *driver, int64_t now)
{
    Thread *placeholder = ledger->driver;
    ledger->elsewhere = false;
    attribution_set_driver(ledger, driver, now);
    thread_end(placeholder);
    free(placeholder);
}

/* A running thread may still point at its Thread. Its guard frees that when the thread ends. */
void
threads_free(Ledger *ledger)
{
    for (Thread *thread = ledger->threads; thread != NULL;) {
        Thread *next = thread->next;
        thread->ledger = NULL;
        if (thread->tstate == NULL) {
            free(thread);
        }
        thread = next;
    }
}
