/* asyncio: one lane per task, followed by the context of the thread and the callbacks of its event loop.
 *
 * A switch is O(1), however many tasks there are. Its cost is timed and booked as rlprof's: with many tasks the
 * caches are cold, which no calibration can know. */
#include "core.h"

#include <string.h>

/* Nothing here computes for so long. If it took longer, the thread was off its core, which is no cost of rlprof. */
#define LONGEST_OWN 100000

static void
book_own(const Ledger *ledger, Node *node, int64_t began)
{
    int64_t spent = ledger_time(ledger) - began;
    node->cost += smaller(spent, LONGEST_OWN);
}

/* Once asyncio is imported: takes its functions for the running loop and for the task that runs on a loop. */
static bool
find_asyncio(Ledger *ledger)
{
    if (ledger->running_loop != NULL) {
        return true;
    }
    PyObject *found = PyObject_CallMethod(ledger->hooks, "find_asyncio", NULL);
    PyObject *running_loop, *current_task;
    bool done = found != NULL && found != Py_None && PyArg_ParseTuple(found, "OO", &running_loop, &current_task);
    if (done) {
        ledger->running_loop = Py_NewRef(running_loop);
        ledger->current_task = Py_NewRef(current_task);
    }
    Py_XDECREF(found);
    return done;
}

/* The asyncio task that runs on this thread, borrowed from its loop, or NULL. */
static PyObject *
running_task(Ledger *ledger)
{
    PyObject *loop = find_asyncio(ledger) ? PyObject_CallNoArgs(ledger->running_loop) : NULL;
    PyObject *task = loop && loop != Py_None ? PyObject_CallOneArg(ledger->current_task, loop) : NULL;
    Py_XDECREF(loop);
    if (PyErr_Occurred()) {
        complain(ledger, "the running asyncio task cannot be found; its spans are booked to its thread");
        PyErr_Clear();
    }
    Py_XDECREF(task);
    return task == Py_None ? NULL : task;
}

/* As the hooks' group_of. asyncio makes names by the thousand, so no Python code runs for them. */
static PyObject *
group_of(Ledger *ledger, PyObject *name)
{
    static PyObject *unnamed;
    Py_ssize_t length = PyUnicode_Check(name) && PyUnicode_IS_COMPACT_ASCII(name) ? PyUnicode_GET_LENGTH(name) : 0;
    const char *text = length > 5 ? (const char *)PyUnicode_1BYTE_DATA(name) : NULL;
    if (text != NULL && memcmp(text, "Task-", 5) == 0 && strspn(text + 5, "0123456789") == (size_t)length - 5) {
        unnamed = unnamed ? unnamed : PyUnicode_InternFromString("Task-#");
        return Py_XNewRef(unnamed);
    }
    return PyObject_CallMethod(ledger->hooks, "group_of", "O", name);
}

/* Gives a task a lane. A task that had a lane gets the same again, unless another task has taken it. */
static Lane *
task_take(Thread *thread, PyObject *task)
{
    Ledger *ledger = thread->ledger;
    int64_t now = ledger_time(ledger);
    PyObject *name = PyObject_CallMethod(task, "get_name", NULL);
    Lane *lane = map_get(&ledger->tasks, (uintptr_t)task);
    if (lane != NULL && lane->host == NULL && name != NULL && PyUnicode_Compare(lane->name, name) == 0 &&
        lane->on_driver == (thread == ledger->driver)) {
        Py_DECREF(name);
        lane_retake(lane, thread, now);
        return lane;
    }
    PyObject *group = name ? group_of(ledger, name) : NULL;
    lane = group != NULL && PyUnicode_Check(group) ? lane_take(thread, LANE_TASK, name, group, now) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(group);
    if (lane == NULL) {
        return NULL;
    }
    if (lane->task != NULL) {
        map_remove(&ledger->tasks, (uintptr_t)lane->task);
    }
    Lane *former = map_get(&ledger->tasks, (uintptr_t)task);
    if (former != NULL) {
        former->task = NULL; /* of an ended task at this address, or of this task under another name */
        map_remove(&ledger->tasks, (uintptr_t)task);
    }
    lane->task = task;
    if (map_put(&ledger->tasks, (uintptr_t)task, lane) < 0) {
        lane->task = NULL;
        lane_end(ledger, lane);
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
    bool followed = ledger->follows_tasks;
    if (!followed) {
        PyObject *done = PyObject_CallMethod(ledger->hooks, "saw_task", NULL);
        followed = done != NULL;
        Py_XDECREF(done);
    }
    lane = followed ? task_take(thread, task) : NULL;
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
        lane_release(thread->ledger, previous);
    }
}

