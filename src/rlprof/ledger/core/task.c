/* asyncio: one lane a task, followed by the context of the thread and the callbacks of its event loop. */
#include "core.h"

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
