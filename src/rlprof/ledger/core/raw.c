/* All records of the ledger as plain Python data. The Python twin makes the same data, and tests compare the two. */
#include "core.h"

/* HISTOGRAM ENCODING, little-endian: n uint16 buckets in order, then as many uint64 counts. As dicts, the histograms
 * were most of the cost of a flush. */
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

/* The lane neither works nor could: its innermost span waits for others, or its task is suspended. */
static bool
lane_waits(const Lane *lane)
{
    return lane->suspended || (lane->top->span != NULL && (lane->top->span->flags & SPAN_WAIT));
}

/* Columns of the rows, each with its value. rlprof.ledger.rows has the same names; layout.c compares them. */
#define OPERATION_ROW(COLUMN)                                                   \
    COLUMN(id, PyLong_FromUnsignedLong(operation->id))                          \
    COLUMN(name, Py_NewRef(operation->name))                                    \
    COLUMN(category, Py_NewRef(operation->category))

#define LANE_ROW(COLUMN)                                                        \
    COLUMN(id, PyLong_FromUnsignedLong(lane->id))                               \
    COLUMN(kind, PyUnicode_FromString(lane->kind == LANE_TASK ? "task" : "thread")) \
    COLUMN(name, Py_NewRef(lane->name))                                         \
    COLUMN(on_driver, PyBool_FromLong(lane->on_driver))                         \
    COLUMN(alive, PyBool_FromLong(lane->host != NULL))                          \
    COLUMN(uses, PyLong_FromUnsignedLongLong(lane->uses))                       \
    COLUMN(node, PyLong_FromUnsignedLong(lane->top->node->id))                  \
    COLUMN(since, PyLong_FromLongLong(lane->top > lane->stack ? lane->top->start : lane->left)) \
    COLUMN(waits, PyBool_FromLong(lane_waits(lane)))

#define NODE_ROW(COLUMN)                                                        \
    COLUMN(id, PyLong_FromUnsignedLong(node->id))                               \
    COLUMN(parent, PyLong_FromLong(node->parent ? (long)node->parent->id : -1)) \
    COLUMN(lane, PyLong_FromUnsignedLong(node->lane->id))                       \
    COLUMN(operation, PyLong_FromLong(node->operation ? (long)node->operation->id : -1)) \
    COLUMN(calls, PyLong_FromUnsignedLongLong(node->calls))                     \
    COLUMN(busy, PyLong_FromLongLong(node->busy))                               \
    COLUMN(self, PyLong_FromLongLong(node->self))                               \
    COLUMN(ledger, PyLong_FromLongLong(node_ledger(node)))                      \
    COLUMN(overlapped, PyLong_FromLongLong(node_overlapped(node)))              \
    COLUMN(waited, PyLong_FromLongLong(node->waited))                           \
    COLUMN(off_cpu, PyLong_FromLongLong(node->off_cpu))                         \
    COLUMN(cost, PyLong_FromLongLong(node->cost))                               \
    COLUMN(min, PyLong_FromLongLong(node->calls ? node->min : 0))               \
    COLUMN(max, PyLong_FromLongLong(node->max))                                 \
    COLUMN(memory_peak, PyLong_FromLongLong(node->memory_peak))                 \
    COLUMN(memory_rise, PyLong_FromLongLong(node->memory_rise))                 \
    COLUMN(device_peak, PyLong_FromLongLong(node->device_peak))                 \
    COLUMN(device_rise, PyLong_FromLongLong(node->device_rise))                 \
    COLUMN(device_ns, PyLong_FromLongLong(node->device_time))                   \
    COLUMN(device_calls, PyLong_FromUnsignedLongLong(node->device_calls))       \
    COLUMN(histogram, histogram_packed(&node->durations))

#define NAME(name, value) #name,
const char *const OPERATION_COLUMNS[] = {OPERATION_ROW(NAME) NULL};
const char *const LANE_COLUMNS[] = {LANE_ROW(NAME) NULL};
const char *const NODE_COLUMNS[] = {NODE_ROW(NAME) NULL};

static PyTypeObject *OperationRow_Type, *LaneRow_Type, *NodeRow_Type;

