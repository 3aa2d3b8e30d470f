/* Iterations: at each mark, what every node has gained since the last one.
 *
 * They are drained as marks, one per iteration, and gains, one per node that changed: records.h has the layouts.
 * Beyond the limit a mark is only counted, and the next mark covers several iterations, with their sums. */
#include "core.h"

#define MAX_ROWS (1u << 13) /* a flush writes so many in some tens of milliseconds */
#define MOST_COUNTED (INT64_C(1) << 62)

/* Makes room for one more record; returns its place, or NULL when there are `most`. */
static void *
append(void *array, size_t *used, size_t *capacity, size_t size, size_t most)
{
    if (*used >= most) {
        return NULL;
    }
    if (*used == *capacity) {
        size_t wanted = *capacity ? *capacity * 2 : 256;
        void *bigger = realloc(*(void **)array, wanted * size);
        if (bigger == NULL) {
            return NULL;
        }
        *(void **)array = bigger;
        *capacity = wanted;
    }
    return (char *)*(void **)array + (*used)++ * size;
}

static void
remember(Ledger *ledger, int64_t now)
{
    for (uint32_t i = 0; i < ledger->nodes_used; i++) {
        Node *node = ledger->nodes[i];
        node->marked.calls = node->calls;
        node->marked.self = node->self;
        node->marked.shift = node->shift;
        node->marked.overlapped = node_overlapped(node);
        node->marked.waited = node->waited;
        node->marked.off_cpu = node->off_cpu;
    }
    Iterations *iterations = &ledger->iterations;
    iterations->marked_steps = iterations->steps;
    iterations->marked_episodes = iterations->episodes;
    iterations->start = now;
}

/* Writes the iterations that are closed and not emitted yet, as one mark. If there is no room, the next mark has
 * them. */
static void
write_rows(Ledger *ledger, int64_t now)
{
    Iterations *iterations = &ledger->iterations;
    size_t rows = iterations->gains_used, marks = iterations->marks_used;
    /* One iteration always fits, whatever the number of its nodes: merging it with others would not help. */
    size_t most = rows == 0 && ledger->nodes_used > MAX_ROWS ? ledger->nodes_used : MAX_ROWS;
    IterationMark *mark =
        append(&iterations->marks, &iterations->marks_used, &iterations->marks_capacity, sizeof *mark, MAX_ROWS);
    if (mark == NULL) {
        return;
    }
    *mark = (IterationMark){
        .start = iterations->start,
        .end = now,
        .first = iterations->emitted,
        .last = iterations->count - 1,
        .steps = iterations->steps - iterations->marked_steps,
        .episodes = iterations->episodes - iterations->marked_episodes,
    };
    for (uint32_t i = 0; i < ledger->nodes_used; i++) {
        Node *node = ledger->nodes[i];
        if (node->calls == node->marked.calls && node->self == node->marked.self &&
            node->shift == node->marked.shift) {
            continue;
        }
        IterationGain *row =
            append(&iterations->gains, &iterations->gains_used, &iterations->gains_capacity, sizeof *row, most);
        if (row == NULL) {
            iterations->gains_used = rows;
            iterations->marks_used = marks;
            return;
        }
        *row = (IterationGain){
            .iteration = iterations->count - 1,
            .node = node->id,
            .calls = node->calls - node->marked.calls,
            .self = node->self - node->marked.self,
            .ledger = node_ledger(node) - node_marked_ledger(node),
            .overlapped = node_overlapped(node) - node->marked.overlapped,
            .waited = node->waited - node->marked.waited,
            .off_cpu = node->off_cpu - node->marked.off_cpu,
        };
    }
    iterations->emitted = iterations->count;
    remember(ledger, now);
}

static void
count_duration(Iterations *iterations, int64_t duration)
{
    histogram_add(&iterations->durations, duration);
    iterations->sum += duration;
    iterations->shortest = iterations->count == 0 ? duration : smaller(iterations->shortest, duration);
    iterations->longest = larger(iterations->longest, duration);
}

/* Ends the open iteration, if there is one, and begins the next unless `closes`. Time before the first iteration, or
 * between a closed one and the next, is in no row. */
