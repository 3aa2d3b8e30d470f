/* Spans on an asynchronous device, through the interface of rlprof.ledger.device.Device. The device's own events
 * mark where a span begins and ends in its queue. They are queried later, and never waited for. */
#include "core.h"

#define MAX_PENDING 65536
#define RESOLVE_EVERY 256

void
device_detach(Ledger *ledger)
{
    ledger->mode &= ~MODE_DEVICE;
    Py_CLEAR(ledger->device);
    device_forget(ledger);
}

/* Earlier events, pending or at the start of an open span, are invalid from here on. */
void
device_forget(Ledger *ledger)
{
    ledger->device_epoch++;
    PyList_SetSlice(ledger->pending, 0, PY_SSIZE_T_MAX, NULL);
}

PyObject *
ledger_set_device(Ledger *ledger, PyObject *device)
{
    device_detach(ledger);
    if (device != Py_None) {
        ledger->device = Py_NewRef(device);
        ledger->mode |= MODE_DEVICE;
    }
    Py_RETURN_NONE;
}

/* A device that fails is not used again. */
static void
device_failed(Ledger *ledger, uint64_t epoch)
{
    complain(ledger, "the device failed; device time and memory are not recorded from here on");
    PyErr_Clear();
    if (epoch == ledger->device_epoch) {
        device_detach(ledger);
    }
}

/* Keeps a raised exception: a span may be ending because of it. */
static PyObject *
call_device(Ledger *ledger, const char *method)
{
    if (ledger->device == NULL) {
        return NULL;
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *device = Py_NewRef(ledger->device);
    PyObject *answer = PyObject_CallMethod(device, method, NULL);
    Py_DECREF(device);
    if (answer == NULL && !pass_on_interrupt()) {
        device_failed(ledger, ledger->device_epoch);
    }
    PyErr_Restore(type, value, traceback);
    return answer;
}

static int64_t
read_bytes(Ledger *ledger, const char *method)
{
    int overflow;
    PyObject *answer = call_device(ledger, method);
    int64_t bytes = answer != NULL && PyLong_Check(answer) ? PyLong_AsLongLongAndOverflow(answer, &overflow) : -1;
    Py_XDECREF(answer);
    return bytes;
}

/* Peaks are folded as in memory.c, because the device has one high-water mark. */
static int64_t
fold_peak(Ledger *ledger)
{
    int64_t peak = read_bytes(ledger, "peak");
    for (uint32_t i = 0; i < ledger->lanes_used; i++) {
        Lane *lane = ledger->lanes[i];
        for (Entry *entry = lane->stack + 1; entry <= lane->top; entry++) {
            if ((entry->span->flags & SPAN_MEMORY) && entry->device_peak >= 0) {
                entry->device_peak = larger(entry->device_peak, peak);
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
        entry->device_start = entry->device_peak = read_bytes(ledger, "reset_peak");
    }
    entry->device_event = call_device(ledger, "record");
}

static void
measure_peak(Ledger *ledger, Entry *entry)
{
    bool tracked = (entry->span->flags & SPAN_MEMORY) && entry->device_peak >= 0;
    int64_t peak = tracked ? fold_peak(ledger) : -1;
    if (peak >= 0) {
        Node *node = entry->node;
        peak = larger(peak, entry->device_peak);
        node->device_peak = larger(node->device_peak, peak);
        node->device_rise = larger(node->device_rise, peak - entry->device_start);
    }
}

void
device_exit(Ledger *ledger, Entry *entry)
{
    PyObject *end = call_device(ledger, "record");
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
    if (waiting > MAX_PENDING && !ledger->resolving) {
        PyList_SetSlice(ledger->pending, 0, 1, NULL);
        ledger->device_lost++;
    }
}

/* Events pass in the order of the queue, so the first pending one ends the search. */
void
device_resolve(Ledger *ledger)
{
    if (ledger->resolving) {
        return; /* called from the device's own code, or by another thread meanwhile */
    }
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_ssize_t done = 0;
    uint64_t epoch = ledger->device_epoch;
    ledger->resolving = true;
    while (epoch == ledger->device_epoch && ledger->device != NULL && done < PyList_GET_SIZE(ledger->pending)) {
        PyObject *span = Py_NewRef(PyList_GET_ITEM(ledger->pending, done));
        PyObject *device = Py_NewRef(ledger->device);
        unsigned long id = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(span, 0));
        PyObject *elapsed = PyObject_CallMethod(device, "elapsed_ns", "OO", PyTuple_GET_ITEM(span, 1),
                                                PyTuple_GET_ITEM(span, 2));
        Py_DECREF(device);
        Py_DECREF(span);
        if (elapsed == NULL && pass_on_interrupt()) {
            break;
        }
        int64_t ns = elapsed == NULL || elapsed == Py_None ? 0 : PyLong_AsLongLong(elapsed);
        if (PyErr_Occurred()) {
            Py_XDECREF(elapsed);
            device_failed(ledger, epoch);
            break;
        }
        bool passed = elapsed != Py_None;
        Py_DECREF(elapsed);
        if (!passed || epoch != ledger->device_epoch) {
            break;
        }
        if (id < ledger->nodes_used) {
            ledger->nodes[id]->device_time += ns;
            ledger->nodes[id]->device_calls++;
        }
        done++;
    }
    ledger->resolving = false;
    if (done > 0 && epoch == ledger->device_epoch) {
        PyList_SetSlice(ledger->pending, 0, done, NULL);
    }
    PyErr_Restore(type, value, traceback);
}