/* The types of the rows: named tuples of rlprof.ledger.rows. */
int
raw_setup(PyObject *rows)
{
    struct {
        const char *name;
        PyTypeObject **type;
    } types[] = {{"OperationRow", &OperationRow_Type}, {"LaneRow", &LaneRow_Type}, {"NodeRow", &NodeRow_Type}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        PyObject *type = PyObject_GetAttrString(rows, types[i].name);
        if (type == NULL) {
            return -1;
        }
        Py_XSETREF(*types[i].type, (PyTypeObject *)type);
    }
    return 0;
}

/* Makes a named tuple of these values, and takes them over; NULL if one of them is NULL. */
static PyObject *
row_of(PyTypeObject *type, PyObject *const *values, size_t count)
{
    PyObject *plain = PyTuple_New((Py_ssize_t)count);
    bool whole = plain != NULL;
    for (size_t i = 0; i < count; i++) {
        whole = whole && values[i] != NULL;
        if (plain != NULL) {
            PyTuple_SET_ITEM(plain, (Py_ssize_t)i, values[i]);
        }
        else {
            Py_XDECREF(values[i]);
        }
    }
    PyObject *arguments = whole ? PyTuple_Pack(1, plain) : NULL;
    PyObject *row = arguments ? PyTuple_Type.tp_new(type, arguments, NULL) : NULL;
    if (row != NULL) {
        PyObject_GC_UnTrack(row); /* it is in no cycle, and there may be a hundred thousand */
    }
    Py_XDECREF(arguments);
    Py_XDECREF(plain);
    return row;
}

#define VALUE(name, value) value,
#define ROW(type, values) row_of(type, values, sizeof values / sizeof *values)

static PyObject *
node_row(const Ledger *ledger, uint32_t i)
{
    const Node *node = ledger->nodes[i];
    PyObject *const values[] = {NODE_ROW(VALUE)};
    return ROW(NodeRow_Type, values);
}

static PyObject *
operation_row(const Ledger *ledger, uint32_t i)
{
    const Operation *operation = ledger->operations[i];
    PyObject *const values[] = {OPERATION_ROW(VALUE)};
    return ROW(OperationRow_Type, values);
}

/* NULL without an exception for a guest, which uses the tree of another lane. */
static PyObject *
lane_row(const Ledger *ledger, uint32_t i)
{
    const Lane *lane = ledger->lanes[i];
    if (lane->guest) {
        return NULL;
    }
    PyObject *const values[] = {LANE_ROW(VALUE)};
    return ROW(LaneRow_Type, values);
}

static PyObject *
rows_of(const Ledger *ledger, uint32_t count, PyObject *(*make)(const Ledger *, uint32_t))
{
    PyObject *rows = PyList_New(0);
    for (uint32_t i = 0; rows != NULL && i < count; i++) {
        PyObject *row = make(ledger, i);
        if (row != NULL ? PyList_Append(rows, row) < 0 : PyErr_Occurred() != NULL) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
    }
    return rows;
}

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
    const Iterations *iterations = &ledger->iterations;
    const Page *page = ledger->member.page;
    return Py_BuildValue(
        "{sLsLsLsLsIsIsIsssssLsIsIsLsLsLsNsOsOsLsLsLsnsKsNsNsN}",
        "wall", wall, "now", now, "trained", ledger->trained, "given", ledger->given_mark - ledger->given_before,
        "driver_iteration", page ? page->iteration : iterations->count, "epoch", page ? ledger->epoch : 0,
        "begun", page ? ledger->begun : 0, "clock", clocks[ledger->clock.kind], "cpu", cpus[ledger->cpu_kind],
        "clock_drift", clock_drift(&ledger->clock), "open", open_spans(ledger), "iterations", iterations->count,
        "iteration_sum", iterations->sum, "iteration_min", iterations->shortest, "iteration_max", iterations->longest,
        "iteration_histogram", histogram_packed(&iterations->durations),
        "iterating", iterations->open ? Py_True : Py_False, "learned", ledger->learned ? Py_True : Py_False,
        "steps", iterations->steps, "episodes", iterations->episodes, "process_peak", memory_process_peak(ledger),
        "device_pending", PyList_GET_SIZE(ledger->pending), "device_lost", (unsigned long long)ledger->device_lost,
        "operations", rows_of(ledger, ledger->operations_used, operation_row),
        "lanes", rows_of(ledger, ledger->lanes_used, lane_row), "nodes", rows_of(ledger, ledger->nodes_used, node_row));
}
