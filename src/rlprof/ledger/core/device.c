/* Spans on an asynchronous device, through the interface of rlprof.ledger.device.Device: the device's own events mark
 * where a span begins and ends in its queue. They are asked later whether they have passed, and never waited for. */
#include "core.h"

#define MAX_PENDING 65536
#define RESOLVE_EVERY 256

void
device_detach(Ledger *ledger)
{
    ledger->mode &= ~MODE_DEVICE;
    Py_CLEAR(ledger->device);
    PyList_SetSlice(ledger->pending, 0, PY_SSIZE_T_MAX, NULL);
}

/* A device that fails is not asked again. Keeps a raised exception: a span may be ending because of one. */
static PyObject *
ask(Ledger *ledger, const char *method)
{
    if (ledger->device == NULL) {
        return NULL;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *answer = PyObject_CallMethod(ledger->device, method, NULL);
    if (answer == NULL) {
        complain(ledger, "the device failed; device time and memory are not recorded from here on");
        PyErr_Clear();
        device_detach(ledger);
    }
    PyErr_Restore(type, value, traceback);
    return answer;
}

static int64_t
ask_bytes(Ledger *ledger, const char *method)
{
    PyObject *answer = ask(ledger, method);
    if (answer == NULL) {
        return -1;
    }
    int64_t bytes = PyLong_AsLongLong(answer);
    PyErr_Clear();
    Py_DECREF(answer);
    return bytes;
}

/* Peaks are folded as in memory.c: the device has one high-water mark. */
static int64_t
fold_peak(Ledger *ledger)
{
    int64_t peak = ask_bytes(ledger, "peak");
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        for (Entry *entry = lane->stack + 1; entry <= lane->top; entry++) {
            if ((entry->span->flags & SPAN_MEMORY) && entry->device_peak >= 0 && peak > entry->device_peak) {
                entry->device_peak = peak;
            }
        }
    }
    return peak;
}

void
device_enter(Ledger *ledger, Entry *entry)
{
    if (entry->span->flags & SPAN_MEMORY) {
        fold_peak(ledger);
        entry->device_start = entry->device_peak = ask_bytes(ledger, "reset_peak");
    }
    entry->device_event = ask(ledger, "record");
}

static void
measure_peak(Ledger *ledger, Entry *entry)
{
    if (!(entry->span->flags & SPAN_MEMORY) || entry->device_peak < 0 || fold_peak(ledger) < 0) {
        return;
    }
    Node *node = entry->node;
    if (entry->device_peak > node->device_peak) {
        node->device_peak = entry->device_peak;
    }
    if (entry->device_peak - entry->device_start > node->device_rise) {
        node->device_rise = entry->device_peak - entry->device_start;
    }
}

void
device_exit(Ledger *ledger, Entry *entry)
{
    PyObject *end = ask(ledger, "record");
    measure_peak(ledger, entry);
    if (end == NULL) {
        return;
    }
    PyObject *span = Py_BuildValue("(IOO)", entry->node->id, entry->device_event, end);
    Py_DECREF(end);
    if (span == NULL || PyList_Append(ledger->pending, span) < 0) {
        PyErr_Clear();
        ledger->device_lost++;
    }
    Py_XDECREF(span);
    Py_ssize_t waiting = PyList_GET_SIZE(ledger->pending);
    if (waiting % RESOLVE_EVERY == 0) {
        device_resolve(ledger);
    }
    if (waiting > MAX_PENDING) {
        PyList_SetSlice(ledger->pending, 0, 1, NULL);
        ledger->device_lost++;
    }
}

/* Events pass in the order of the queue, so the first that has not passed ends the search. */
void
device_resolve(Ledger *ledger)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_ssize_t done = 0;
    while (ledger->device != NULL && done < PyList_GET_SIZE(ledger->pending)) {
        PyObject *span = Py_NewRef(PyList_GET_ITEM(ledger->pending, done));
        unsigned long id = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(span, 0));
        PyObject *elapsed = PyObject_CallMethod(ledger->device, "elapsed_ns", "OO", PyTuple_GET_ITEM(span, 1),
                                                PyTuple_GET_ITEM(span, 2));
        Py_DECREF(span);
        if (elapsed == NULL) {
            complain(ledger, "the device failed; device time and memory are not recorded from here on");
            PyErr_Clear();
            device_detach(ledger);
            done = 0;
            break;
        }
        if (elapsed == Py_None) {
            Py_DECREF(elapsed);
            break;
        }
        if (id < ledger->nodes_used) {
            ledger->nodes[id]->device_time += PyLong_AsLongLong(elapsed);
            ledger->nodes[id]->device_calls++;
            PyErr_Clear();
        }
        Py_DECREF(elapsed);
        done++;
    }
    if (done > 0) {
        PyList_SetSlice(ledger->pending, 0, done, NULL);
    }
    PyErr_Restore(type, value, traceback);
}
