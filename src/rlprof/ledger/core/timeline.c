/* The timeline: a ring of the last spans that ended. records.h has the layout of an event. */
#include "core.h"

int
timeline_open(Ledger *ledger, Py_ssize_t capacity)
{
    Timeline *timeline = &ledger->timeline;
    free(timeline->events);
    *timeline = (Timeline){NULL, 0, 0, 0};
    ledger->mode &= ~MODE_TIMELINE;
    if (capacity <= 0) {
        return 0;
    }
    if ((size_t)capacity > SIZE_MAX / 4 / sizeof *timeline->events) { /* rounded up, still a size */
        PyErr_NoMemory();
        return -1;
    }
    uint64_t rounded = 1;
    while (rounded < (uint64_t)capacity) {
        rounded *= 2;
    }
    timeline->events = malloc(rounded * sizeof *timeline->events);
    if (timeline->events == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    timeline->capacity = rounded;
    ledger->mode |= MODE_TIMELINE;
    return 0;
}

/* Returns (bytes of the events since the last drain, oldest first; how many were overwritten before they were read). */
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
