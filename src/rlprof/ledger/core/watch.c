/* A watcher that every span is reported to, for as long as a torch trace or the profile of a phase is recorded. Otherwise no
 * span pays for it: it is one more bit in the mask that the hot path looks at. */
#include "core.h"

/* A span has begun or ended. Runs Python code, with the exception that ends the span laid aside. */
void
watch_tell(Ledger *ledger, const Span *span, bool begins)
{
    if (ledger->watcher == NULL || ledger->telling) {
        return; /* the watcher's own spans are not reported */
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *watcher = Py_NewRef(ledger->watcher);
    ledger->telling = true;
    PyObject *answer =
        PyObject_CallFunctionObjArgs(watcher, span->operation->name, begins ? Py_True : Py_False, NULL);
    ledger->telling = false;
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

/* watch(watcher): it is called with an operation's name, and whether a span of it begins; None ends that. */
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

/* open_operations(): of the spans that are open on the calling thread's lane, the outermost first. */
PyObject *
ledger_open_operations(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    PyObject *names = PyList_New(0);
    Thread *thread = ledger->mode & MODE_ENABLED ? thread_known(ledger) : NULL;
    const Lane *lane = thread ? thread->lane : NULL;
    for (const Entry *entry = lane ? lane->stack + 1 : NULL; names != NULL && lane != NULL && entry <= lane->top; entry++) {
        if (PyList_Append(names, entry->span->operation->name) < 0) {
            Py_CLEAR(names);
        }
    }
    return names;
}
