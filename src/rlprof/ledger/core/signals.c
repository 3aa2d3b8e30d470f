/* Signals whose Python handlers have not run yet.
 *
 * Python runs a handler between two instructions. If a signal arrives when the main thread is about to wait for a
 * lock, its handler runs only after the wait, which may never end. That is likely if a second thread, as rlprof's,
 * wants the interpreter's lock at that moment. Without rlprof the process would have died. So arrivals are noted
 * here, and rlprof sends a signal again whose handler has not run, which interrupts the wait. */
#include "core.h"

#include <errno.h>
#include <signal.h>

#define MAX_SIGNAL 64

static volatile sig_atomic_t arrived[MAX_SIGNAL + 1];
static struct sigaction handlers[MAX_SIGNAL + 1]; /* Python's */

static void
note_and_hand_on(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    const struct sigaction *handler = &handlers[number];
    arrived[number] = 1;
    if (handler->sa_flags & SA_SIGINFO) {
        handler->sa_sigaction(number, info, context);
    }
    else if (handler->sa_handler != SIG_DFL && handler->sa_handler != SIG_IGN) {
        handler->sa_handler(number);
    }
    errno = saved;
}

static int
signal_number(PyObject *argument)
{
    long number = PyLong_AsLong(argument);
    if (number >= 1 && number <= MAX_SIGNAL) {
        return (int)number;
    }
    if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_ValueError, "%ld is no signal", number);
    }
    return -1;
}

PyObject *
signal_follow(PyObject *Py_UNUSED(module), PyObject *argument)
{
    int number = signal_number(argument);
    struct sigaction handler;
    if (number < 0 || sigaction(number, NULL, &handler) < 0) {
        return number < 0 ? NULL : PyErr_SetFromErrno(PyExc_OSError);
    }
    arrived[number] = 0;
    if (!(handler.sa_flags & SA_SIGINFO) || handler.sa_sigaction != note_and_hand_on) {
        handlers[number] = handler;
        handler.sa_sigaction = note_and_hand_on;
        handler.sa_flags |= SA_SIGINFO;
        if (sigaction(number, &handler, NULL) < 0) {
            return PyErr_SetFromErrno(PyExc_OSError);
        }
    }
    Py_RETURN_NONE;
}

PyObject *
signal_seen(PyObject *Py_UNUSED(module), PyObject *argument)
{
    int number = signal_number(argument);
    if (number < 0) {
        return NULL;
    }
    arrived[number] = 0;
    Py_RETURN_NONE;
}

PyObject *
signal_unseen(PyObject *Py_UNUSED(module), PyObject *argument)
{
    int number = signal_number(argument);
    return number < 0 ? NULL : PyBool_FromLong(arrived[number]);
}
