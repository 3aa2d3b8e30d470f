/* profile(name, ...): from a name and options to the span that stands for them. */
#include "core.h"

#include <string.h>

typedef struct {
    PyObject *name;
    PyObject *category;
    unsigned flags;
} Options;

static int
read_flag(PyObject *value, unsigned flag, Options *options)
{
    int truth = PyObject_IsTrue(value);
    if (truth > 0) {
        options->flags |= flag;
    }
    return truth < 0 ? -1 : 0;
}

static int
read_option(const char *key, PyObject *value, Options *options)
{
    if (strcmp(key, "track_memory") == 0) {
        return read_flag(value, SPAN_MEMORY, options);
    }
    if (strcmp(key, "wait") == 0) {
        return read_flag(value, SPAN_WAIT, options);
    }
    if (strcmp(key, "device") == 0) {
        int truth = value == Py_None ? 0 : PyObject_IsTrue(value);
        options->flags |= value == Py_None ? 0 : truth > 0 ? SPAN_DEVICE : SPAN_NO_DEVICE;
        return truth < 0 ? -1 : 0;
    }
    if (strcmp(key, "category") == 0) {
        if (value != Py_None && !PyUnicode_Check(value)) {
            PyErr_Format(PyExc_TypeError, "profile() takes a category as a str, not %.100s", Py_TYPE(value)->tp_name);
            return -1;
        }
        options->category = value == Py_None ? NULL : value;
        return 0;
    }
    if (strcmp(key, "name") == 0 && options->name == NULL) {
        options->name = value;
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "profile() got an unexpected argument '%.100s'", key);
    return -1;
}

static int
read_options(Options *options, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    static const char *const positional[] = {"name", "track_memory", "category", "wait", "device"};
    if (count > 5) {
        PyErr_SetString(PyExc_TypeError, "profile() takes a name and at most four options");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_option(positional[i], args[i], options) < 0) {
            return -1;
        }
    }
    for (Py_ssize_t i = 0; kwnames != NULL && i < PyTuple_GET_SIZE(kwnames); i++) {
        const char *key = PyUnicode_AsUTF8(PyTuple_GET_ITEM(kwnames, i));
        if (key == NULL || read_option(key, args[count + i], options) < 0) {
            return -1;
        }
    }
    if (options->name == NULL || !PyUnicode_Check(options->name)) {
        PyErr_Format(PyExc_TypeError, "profile() takes the operation's name as a str, not %.100s",
                     options->name ? Py_TYPE(options->name)->tp_name : "nothing");
        return -1;
    }
    return 0;
}

static SLOW_PATH PyObject *
profile_options(Ledger *ledger, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    Options options = {NULL, NULL, 0};
    if (read_options(&options, args, count, kwnames) < 0) {
        return NULL;
    }
    PyObject *name = PyUnicode_CheckExact(options.name) ? Py_NewRef(options.name)
                                                        : PyUnicode_FromObject(options.name);
    Operation *operation = name ? operation_get(ledger, name, options.category) : NULL;
    Py_XDECREF(name);
    Span *span = operation ? span_get(ledger, operation, options.flags) : NULL;
    uintptr_t address = operation ? (uintptr_t)operation->name : 0;
    if (span != NULL && options.flags == 0 && map_get(&ledger->plain_spans, address) == NULL) {
        map_put(&ledger->plain_spans, address, span); /* without memory, this function finds it again */
    }
    return Py_XNewRef((PyObject *)span);
}

/* A literal is interned, as the names of operations are, so it is found by its address. Only a name that is new, or was
 * made at run time, takes the slow path. */
static PyObject *
profile_call(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames)
{
    Ledger *ledger = (Ledger *)self;
    if (LIKELY(count == 1 && kwnames == NULL)) {
        Span *span = map_look(&ledger->plain_spans, (uintptr_t)args[0]);
        if (LIKELY(span != NULL)) {
            return Py_NewRef((PyObject *)span);
        }
    }
    return profile_options(ledger, args, count, kwnames);
}

PyDoc_STRVAR(profile_doc, "profile($self, name, track_memory=False, category=None, wait=False, device=None)\n"
                          "--\n\n"
                          "Time an operation: 'with profile(name): ...', or '@profile(name)' on a function.\n\n"
                          "track_memory: measure the peak of the process's memory inside the span.\n"
                          "category: kind of work (default: the catalogue's, 'other' for unknown names).\n"
                          "wait: the operation only waits for others, which get its time.\n"
                          "device: time it on the GPU, too (default: where its category usually runs there).");

static PyMethodDef profile_definition = {
    "profile", (PyCFunction)(void (*)(void))profile_call, METH_FASTCALL | METH_KEYWORDS, profile_doc};

PyObject *
profile_new(Ledger *ledger)
{
    return PyCFunction_New(&profile_definition, (PyObject *)ledger);
}