int64_t
iteration_mark(Ledger *ledger, int64_t now, bool closes)
{
    Iterations *iterations = &ledger->iterations;
    now = settle(ledger, now);
    bool merges = iterations->emitted < iterations->count; /* earlier ones still wait to be written */
    if (iterations->open) {
        count_duration(iterations, now - iterations->begun);
        iterations->count++;
        if (ledger->member.page != NULL && !ledger->elsewhere) {
            ledger->member.page->iteration = iterations->count;
        }
        write_rows(ledger, now);
    }
    else if (!merges) {
        remember(ledger, now);
    }
    iterations->open = !closes;
    iterations->begun = now;
    return now;
}

PyObject *
ledger_iteration(Ledger *ledger, PyObject *closes)
{
    if (ledger->mode & MODE_ENABLED) {
        training_begins(ledger, false);
        ledger->trained = iteration_mark(ledger, clock_now(&ledger->clock), closes == Py_True);
    }
    return PyLong_FromUnsignedLong(ledger->iterations.count);
}

/* A count must never stop a training: what is no number, or negative, is not counted, with one warning. */
static PyObject *
add_to(Ledger *ledger, int64_t *counter, PyObject *number, const char *what)
{
    int64_t n = PyNumber_AsSsize_t(number, PyExc_OverflowError);
    if (n < 0) {
        complain(ledger, what);
        PyErr_Clear();
    }
    else if (ledger->mode & MODE_ENABLED) {
        ledger->trained = clock_now(&ledger->clock);
        *counter = smaller(n, MOST_COUNTED - *counter) + *counter;
    }
    Py_RETURN_NONE;
}

PyObject *
ledger_add_steps(Ledger *ledger, PyObject *number)
{
    return add_to(ledger, &ledger->iterations.steps, number, "environment steps are counted in whole numbers");
}

PyObject *
ledger_add_episodes(Ledger *ledger, PyObject *number)
{
    return add_to(ledger, &ledger->iterations.episodes, number, "episodes are counted in whole numbers");
}

/* Discards the open iteration. Earlier ones that wait to be written keep its time. */
PyObject *
ledger_drop_iteration(Ledger *ledger, PyObject *Py_UNUSED(ignored))
{
    Iterations *iterations = &ledger->iterations;
    if (ledger->mode & MODE_ENABLED && iterations->open) {
        int64_t now = settle(ledger, clock_now(&ledger->clock));
        iterations->open = false;
        if (iterations->emitted == iterations->count) {
            remember(ledger, now);
        }
    }
    Py_RETURN_NONE;
}

void
iteration_reset(Ledger *ledger, int64_t now)
{
    Iterations *iterations = &ledger->iterations;
    iterations->gains_used = iterations->marks_used = 0;
    iterations->count = iterations->emitted = 0;
    iterations->steps = iterations->marked_steps = 0;
    iterations->episodes = iterations->marked_episodes = 0;
    iterations->open = false;
    iterations->start = iterations->begun = now;
    histogram_zero(&iterations->durations);
    iterations->shortest = iterations->longest = iterations->sum = 0;
}

/* Returns (marks, rows), both packed, since the last drain. */
PyObject *
iteration_drain(Ledger *ledger)
{
    Iterations *iterations = &ledger->iterations;
    PyObject *marks = PyBytes_FromStringAndSize((char *)iterations->marks,
                                                (Py_ssize_t)(iterations->marks_used * sizeof(IterationMark)));
    PyObject *rows = PyBytes_FromStringAndSize((char *)iterations->gains,
                                               (Py_ssize_t)(iterations->gains_used * sizeof(IterationGain)));
    PyObject *drained = marks && rows ? PyTuple_Pack(2, marks, rows) : NULL;
    Py_XDECREF(marks);
    Py_XDECREF(rows);
    if (drained != NULL) {
        iterations->gains_used = iterations->marks_used = 0;
        /* No further mark will write what did not fit when recording stopped. */
        if (!(ledger->mode & MODE_ENABLED) && iterations->emitted < iterations->count) {
            write_rows(ledger, ledger->stopped);
        }
    }
    return drained;
}
