/* Operations by name, and the call trees' nodes. */
#include "core.h"

#include <string.h>

/* Doubles an array of pointers when it is full. */
static bool
grow(void *array, uint32_t used, uint32_t *capacity)
{
    if (used < *capacity) {
        return true;
    }
    uint32_t wanted = *capacity ? *capacity * 2 : 64;
    void *bigger = realloc(*(void **)array, wanted * sizeof(void *));
    if (bigger == NULL) {
        return false;
    }
    *(void **)array = bigger;
    *capacity = wanted;
    return true;
}

/* The slot that holds the name, or the free one where it belongs. */
static Operation **
probe(const Ledger *ledger, PyObject *name, Py_hash_t hash)
{
    size_t i = (size_t)hash & ledger->by_name_mask;
    for (;; i = (i + 1) & ledger->by_name_mask) {
        Operation *operation = ledger->by_name[i];
        if (operation == NULL || (operation->hash == hash && PyUnicode_Compare(operation->name, name) == 0)) {
            return &ledger->by_name[i];
        }
    }
}

static bool
by_name_grow(Ledger *ledger)
{
    size_t capacity = ledger->by_name_mask + 1;
    if (ledger->by_name != NULL && ((size_t)ledger->operations_used + 1) * 2 <= capacity) {
        return true;
    }
    size_t wanted = ledger->by_name ? capacity * 2 : 128;
    Operation **table = calloc(wanted, sizeof *table);
    if (table == NULL) {
        return false;
    }
    free(ledger->by_name);
    ledger->by_name = table;
    ledger->by_name_mask = wanted - 1;
    for (uint32_t i = 0; i < ledger->operations_used; i++) {
        Operation *operation = ledger->operations[i];
        *probe(ledger, operation->name, operation->hash) = operation;
    }
    return true;
}

static Operation *
find(Ledger *ledger, PyObject *name, Py_hash_t hash)
{
    return ledger->by_name ? *probe(ledger, name, hash) : NULL;
}

/* Takes the category from the catalogue, or the given one, and whether the device is timed. */
static int
classify(Ledger *ledger, Operation *operation, PyObject *category)
{
    PyObject *answer = PyObject_CallMethod(ledger->hooks, "classify", "OO", operation->name,
                                           category ? category : Py_None);
    PyObject *found;
    int on_device;
    int result = answer != NULL && PyArg_ParseTuple(answer, "Up", &found, &on_device) ? 0 : -1;
    if (result == 0) {
        Py_XSETREF(operation->category, Py_NewRef(found));
        operation->on_device = on_device;
        operation->category_given = category != NULL;
    }
    Py_XDECREF(answer);
    return result;
}

static Operation *
operation_new(Ledger *ledger, PyObject *name, Py_hash_t hash, PyObject *category)
{
    Operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    operation->hash = hash;
    operation->name = Py_NewRef(name);
    PyUnicode_InternInPlace(&operation->name);
    int classified = classify(ledger, operation, category);
    /* classify ran Python code, which may have made the same operation. */
    Operation *made = classified == 0 ? find(ledger, name, hash) : NULL;
    if (classified == 0 && made == NULL) {
        if (grow(&ledger->operations, ledger->operations_used, &ledger->operations_capacity) &&
            by_name_grow(ledger)) {
            operation->id = ledger->operations_used;
            ledger->operations[ledger->operations_used++] = operation;
            *probe(ledger, operation->name, hash) = operation;
            slowdown_find(ledger, operation);
            return operation;
        }
        PyErr_NoMemory();
    }
    Py_DECREF(operation->name);
    Py_XDECREF(operation->category);
    free(operation);
    return made;
}

Operation *
operation_get(Ledger *ledger, PyObject *name, PyObject *category)
{
    Py_hash_t hash = PyObject_Hash(name);
    if (hash == -1) {
        return NULL;
    }
    Operation *operation = find(ledger, name, hash);
    if (operation == NULL && ledger->operations_used >= MAX_OPERATIONS - 1) {
        complain(ledger, "more than 65,535 operation names; further ones are counted as '(other names)'");
        PyObject *rest = PyUnicode_InternFromString("(other names)");
        if (rest == NULL) {
            return NULL;
        }
        hash = PyObject_Hash(rest);
        operation = find(ledger, rest, hash);
        operation = operation != NULL ? operation : operation_new(ledger, rest, hash, NULL);
        Py_DECREF(rest);
        return operation;
    }
    if (operation == NULL) {
        return operation_new(ledger, name, hash, category);
    }
    if (category != NULL && PyUnicode_Compare(operation->category, category) != 0) {
        if (operation->category_given) {
            complain(ledger, "one operation is given two categories; the first one stays");
        }
        else if (classify(ledger, operation, category) < 0) {
            return NULL;
        }
    }
    return operation;
}

/* Figures of a node without a call. */
#define NO_FIGURES .min = INT64_MAX, .memory_peak = -1, .memory_rise = -1, .device_peak = -1, .device_rise = -1

Node *
node_new(Ledger *ledger, Node *parent, Operation *operation, Lane *lane)
{
    if (!grow(&ledger->nodes, ledger->nodes_used, &ledger->nodes_capacity)) {
        return NULL;
    }
    Node *node = calloc(1, sizeof *node);
    if (node == NULL) {
        return NULL;
    }
    *node = (Node){.parent = parent, .operation = operation, .lane = lane, .id = ledger->nodes_used, NO_FIGURES};
    ledger->nodes[ledger->nodes_used++] = node;
    return node;
}

Node *
node_child(Ledger *ledger, Node *parent, Operation *operation)
{
    uint64_t key = (((uint64_t)parent->id + 1) << 32) | operation->id;
    Node *node = map_get(&ledger->children, key);
    if (node == NULL && UNLIKELY(ledger->nodes_used >= MAX_NODES && parent->parent != NULL)) {
        complain(ledger, "more than 262,144 places in the call trees; further ones are booked at the root");
        return node_child(ledger, parent->lane->stack[0].node, operation);
    }
    if (node == NULL) {
        if (startup_gives_way(ledger, parent)) {
            return NULL;
        }
        node = node_new(ledger, parent, operation, parent->lane);
        if (node == NULL || map_put(&ledger->children, key, node) < 0) {
            return NULL; /* the node itself is in ledger->nodes and freed with it */
        }
    }
    operation->cached_parent = parent;
    operation->cached_child = node;
    return node;
}

void
tree_reset(Ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->nodes_used; i++) {
        Node *node = ledger->nodes[i];
        histogram_zero(&node->durations);
        *node = (Node){.parent = node->parent, .operation = node->operation, .lane = node->lane, .id = node->id,
                       .durations = node->durations, NO_FIGURES};
    }
}

/* Frees the nodes; the operations stay, spans point at them. */
void
tree_free(Ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->nodes_used; i++) {
        histogram_free(&ledger->nodes[i]->durations);
        free(ledger->nodes[i]);
    }
    ledger->nodes_used = 0;
    map_free(&ledger->children);
    for (uint32_t i = 0; i < ledger->operations_used; i++) {
        ledger->operations[i]->cached_parent = NULL;
        ledger->operations[i]->cached_child = NULL;
    }
}
