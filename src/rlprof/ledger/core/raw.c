/* Everything the ledger holds, as plain Python data. rlprof.ledger.snapshot gives it names; the Python twin makes the
 * same, and tests compare the two. */
#include "core.h"

/* HISTOGRAM ENCODING, little-endian: n uint16 buckets in order, then as many uint64 counts. As a dict, the histograms
 * were most of what a flush costs the training. */
static PyObject *
histogram_packed(const Histogram *histogram)
{
    uint16_t buckets[HISTOGRAM_OCTAVES * HISTOGRAM_SUB];
    uint64_t counts[HISTOGRAM_OCTAVES * HISTOGRAM_SUB];
    size_t used = 0;
    for (int bucket = 0; bucket < HISTOGRAM_OCTAVES * HISTOGRAM_SUB; bucket++) {
        if (histogram->octave[bucket / HISTOGRAM_SUB] == NULL) {
            bucket += HISTOGRAM_SUB - 1; /* an octave at a time */
            continue;
        }
        uint64_t count = histogram_count(histogram, bucket);
        if (count != 0) {
            buckets[used] = (uint16_t)bucket;
            counts[used++] = count;
        }
    }
    PyObject *packed = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(used * (sizeof *buckets + sizeof *counts)));
    if (packed != NULL) {
        char *bytes = PyBytes_AS_STRING(packed);
        memcpy(bytes, buckets, used * sizeof *buckets);
        memcpy(bytes + used * sizeof *buckets, counts, used * sizeof *counts);
    }
    return packed;
}

static PyObject *
node_tuple(const Node *node)
{
    return Py_BuildValue("(IiIiKLLLLLLLLLLLLLLKN)", node->id, node->parent ? (int)node->parent->id : -1,
                         node->lane->id, node->operation ? (int)node->operation->id : -1,
                         (unsigned long long)node->calls, node->busy, node->self, node_ledger(node),
                         node_overlapped(node), node->waited, node->off_cpu, node->cost, node->calls ? node->min : 0, node->max,
                         node->memory_peak, node->memory_rise, node->device_peak, node->device_rise,
                         node->device_time, (unsigned long long)node->device_calls,
                         histogram_packed(&node->durations));
}

static PyObject *
operation_tuple(const Operation *operation)
{
    return Py_BuildValue("(IOO)", operation->id, operation->name, operation->category);
}

static PyObject *
lane_tuple(const Lane *lane)
{
    return Py_BuildValue("(IsOOOK)", lane->id, lane->kind == LANE_TASK ? "task" : "thread", lane->name,
                         lane->on_driver ? Py_True : Py_False, lane->host ? Py_True : Py_False,
                         (unsigned long long)lane->uses);
}

/* Guests are in the lane whose tree they share. */
static PyObject *
lane_tuples(const Ledger *ledger)
{
    PyObject *made = PyList_New(0);
    for (uint32_t i = 0; made != NULL && i < ledger->lanes_used; i++) {
        PyObject *item = ledger->lanes[i]->guest ? NULL : lane_tuple(ledger->lanes[i]);
        if (item != NULL ? PyList_Append(made, item) < 0 : PyErr_Occurred() != NULL) {
            Py_CLEAR(made);
        }
        Py_XDECREF(item);
    }
    return made;
}

#define LIST_OF(count, make)                                                                                           \
    ({                                                                                                                 \
        uint32_t total = (count); /* making an item may collect garbage, whose finalisers may add more */               \
        PyObject *made = PyList_New((Py_ssize_t)total);                                                                \
        for (uint32_t i = 0; made != NULL && i < total; i++) {                                                         \
            PyObject *item = (make);                                                                                   \
            if (item == NULL) {                                                                                        \
                Py_CLEAR(made);                                                                                        \
                break;                                                                                                 \
            }                                                                                                          \
            PyList_SET_ITEM(made, (Py_ssize_t)i, item);                                                                \
        }                                                                                                              \
        made;                                                                                                          \
    })

PyObject *
ledger_raw(Ledger *ledger)
{
    static const char *const clocks[] = {"monotonic", "tsc", "fake"};
    static const char *const cpus[] = {"off", "rseq", "syscall", "fake"};
    device_resolve(ledger);
    int64_t wall = ledger->wall, now = ledger->stopped;
    if (ledger->mode & MODE_ENABLED) {
        now = settle(ledger, clock_now(&ledger->clock));
        wall += now - ledger->started;
    }
    return Py_BuildValue(
        "{sLsLsLsLsIsIsIsssssLsIsIsLsLsLsNsOsOsLsLsLsnsKsNsNsN}", "wall", wall, "now", now, "trained", ledger->trained, "given", ledger->given_mark - ledger->given_before, "driver_iteration",
        ledger->member.page ? ledger->member.page->iteration : ledger->iterations.count, "epoch",
        ledger->member.page ? ledger->epoch : 0, "begun", ledger->member.page ? ledger->begun : 0, "clock", clocks[ledger->clock.kind], "cpu",
        cpus[ledger->cpu_kind], "clock_drift", clock_drift(&ledger->clock), "open", open_spans(ledger), "iterations",
        ledger->iterations.count, "iteration_sum", ledger->iterations.sum, "iteration_min", ledger->iterations.shortest, "iteration_max",
        ledger->iterations.longest, "iteration_histogram", histogram_packed(&ledger->iterations.durations), "iterating",
        ledger->iterations.open ? Py_True : Py_False, "learned", ledger->learned ? Py_True : Py_False, "steps",
        ledger->iterations.steps, "episodes", ledger->iterations.episodes, "process_peak", memory_process_peak(ledger), "device_pending",
        PyList_GET_SIZE(ledger->pending), "device_lost", (unsigned long long)ledger->device_lost, "operations",
        LIST_OF(ledger->operations_used, operation_tuple(ledger->operations[i])), "lanes",
        lane_tuples(ledger), "nodes",
        LIST_OF(ledger->nodes_used, node_tuple(ledger->nodes[i])));
}
