/* A function that every span is reported to, while a torch trace or the profile of a phase is recorded. At other
 * times no span pays for it: it is one more bit in the mask that the hot path tests. */
#include "core.h"

/* A span has begun or ended. Runs Python code, so the exception that ends the span is set aside. */
void
watch_report(Ledger *ledger, const Span *span, bool begins)
{
    if (ledger->watcher == NULL || ledger->reporting) {
        return; /* the watcher's own spans are not reported */
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *watcher = Py_NewRef(ledger->watcher);
    ledger->reporting = true;
    PyObject *answer =
        PyObject_CallFunctionObjArgs(watcher, span->operation->name, begins ? Py_True : Py_False, NULL);
    ledger->reporting = false;
    if (answer == NULL && !pass_on_interrupt()) {
        complain(ledger, "the watcher of spans has failed and is no longer called");
        PyErr_Clear();
        ledger->mode &= ~MODE_WATCHED;
        Py_CLEAR(ledger->watcher);
    }
    Py_XDECREF(answer);
    Py_DECREF(watcher);
    PyErr_Restore(type, value, traceback);
}

/* watch(watcher): called with an operation's name, and True if a span of it begins; None ends that. */
PyObject *
ledger_watch(Ledger *ledger, PyObject *watcher)
{
    ledger->mode &= ~MODE_WATCHED;
    Py_XSETREF(ledger->watcher, watcher == Py_None ? NULL : Py_NewRef(watcher));
    if (ledger->watcher != NULL) {
        ledger->mode |= MODE_WATCHED;
    }
    Py_RETURN_NONE;
}

/* open_operations(): names of the open spans on the calling thread's lane, the outermost first. */
PyObject *
ledger_open_operations(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    PyObject *names = PyList_New(0);
    Thread *thread = ledger->mode & MODE_ENABLED ? thread_known(ledger) : NULL;
    Py_ssize_t open = thread ? thread->lane->top - thread->lane->stack : 0;
    for (Py_ssize_t i = 1; names != NULL && i <= open; i++) {
        if (PyList_Append(names, thread->lane->stack[i].span->operation->name) < 0) {
            Py_CLEAR(names);
        }
    }
    return names;
}

PyObject *
ledger_depth(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    Thread *thread = ledger->mode & MODE_ENABLED ? thread_known(ledger) : NULL;
    return PyLong_FromSsize_t(thread ? thread->lane->top - thread->lane->stack : 0);
}
