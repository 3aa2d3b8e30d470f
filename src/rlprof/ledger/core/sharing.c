/* A ledger among others: joining a page, leaving it, and the other members. */
#include "core.h"

#include <errno.h>

/* From here on this process and the others no longer see each other. Waits of a driver stay with the waiting span. In a
 * worker's process no driver waits any more. */
static void
stop_sharing(Ledger *ledger)
{
    Page *page = ledger->member.page;
    ledger->unshared = page->sharing;
    ledger->unshared.workers = ledger->member.slot ? ledger->member.slot->workers : 0;
    if (ledger->elsewhere) {
        ledger->unshared.waiting = false;
    }
    else {
        __atomic_store_n(&page->sharing.waiting, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&page->driver, 0, __ATOMIC_RELAXED);
    }
    ledger->sharing = &ledger->unshared;
    page_close(&ledger->member);
}

void
sharing_enter(Ledger *ledger)
{
    if (!page_lock(&ledger->member)) {
        stop_sharing(ledger);
        complain(ledger, "another process stopped while it held the lock of the shared clock; from here on, waits "
                         "stay with the waiting span");
    }
}

/* A forked child is a member of its own. */
void
sharing_after_fork(Ledger *ledger)
{
    if (ledger->member.page != NULL && page_take_slot(&ledger->member) < 0) {
        ledger->elsewhere = true; /* the page belongs to another process: do not change its driver */
        stop_sharing(ledger);
    }
    ledger->supervises = ledger->learned = false;
    ledger->begun = ledger->member.page ? ledger->member.page->beginning.count : 0;
    if (ledger->member.page == NULL) {
        ledger->unshared.workers = 0;
        ledger->unshared.waiting = false;
    }
}

/* A reset here. In the driver's process, it also resets all others. */
void
sharing_begin_anew(Ledger *ledger)
{
    Page *page = ledger->member.page;
    if (page != NULL) {
        ledger->epoch = ledger->elsewhere ? page->epoch : ++page->epoch;
    }
}

/* share(path, create): the driver's process creates the page, at any time. The others join before they record. */
PyObject *
ledger_share(Ledger *ledger, PyObject *args)
{
    PyObject *path;
    int create;
    if (!PyArg_ParseTuple(args, "O&p", PyUnicode_FSConverter, &path, &create)) {
        return NULL;
    }
    int opened = -1;
    if (ledger->member.page == NULL && (create || !(ledger->mode & MODE_ENABLED))) {
        opened = page_open(&ledger->member, PyBytes_AS_STRING(path), create);
    }
    else {
        errno = EBUSY;
    }
    if (opened < 0) {
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, PyBytes_AS_STRING(path));
        Py_DECREF(path);
        return NULL;
    }
    Py_DECREF(path);
    Page *page = ledger->member.page;
    if (create) {
        page->clock = ledger->clock;
        page->sharing = ledger->unshared;
        page->sharing.waiting = ledger->unshared.waiting && (ledger->mode & MODE_ENABLED);
        page->driver = ledger->member.pid;
        ledger->member.slot->workers = ledger->unshared.workers;
        ledger->sharing = &page->sharing;
        __atomic_store_n(&page->magic, PAGE_MAGIC, __ATOMIC_RELEASE);
        Py_RETURN_NONE;
    }
    ledger->sharing = &page->sharing;
    ledger->clock = page->clock;
    ledger->given_mark = ledger->given_before = page->sharing.given;
    ledger->epoch = page->epoch;
    ledger->begun = page->beginning.count;
    return ledger_follow_other(ledger) < 0 ? PyErr_NoMemory() : Py_NewRef(Py_None);
}

/* leave(): stops sharing; this process has its own driver again. When the driver's process leaves, all sharing ends. */
PyObject *
ledger_leave(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    Thread *driver = ledger->elsewhere ? thread_here(ledger) : ledger->driver;
    sharing_lock(ledger);
    if (ledger->member.page == NULL || driver == NULL) {
        sharing_unlock(ledger);
        Py_RETURN_NONE;
    }
    int64_t now = ledger_time(ledger);
    if (ledger->mode & MODE_ENABLED) {
        now = settle(ledger, now);
    }
    Slot *slot = ledger->member.slot;
    int32_t working = slot->workers;
    ledger->sharing->workers -= working;
    slot->workers = slot->listens = 0; /* it stays a member, so that its last records are collected */
    if (!ledger->elsewhere) {
        ledger->member.page->driver = 0;
    }
    sharing_unlock(ledger);
    wake_listeners(ledger->member.page);
    stop_sharing(ledger);
    ledger->unshared.workers = working;
    ledger->given_mark = ledger->unshared.given;
    if (ledger->elsewhere) {
        ledger_follow_own(ledger, driver, now);
    }
    Py_RETURN_NONE;
}

static PyObject *
members_that(Ledger *ledger, bool (*wanted)(int32_t pid))
{
    PyObject *found = PyList_New(0);
    for (int i = 0; found != NULL && ledger->member.page != NULL && i < PAGE_SLOTS; i++) {
        int32_t pid = ledger->member.page->slots[i].pid;
        if (pid == 0 || (wanted != NULL && !wanted(pid))) {
            continue;
        }
        PyObject *number = PyLong_FromLong(pid);
        if (number == NULL || PyList_Append(found, number) < 0) {
            Py_CLEAR(found);
        }
        Py_XDECREF(number);
    }
    return found;
}

/* members(): the processes that share, with this one. */
PyObject *
ledger_members(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    return members_that(ledger, NULL);
}

/* ended(): the members that no longer run. */
PyObject *
ledger_ended(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    return members_that(ledger, process_ended);
}

/* dismiss(pid): removes a process that has ended. It may have died between two writes, so all working threads are
 * counted anew. */
PyObject *
ledger_dismiss(Ledger *ledger, PyObject *number)
{
    long pid = PyLong_AsLong(number);
    if (pid == -1 && PyErr_Occurred()) {
        return NULL;
    }
    sharing_lock(ledger);
    Page *page = ledger->member.page;
    if (page != NULL && pid > 0 && pid != ledger->member.pid) {
        attribution_advance(ledger, not_before(ledger, clock_now(&ledger->clock)));
        page->sharing.workers = 0;
        for (int i = 0; i < PAGE_SLOTS; i++) {
            Slot *slot = &page->slots[i];
            if (slot->pid == pid) {
                slot->workers = 0;
                __atomic_store_n(&slot->pid, 0, __ATOMIC_RELEASE);
            }
            page->sharing.workers += slot->pid ? slot->workers : 0;
        }
    }
    sharing_unlock(ledger);
    Py_RETURN_NONE;
}
