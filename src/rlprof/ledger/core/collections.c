/* Counts and times the runs of Python's garbage collector. gc.callbacks holds the method `collected` of the ledger.
 *
 * It is in C because Python code in a callback could switch threads or run signal handlers in the middle of a
 * collection. */
#include "core.h"

/* collected(phase, info): as Python calls the functions in gc.callbacks. The interpreter's lock is held throughout. */
PyObject *
ledger_collected(Ledger *ledger, PyObject *const *args, Py_ssize_t count)
{
    Collections *seen = &ledger->collections;
    if (count != 2 || !(ledger->mode & MODE_ENABLED) || !PyUnicode_Check(args[0]) || !PyDict_Check(args[1])) {
        Py_RETURN_NONE;
    }
    if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
        seen->began = clock_now(&ledger->clock);
        seen->runs = true;
        Py_RETURN_NONE;
    }
    PyObject *number = PyDict_GetItemString(args[1], "generation"); /* borrowed, as the next one */
    PyObject *freed = PyDict_GetItemString(args[1], "collected");
    long generation = number != NULL && PyLong_Check(number) ? PyLong_AsLong(number) : -1;
    if (seen->runs && generation >= 0 && generation < GENERATIONS) {
        Generation *of = &seen->of[generation];
        int64_t spent = clock_now(&ledger->clock) - seen->began;
        of->count++;
        of->ns += spent;
        of->longest = spent > of->longest ? spent : of->longest;
        of->freed += freed != NULL && PyLong_Check(freed) ? PyLong_AsLongLong(freed) : 0;
    }
    seen->runs = false;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* The training begins: what was collected before belongs to start-up. */
void
collections_begin(Ledger *ledger)
{
    for (int i = 0; i < GENERATIONS; i++) {
        Generation *of = &ledger->collections.of[i];
        ledger->collections.before[i] += of->ns;
        *of = (Generation){0};
    }
}

/* collections(): since the training began, per generation (count, ns, longest ns, objects freed, ns before that). */
PyObject *
ledger_collections(const Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list != NULL && i < GENERATIONS; i++) {
        const Generation *of = &ledger->collections.of[i];
        PyObject *row = Py_BuildValue("LLLLL", (long long)of->count, (long long)of->ns, (long long)of->longest,
                                      (long long)of->freed, (long long)ledger->collections.before[i]);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}
