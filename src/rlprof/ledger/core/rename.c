/* Gives a part of the driver's call tree another name, where it turns out only later what it was. */
#include "core.h"

static void
histogram_move(Histogram *to, Histogram *from)
{
    for (int bucket = 0; bucket < HISTOGRAM_OCTAVES * HISTOGRAM_SUB; bucket++) {
        uint64_t count = histogram_count(from, bucket);
        HistogramOctave *octave = to->octave[bucket / HISTOGRAM_SUB];
        if (count > 0 && octave == NULL) {
            octave = histogram_new_octave(to, bucket / HISTOGRAM_SUB);
        }
        for (; octave != NULL && count > 0; count--) { /* quick enough for once or twice per run */
            if (++octave->counts[bucket % HISTOGRAM_SUB] == 0) {
                histogram_overflow(octave, bucket % HISTOGRAM_SUB);
            }
        }
    }
    histogram_zero(from);
}

#define ADD(field)            \
    to->field += from->field; \
    from->field = 0
#define LARGER(field, none)                       \
    to->field = larger(to->field, from->field);   \
    from->field = (none)

static void
node_move(Node *to, Node *from)
{
    ADD(self);
    ADD(calls);
    ADD(busy);
    ADD(shift);
    ADD(covered);
    ADD(overlap);
    ADD(waited);
    ADD(off_cpu);
    ADD(cost);
    ADD(device_time);
    ADD(device_calls);
    /* So that the sum's gain since the last iteration mark is the sum of both gains. */
    ADD(marked.self);
    ADD(marked.shift);
    ADD(marked.overlapped);
    ADD(marked.waited);
    ADD(marked.off_cpu);
    ADD(marked.calls);
    LARGER(max, 0);
    LARGER(memory_peak, -1);
    LARGER(memory_rise, -1);
    LARGER(device_peak, -1);
    LARGER(device_rise, -1);
    to->min = smaller(to->min, from->min);
    from->min = INT64_MAX;
    histogram_move(&to->durations, &from->durations);
}

static bool
is_open(const Lane *lane, const Operation *operation)
{
    for (const Entry *entry = lane->top; entry > lane->stack; entry--) {
        if (entry->node->operation == operation) {
            return true;
        }
    }
    return false;
}

/* rename(was, name): books the driver's spans of `was`, with all inside them, to `name`. False: one is open, or
 * there is none. A node comes after its parent in the ledger's list, so one pass finds all of them. */
PyObject *
ledger_rename(Ledger *ledger, PyObject *args)
{
    Span *was, *name;
    if (!PyArg_ParseTuple(args, "O!O!", Span_Type, &was, Span_Type, &name)) {
        return NULL;
    }
    Lane *lane = ledger->driver->base;
    Node *root = lane->stack[0].node;
    uint32_t count = ledger->nodes_used;
    Node **moved = calloc(count, sizeof *moved); /* the new node, by the id of the old one */
    if (moved == NULL || name->ledger != ledger || is_open(lane, was->operation)) {
        free(moved);
        Py_RETURN_FALSE;
    }
    bool found = false;
    settle(ledger, ledger_time(ledger));
    for (uint32_t i = 0; i < count; i++) {
        Node *node = ledger->nodes[i], *parent = node->parent;
        bool first = parent == root && node->operation == was->operation;
        if (first || (parent != NULL && parent->id < count && moved[parent->id] != NULL)) {
            Node *above = first ? root : moved[parent->id];
            moved[i] = node_of(ledger, above, first ? name->operation : node->operation);
            if (moved[i] != NULL) {
                node_move(moved[i], node);
                stacks_move(ledger, node, moved[i], INT64_MIN);
                found = true;
            }
        }
    }
    free(moved);
    return PyBool_FromLong(found);
}
