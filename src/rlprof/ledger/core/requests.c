/* Once a second the driver's process requests the records of the others, so that a session shows one moment.
 *
 * It increases a counter on the page. A thread in each other process sleeps until that happens. */
#include "core.h"

#include <errno.h>
#if defined(__linux__)
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define LOOK_NS 500000   /* how often the driver looks for the answers */
#define POLL_NS 50000000 /* how often the others look, where they cannot be woken */
#define MOST_SECONDS 3600.0

void
wake_listeners(Page *page)
{
    __atomic_add_fetch(&page->requests, 1, __ATOMIC_RELEASE);
#if defined(__linux__)
    syscall(SYS_futex, &page->requests, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
#endif
}

static void
wait_for_more(Page *page, uint32_t seen, int64_t ns)
{
#if defined(__linux__)
    struct timespec pause = {ns / 1000000000, ns % 1000000000};
    syscall(SYS_futex, &page->requests, FUTEX_WAIT, seen, &pause, NULL, 0);
#else
    (void)page, (void)seen;
    sleep_ns(ns < POLL_NS ? ns : POLL_NS);
#endif
}

static bool
all_answered(const Page *page, uint32_t request)
{
    for (int i = 0; i < PAGE_SLOTS; i++) {
        const Slot *slot = &page->slots[i];
        if (slot->pid != 0 && __atomic_load_n(&slot->listens, __ATOMIC_ACQUIRE) &&
            __atomic_load_n(&slot->answered, __ATOMIC_ACQUIRE) != request) {
            return false;
        }
    }
    return true;
}

static int
seconds_to_ns(PyObject *number, int64_t *ns)
{
    double seconds = PyFloat_AsDouble(number);
    if (seconds == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    seconds = seconds > 0.0 ? seconds : 0.0; /* 0 for a NaN, too */
    *ns = (int64_t)((seconds < MOST_SECONDS ? seconds : MOST_SECONDS) * 1e9);
    return 0;
}

/* request(seconds): requests the records. Returns True if all that listen have answered within that time. */
PyObject *
ledger_request(Ledger *ledger, PyObject *number)
{
    int64_t patience;
    if (seconds_to_ns(number, &patience) < 0) {
        return NULL;
    }
    Page *page = ledger->member.page;
    if (page == NULL) {
        Py_RETURN_TRUE;
    }
    wake_listeners(page);
    uint32_t request = __atomic_load_n(&page->requests, __ATOMIC_RELAXED);
    int64_t until = clock_monotonic() + patience;
    bool answered = all_answered(page, request);
    while (!answered && clock_monotonic() < until) {
        Py_BEGIN_ALLOW_THREADS
        sleep_ns(LOOK_NS);
        Py_END_ALLOW_THREADS
        if (ledger->member.page != page) {
            break; /* another thread has stopped the sharing */
        }
        answered = all_answered(page, request);
    }
    return PyBool_FromLong(answered);
}

/* listen(seconds): waits for a request. Returns the driver's epoch; -1 if the driver is gone; None without a
 * request. The page is never unmapped while this waits: only a process that leaves unmaps it, and it wakes its
 * listener first. */
PyObject *
ledger_listen(Ledger *ledger, PyObject *number)
{
    int64_t ns;
    if (seconds_to_ns(number, &ns) < 0) {
        return NULL;
    }
    Page *page = ledger->member.page;
    if (page == NULL) {
        return PyLong_FromLong(-1);
    }
    Slot *slot = ledger->member.slot;
    __atomic_store_n(&slot->listens, 1, __ATOMIC_RELEASE);
    uint32_t requests = __atomic_load_n(&page->requests, __ATOMIC_ACQUIRE);
    if (requests == slot->answered && page->driver != 0) {
        Py_BEGIN_ALLOW_THREADS
        wait_for_more(page, requests, ns);
        Py_END_ALLOW_THREADS
    }
    if (ledger->member.page != page || page->driver == 0) {
        return PyLong_FromLong(-1);
    }
    requests = __atomic_load_n(&page->requests, __ATOMIC_ACQUIRE);
    if (requests == slot->answered) {
        return process_ended(page->driver) ? PyLong_FromLong(-1) : Py_NewRef(Py_None);
    }
    ledger->request = requests;
    return PyLong_FromUnsignedLong(page->epoch);
}

PyObject *
ledger_answer(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    if (ledger->member.page != NULL) {
        __atomic_store_n(&ledger->member.slot->answered, ledger->request, __ATOMIC_RELEASE);
    }
    Py_RETURN_NONE;
}
