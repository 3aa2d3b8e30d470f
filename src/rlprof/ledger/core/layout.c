/* The layout of every record in this core. rlprof.ledger.rows.check compares it with its own, because a core that was
 * built from other sources must not be loaded. */
#include "core.h"

#define CODE_OF(type) _Generic((type)0, double: "d", int64_t: "q", uint64_t: "Q", uint32_t: "I")

typedef struct {
    const char *name;
    const char *code; /* as in Python's struct module */
    size_t offset;
} Field;

#define MARK_FIELD(type, name) {#name, CODE_OF(type), offsetof(IterationMark, name)},
#define GAIN_FIELD(type, name) {#name, CODE_OF(type), offsetof(IterationGain, name)},
#define EVENT_FIELD(type, name) {#name, CODE_OF(type), offsetof(TimelineEvent, name)},
#define SLOWDOWN_FIELD(type, name) {#name, CODE_OF(type), offsetof(Slowdown, name)},
static const Field mark_fields[] = {MARK_FIELDS(MARK_FIELD){NULL, NULL, 0}};
static const Field gain_fields[] = {GAIN_FIELDS(GAIN_FIELD){NULL, NULL, 0}};
static const Field event_fields[] = {EVENT_FIELDS(EVENT_FIELD){NULL, NULL, 0}};
static const Field slowdown_fields[] = {SLOWDOWN_FIELDS(SLOWDOWN_FIELD){NULL, NULL, 0}};

/* Takes over `field`. */
static int
append(PyObject *fields, PyObject *field)
{
    int result = field ? PyList_Append(fields, field) : -1;
    Py_XDECREF(field);
    return result;
}

/* Adds the fields of a packed record, or the columns of a row. */
static int
add(PyObject *layout, const char *record, const Field *field, const char *const *column)
{
    PyObject *fields = PyList_New(0);
    int result = fields ? 0 : -1;
    for (; result == 0 && field != NULL && field->name != NULL; field++) {
        result = append(fields, Py_BuildValue("(ssn)", field->name, field->code, (Py_ssize_t)field->offset));
    }
    for (; result == 0 && column != NULL && *column != NULL; column++) {
        result = append(fields, Py_BuildValue("(ssi)", *column, "", 0));
    }
    PyObject *fixed = result == 0 ? PyList_AsTuple(fields) : NULL;
    result = fixed ? PyDict_SetItemString(layout, record, fixed) : -1;
    Py_XDECREF(fixed);
    Py_XDECREF(fields);
    return result;
}

/* Also takes the types of the rows from rlprof.ledger.rows. */
int
layout_setup(PyObject *module)
{
    PyObject *rows = PyImport_ImportModule("rlprof.ledger.rows");
    PyObject *layout = rows ? PyDict_New() : NULL;
    PyObject *checked = NULL;
    if (layout != NULL && add(layout, "mark", mark_fields, NULL) == 0 && add(layout, "gain", gain_fields, NULL) == 0 &&
        add(layout, "event", event_fields, NULL) == 0 && add(layout, "slowdown", slowdown_fields, NULL) == 0 &&
        add(layout, "operation", NULL, OPERATION_COLUMNS) == 0 && add(layout, "lane", NULL, LANE_COLUMNS) == 0 &&
        add(layout, "node", NULL, NODE_COLUMNS) == 0) {
        checked = PyObject_CallMethod(rows, "check", "O", layout);
    }
    int result = checked && raw_setup(rows) == 0 ? PyModule_AddObjectRef(module, "LAYOUT", layout) : -1;
    Py_XDECREF(checked);
    Py_XDECREF(layout);
    Py_XDECREF(rows);
    return result;
}
