/* The timeline: a ring of the last spans that ended. records.h has the layout of an event. */
#include "core.h"

/* timeline(capacity): keeps the last so many spans as events; 0: none. */
PyObject *
ledger_timeline(Ledger *ledger, PyObject *number)
{
    Py_ssize_t capacity = PyLong_AsSsize_t(number);
    if (capacity == -1 && PyErr_Occurred()) {
        return NULL;
    }
    Timeline *timeline = &ledger->timeline;
    free(timeline->events);
    *timeline = (Timeline){NULL, 0, 0, 0};
    ledger->mode &= ~MODE_TIMELINE;
    if (capacity > 0) {
        uint64_t rounded = 1;
        while (rounded < (uint64_t)capacity) {
            rounded *= 2;
        }
        timeline->events = calloc(rounded, sizeof *timeline->events);
        if (timeline->events == NULL) {
            return PyErr_NoMemory();
        }
        timeline->capacity = rounded;
        ledger->mode |= MODE_TIMELINE;
    }
    Py_RETURN_NONE;
}

/* Returns the packed events since the last drain, oldest first, and how many were overwritten before. */
PyObject *
timeline_drain(Ledger *ledger)
{
    Timeline *timeline = &ledger->timeline;
    uint64_t from = timeline->drained;
    uint64_t lost = 0;
    if (timeline->written - from > timeline->capacity) {
        lost = timeline->written - timeline->capacity - from;
        from += lost;
    }
    uint64_t count = timeline->written - from;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(TimelineEvent)));
    if (bytes == NULL) {
        return NULL;
    }
    TimelineEvent *out = (TimelineEvent *)PyBytes_AS_STRING(bytes);
    for (uint64_t i = 0; i < count; i++) {
        out[i] = timeline->events[(from + i) & (timeline->capacity - 1)];
    }
    timeline->drained = timeline->written;
    return Py_BuildValue("(NK)", bytes, (unsigned long long)lost);
}