Lane *
lane_follow(Thread *thread, bool entering)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    int64_t began = ledger_time(thread->ledger);
    thread->context_ver = thread->tstate->context_ver;
    PyObject *task = running_task(thread->ledger);
    Lane *lane = task ? task_lane(thread, task, entering) : thread->base;
    /* The end of a span was read before: the time since is its parent's. */
    const Entry *top = thread->lane->top;
    book_own(thread->ledger, (entering || top == thread->lane->stack ? top : top - 1)->node, began);
    if (lane != thread->lane) {
        run_lane(thread, lane, ledger_time(thread->ledger));
    }
    PyErr_Restore(type, value, traceback);
    return thread->lane;
}

/* NULL without an exception if there is no such attribute. */
static PyObject *
look_up(PyObject *object, PyObject *attribute)
{
    PyObject *found = NULL;
#if PY_VERSION_HEX >= 0x030D0000
    int answer = PyObject_GetOptionalAttr(object, attribute, &found);
#else
    int answer = _PyObject_LookupAttr(object, attribute, &found);
#endif
    if (answer < 0) {
        PyErr_Clear();
    }
    return found;
}

/* The object whose method a handle calls, borrowed from it. For a task's step it is the task. */
static PyObject *
called_by(PyObject *handle)
{
    static PyObject *callback_name, *self_name;
    if (self_name == NULL) {
        callback_name = PyUnicode_InternFromString("_callback");
        self_name = PyUnicode_InternFromString("__self__");
    }
    PyObject *callback = callback_name && self_name ? look_up(handle, callback_name) : NULL;
    PyObject *object = callback ? look_up(callback, self_name) : NULL;
    Py_XDECREF(callback);
    Py_XDECREF(object);
    return object;
}

/* An event loop is about to run a callback. Returns the lane with open spans that it interrupts, or NULL. Only a loop
 * inside another loop's callback interrupts one. */
Lane *
lane_step(Ledger *ledger, PyObject *handle)
{
    Thread *thread = thread_here(ledger);
    if (thread == NULL) {
        return NULL;
    }
    int64_t now = ledger_time(ledger);
    PyObject *object = called_by(handle);
    Lane *lane = object ? map_get(&ledger->tasks, (uintptr_t)object) : NULL;
    Lane *previous = thread->steps++ > 0 && thread->lane->top > thread->lane->stack ? thread->lane : NULL;
    charge(thread, now, true); /* the time since the last callback is the loop's */
    thread->between_steps = false;
    bool known = lane != NULL && lane->host == thread;
    run_lane(thread, known ? lane : thread->base, now);
    if (known) {
        /* The handle enters the callback's context once. So its spans need not find the running task. */
        thread->context_ver = thread->tstate->context_ver + 1;
    }
    book_own(ledger, thread->lane->top->node, now);
    return previous;
}

void
lane_step_end(Ledger *ledger, Lane *previous)
{
    Thread *thread = thread_here(ledger);
    if (thread == NULL) {
        return;
    }
    int64_t now = ledger_time(ledger);
    thread->steps -= thread->steps > 0;
    charge(thread, now, true);
    thread->between_steps = thread->steps == 0;
    run_lane(thread, previous != NULL && previous->host == thread ? previous : thread->base, now);
    Node *node = thread->base->top->node;
    node->cost += ledger->step_cost;
    book_own(ledger, node, now);
}
