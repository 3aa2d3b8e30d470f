/* A page of shared memory, its lock, and its members: see sharing.h. */
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPINS 64              /* a holder that runs is out again by then */
#define PATIENCE_NS 200000000 /* for one that does not run: long for 50 ns of work, short for a training */

int
page_open(Membership *member, const char *path, bool create)
{
    int file = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL : 0), 0600);
    if (file < 0) {
        return -1;
    }
    if (create && ftruncate(file, sizeof(Page)) < 0) {
        close(file);
        return -1;
    }
    /* A file that is too short would end the process at the first access. */
    off_t size = lseek(file, 0, SEEK_END);
    Page *page = size < (off_t)sizeof(Page)
                     ? MAP_FAILED
                     : mmap(NULL, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    int error = size < (off_t)sizeof(Page) ? EINVAL : errno;
    close(file);
    if (page != MAP_FAILED && !create && __atomic_load_n(&page->magic, __ATOMIC_ACQUIRE) != PAGE_MAGIC) {
        munmap(page, sizeof(Page));
        page = MAP_FAILED;
        error = EINVAL;
    }
    if (page == MAP_FAILED) {
        errno = error;
        return -1;
    }
    *member = (Membership){.page = page};
    if (page_take_slot(member) < 0) {
        munmap(page, sizeof(Page));
        *member = (Membership){0};
        errno = ENOSPC;
        return -1;
    }
    return 0;
}

void
page_close(Membership *member)
{
    if (member->page != NULL) {
        munmap(member->page, sizeof(Page));
    }
    *member = (Membership){0};
}

int
page_take_slot(Membership *member)
{
    int32_t pid = getpid();
    member->slot = NULL;
    member->depth = 0;
    for (Slot *slot = member->page->slots; slot < member->page->slots + PAGE_SLOTS; slot++) {
        int32_t free = 0;
        if (slot->pid == 0 &&
            __atomic_compare_exchange_n(&slot->pid, &free, pid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            slot->workers = 0;
            member->slot = slot;
            return 0;
        }
    }
    return -1;
}

/* Nobody sleeps or runs Python inside, so whoever holds it for long is dead, stopped or without a core. */
static SLOW_PATH bool
lock_patiently(int32_t *lock, int32_t pid)
{
    int64_t since = clock_monotonic();
    for (;;) {
        int32_t holder = 0;
        if (__atomic_compare_exchange_n(lock, &holder, pid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return true;
        }
        if (kill(holder, 0) < 0 && errno == ESRCH) {
            if (__atomic_compare_exchange_n(lock, &holder, pid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
                return true;
            }
        }
        if (clock_monotonic() - since > PATIENCE_NS) {
            return false;
        }
        sched_yield();
    }
}

bool
page_lock(Membership *member)
{
    if (member->depth++ > 0) {
        return true;
    }
    int32_t *lock = &member->page->lock;
    int32_t pid = member->slot->pid;
    for (int i = 0; i < SPINS; i++) {
        int32_t holder = 0;
        if (LIKELY(__atomic_compare_exchange_n(lock, &holder, pid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))) {
            return true;
        }
    }
    return lock_patiently(lock, pid);
}

void
page_unlock(Membership *member)
{
    if (--member->depth == 0) {
        __atomic_store_n(&member->page->lock, 0, __ATOMIC_RELEASE);
    }
}

/* ---- what the ledger does with it ---- */

void
sharing_enter(Ledger *ledger)
{
    if (!page_lock(&ledger->member)) {
        sharing_leave(ledger);
        complain(ledger, "another process stopped while it shared the ledger's clock; from here on, waits stay with the "
                         "waiting span");
    }
}

/* Goes on alone: what the others do is no longer seen, nor is what happens here. */
void
sharing_leave(Ledger *ledger)
{
    if (ledger->member.page != NULL) {
        ledger->alone = ledger->member.page->sharing;
        ledger->alone.workers = ledger->member.slot ? ledger->member.slot->workers : 0;
        ledger->sharing = &ledger->alone;
        page_close(&ledger->member);
    }
}

/* In a forked child: a member of its own. */
void
sharing_after_fork(Ledger *ledger)
{
    if (ledger->member.page == NULL) {
        ledger->alone.workers = 0;
        ledger->alone.waiting = false;
    }
    else if (page_take_slot(&ledger->member) < 0) {
        sharing_leave(ledger);
        ledger->alone.workers = 0;
        ledger->alone.waiting = false;
    }
}

/* share(path, create): the driver's process creates the page, the others join. Recording must be off. */
PyObject *
ledger_share(Ledger *ledger, PyObject *args)
{
    PyObject *path;
    int create;
    if (!PyArg_ParseTuple(args, "O&p", PyUnicode_FSConverter, &path, &create)) {
        return NULL;
    }
    int opened = -1;
    if (ledger->member.page == NULL && !(ledger->mode & MODE_ENABLED)) {
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
    ledger->sharing = &page->sharing;
    if (create) {
        page->clock = ledger->clock;
        __atomic_store_n(&page->magic, PAGE_MAGIC, __ATOMIC_RELEASE);
    }
    else {
        ledger->clock = page->clock;
        if (ledger_follow_other(ledger) < 0) {
            return PyErr_NoMemory();
        }
    }
    ledger->given_mark = ledger->given_before = page->sharing.given;
    Py_RETURN_NONE;
}

/* The processes that take part, this one included. */
PyObject *
ledger_members(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    PyObject *found = PyList_New(0);
    for (int i = 0; found != NULL && ledger->member.page != NULL && i < PAGE_SLOTS; i++) {
        int32_t pid = ledger->member.page->slots[i].pid;
        PyObject *number = pid ? PyLong_FromLong(pid) : NULL;
        if (pid && (number == NULL || PyList_Append(found, number) < 0)) {
            Py_CLEAR(found);
        }
        Py_XDECREF(number);
    }
    return found;
}

/* A process that has ended works no longer, whatever it did last. */
PyObject *
ledger_dismiss(Ledger *ledger, PyObject *number)
{
    long pid = PyLong_AsLong(number);
    if (pid == -1 && PyErr_Occurred()) {
        return NULL;
    }
    Page *page = ledger->member.page;
    for (int i = 0; page != NULL && i < PAGE_SLOTS; i++) {
        Slot *slot = &page->slots[i];
        if (slot->pid != pid || pid == 0) {
            continue;
        }
        sharing_lock(ledger);
        if (ledger->member.page == NULL) {
            break;
        }
        attribution_advance(ledger, clock_now(&ledger->clock));
        page->sharing.workers -= slot->workers;
        slot->workers = 0;
        __atomic_store_n(&slot->pid, 0, __ATOMIC_RELEASE);
        sharing_unlock(ledger);
    }
    Py_RETURN_NONE;
}
