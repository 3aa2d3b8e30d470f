/* Switching the recording on and off, resets, and forked children. */
#include "core.h"

/* For the other processes, which now begin or cease to see this one's threads. */
static void
restate_all(Ledger *ledger, int64_t now)
{
    sharing_lock(ledger);
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        thread->share_mark = ledger->sharing->share_clock;
        thread->cover_mark = ledger->sharing->wait_clock;
        restate(thread, now);
    }
    sharing_unlock(ledger);
}

PyObject *
ledger_start(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    if (ledger->mode & MODE_ENABLED) {
        Py_RETURN_NONE;
    }
    if (ledger->driver == NULL) {
        return PyErr_NoMemory();
    }
    int64_t now = clock_now(&ledger->clock);
    attribution_resume(ledger, now - ledger->stopped);
    ledger->iterations.start += now - ledger->stopped;
    ledger->started = now;
    ledger->left_open = 0;
    ledger->mode |= MODE_ENABLED;
    if (ledger->member.page != NULL) {
        restate_all(ledger, now);
    }
    if (ledger->driver->ident == PyThread_get_thread_ident()) {
        thread_here(ledger); /* follows its CPU time from the start and not from its first span */
    }
    Py_RETURN_NONE;
}

PyObject *
ledger_stop(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    if (!(ledger->mode & MODE_ENABLED)) {
        Py_RETURN_NONE;
    }
    sharing_lock(ledger);
    if (ledger->member.page != NULL && !ledger->elsewhere) {
        ledger->member.page->beginning.open = 0;
    }
    int64_t now = iteration_mark(ledger, clock_now(&ledger->clock), true); /* ends the open one; settles */
    ledger->wall += now - ledger->started;
    ledger->stopped = now;
    ledger->left_open = open_spans(ledger);
    for (Thread *thread = ledger->threads; thread != NULL; thread = thread->next) {
        thread->steps = 0; /* the ends of the callbacks that run now are not seen */
        thread->between_steps = false;
    }
    restate(ledger->driver, now);
    ledger->mode &= ~MODE_ENABLED;
    if (ledger->member.page != NULL) {
        restate_all(ledger, now);
    }
    sharing_unlock(ledger);
    Py_RETURN_NONE;
}

/* Open spans stay open and count from here. */
static void
begin_anew(Ledger *ledger)
{
    bool enabled = ledger->mode & MODE_ENABLED;
    int64_t now = ledger_time(ledger);
    sharing_lock(ledger);
    if (enabled) {
        now = settle(ledger, now);
    }
    tree_reset(ledger);
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        lane->stood.node = NULL;
        for (Entry *entry = lane->stack; entry <= lane->top; entry++) {
            entry->start = now;
        }
    }
    ledger->idle_rest = 0;
    if (!ledger->elsewhere) {
        ledger->sharing->share_rest = 0;
    }
    sharing_begin_anew(ledger);
    sharing_unlock(ledger);
    ledger->given_before = ledger->given_mark;
    ledger->wall = 0;
    ledger->started = now;
    ledger->device_lost = ledger->trained = 0;
    ledger->timeline.written = ledger->timeline.drained = 0;
    device_forget(ledger);
    iteration_reset(ledger, now);
    stacks_reset(ledger);
    ledger->collections = (Collections){0};
}

PyObject *
ledger_reset(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    begin_anew(ledger);
    Py_RETURN_NONE;
}

PyObject *
ledger_after_fork(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    ledger->startup = ledger->startup_rest = NULL;
    ledger->pulse = NULL; /* its thread would free it, but runs only in the parent: a few bytes are leaked */
    stacks_after_fork(ledger);
    threads_after_fork(ledger);
    ledger->left_open = 0;
    memory_after_fork(ledger);
    if (ledger->device != NULL) {
        device_detach(ledger); /* a device context does not survive a fork */
    }
    Py_XDECREF(ledger_watch(ledger, Py_None)); /* the watcher belongs to the parent */
    begin_anew(ledger);
    Py_RETURN_NONE;
}
