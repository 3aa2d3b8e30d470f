/* Reads the text around the events, and defines the type Scanner. */
#include "scan.h"

#include <string.h>
#include <structmember.h>

typedef enum { AT_START, IN_OBJECT, IN_EVENTS, IN_ARRAY, AT_END } Place;
/* IN_EVENTS: inside the array under "traceEvents". IN_ARRAY: the whole text is such an array. */

typedef struct {
    PyObject_HEAD
    Events events;
    Place place;
    Column rest;     /* text that is not used yet */
    size_t wanted;   /* bytes to wait for before reading again */
    uint64_t waiting; /* bytes of an incomplete value */
    uint64_t offset; /* place of `rest` in the whole text */
    Column header;   /* "key":value of all members beside the events */
    long long broken_at;
    bool has_events, busy;
} Scanner;

static Scan
read_member(Scanner *scanner, Cursor *cursor)
{
    Cursor inside = *cursor;
    Text key, value;
    Scan found = json_string(&inside, &key);
    if (found != SCAN_OK || (found = json_space(&inside)) != SCAN_OK) {
        return found;
    }
    if (*inside.at != ':') {
        return SCAN_BAD;
    }
    inside.at++;
    if ((found = json_space(&inside)) != SCAN_OK) {
        return found;
    }
    if (*inside.at == '[' && key.size == 13 && memcmp(key.at, "\"traceEvents\"", 13) == 0) {
        inside.at++;
        scanner->place = IN_EVENTS;
        scanner->has_events = true;
        *cursor = inside;
        return SCAN_OK;
    }
    if ((found = json_value(&inside, &value)) != SCAN_OK) {
        return found;
    }
    if (column_add(&scanner->header, scanner->header.used ? "," : "", scanner->header.used ? 1 : 0) < 0 ||
        column_add(&scanner->header, key.at, key.size) < 0 || column_add(&scanner->header, ":", 1) < 0 ||
        column_add(&scanner->header, value.at, value.size) < 0) {
        return SCAN_MEMORY;
    }
    *cursor = inside;
    return SCAN_OK;
}

/* Reads one more bracket, comma, member or event at the cursor. */
static Scan
step(Scanner *scanner, Cursor *cursor)
{
    char byte = *cursor->at;
    switch (scanner->place) {
    case AT_START:
        if (byte != '{' && byte != '[') {
            return SCAN_BAD;
        }
        scanner->place = byte == '{' ? IN_OBJECT : IN_ARRAY;
        scanner->has_events = byte == '[';
        cursor->at++;
        return SCAN_OK;
    case IN_OBJECT:
        if (byte == '"') {
            return read_member(scanner, cursor);
        }
        if (byte != ',' && byte != '}') {
            return SCAN_BAD;
        }
        scanner->place = byte == '}' ? AT_END : IN_OBJECT;
        cursor->at++;
        return SCAN_OK;
    case IN_EVENTS:
    case IN_ARRAY:
        if (byte != ',' && byte != ']') {
            return events_read(&scanner->events, cursor);
        }
        if (byte == ']') {
            scanner->place = scanner->place == IN_EVENTS ? IN_OBJECT : AT_END;
        }
        cursor->at++;
        return SCAN_OK;
    default:
        cursor->at = cursor->end; /* text after the trace is ignored */
        return SCAN_OK;
    }
}

static Scan
scan(Scanner *scanner, Cursor *cursor)
{
    for (;;) {
        Scan found = json_space(cursor);
        if (found == SCAN_OK) {
            found = step(scanner, cursor);
        }
        if (found != SCAN_OK) {
            return found;
        }
    }
}

/* Reads as much as possible. A piece that ends inside an event is joined with the next one. If the event is still not
 * complete, it is read again only when there is twice as much text. */
static Scan
take(Scanner *scanner, const char *data, size_t size)
{
    scanner->events.origin_offset = scanner->offset;
    if (scanner->rest.used == 0) {
        Cursor cursor = {data, data + size};
        scanner->events.origin = data;
        Scan found = scan(scanner, &cursor);
        scanner->offset += (uint64_t)(cursor.at - data);
        if (found != SCAN_MORE) {
            return found;
        }
        scanner->wanted = 0;
        scanner->waiting = (uint64_t)(cursor.end - cursor.at);
        return column_add(&scanner->rest, cursor.at, (size_t)scanner->waiting) < 0 ? SCAN_MEMORY : SCAN_MORE;
    }
    if (column_add(&scanner->rest, data, size) < 0) {
        return SCAN_MEMORY;
    }
    if (scanner->rest.used < scanner->wanted) {
        return SCAN_MORE;
    }
    Column joined = scanner->rest;
    Cursor cursor = {joined.data, joined.data + joined.used};
    scanner->events.origin = joined.data;
    Scan found = scan(scanner, &cursor);
    size_t used = (size_t)(cursor.at - joined.data);
    scanner->offset += used;
    scanner->waiting = scanner->rest.used -= used;
    memmove(joined.data, cursor.at, scanner->rest.used);
    scanner->wanted = used ? 0 : 2 * scanner->rest.used;
    return found;
}

static PyObject *
scanner_feed(PyObject *self, PyObject *data)
{
    Scanner *scanner = (Scanner *)self;
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    if (scanner->busy) {
        PyBuffer_Release(&view);
        return PyErr_Format(PyExc_RuntimeError, "another thread is feeding this scanner");
    }
    Scan found = SCAN_MORE;
    scanner->busy = true;
    Py_BEGIN_ALLOW_THREADS
    if (scanner->broken_at < 0) {
        found = take(scanner, view.buf, (size_t)view.len);
    }
    Py_END_ALLOW_THREADS
    scanner->busy = false;
    PyBuffer_Release(&view);
    if (found == SCAN_MEMORY) {
        return PyErr_NoMemory();
    }
    if (found == SCAN_BAD) {
        scanner->broken_at = (long long)scanner->offset;
    }
    return PyBool_FromLong(scanner->broken_at < 0);
}

static int
give(PyObject *columns, const char *name, Column *column)
{
    PyObject *given = column_give(column);
    int result = given ? PyDict_SetItemString(columns, name, given) : -1;
    Py_XDECREF(given);
    return result;
}

/* columns(): ends the text and returns the columns. */
static PyObject *
scanner_columns(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    Scanner *scanner = (Scanner *)self;
    Events *events = &scanner->events;
    scanner->wanted = 0;
    PyObject *nothing = PyBytes_FromString(""), *fed = nothing ? scanner_feed(self, nothing) : NULL;
    Py_XDECREF(nothing);
    Py_XDECREF(fed);
    if (fed == NULL) {
        return NULL;
    }
    PyObject *columns = PyDict_New(), *keys = PyDict_New();
    bool failed = columns == NULL || keys == NULL || give(columns, "phase", &events->phase) < 0 ||
                  give(columns, "category", &events->category) < 0 || give(columns, "name", &events->name) < 0 ||
                  give(columns, "process", &events->process) < 0 || give(columns, "thread", &events->thread) < 0 ||
                  give(columns, "start", &events->start) < 0 || give(columns, "duration", &events->duration) < 0 ||
                  give(columns, "texts", &events->texts.bytes) < 0 ||
                  give(columns, "text_ends", &events->texts.ends) < 0 || give(columns, "header", &scanner->header) < 0 ||
                  give(columns, "at", &events->at) < 0 || give(columns, "size", &events->size) < 0;
    for (int i = 0; i < events->key_count && !failed; i++) {
        Key *key = &events->keys[i];
        PyObject *rows = column_give(&key->rows);
        PyObject *values = rows ? column_give(&key->values) : NULL;
        PyObject *pair = values ? PyTuple_Pack(2, rows, values) : NULL;
        failed = pair == NULL || PyDict_SetItemString(keys, key->name, pair) < 0;
        Py_XDECREF(rows);
        Py_XDECREF(values);
        Py_XDECREF(pair);
    }
    PyObject *result = failed ? NULL : PyTuple_Pack(2, columns, keys);
    Py_XDECREF(columns);
    Py_XDECREF(keys);
    return result;
}

static int
take_keys(Events *events, PyObject *names, bool are_texts)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); i++) {
        Py_ssize_t size;
        const char *name = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(names, i), &size);
        if (name == NULL) {
            return -1;
        }
        Key *key = &events->keys[events->key_count];
        if (events->key_count == MAX_KEYS || size == 0 || (size_t)size >= sizeof key->name) {
            PyErr_Format(PyExc_ValueError, "at most %d keys of 1 to %zu bytes", MAX_KEYS, sizeof key->name - 1);
            return -1;
        }
        memcpy(key->name, name, (size_t)size);
        key->size = (size_t)size;
        key->is_text = are_texts;
        events->key_count++;
    }
    return 0;
}

/* Scanner(numbers, texts, places=False): the members of `args` to keep, and whether to keep the place of each event. */
static PyObject *
scanner_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *numbers, *texts;
    int places = 0;
    static char *names[] = {"numbers", "texts", "places", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|p", names, &PyTuple_Type, &numbers, &PyTuple_Type, &texts,
                                     &places)) {
        return NULL;
    }
    Scanner *scanner = (Scanner *)type->tp_alloc(type, 0);
    if (scanner == NULL) {
        return NULL;
    }
    scanner->broken_at = -1;
    scanner->events.keeps_places = places;
    PyObject *random = PyUnicode_FromString("texts");
    scanner->events.texts.seed = random ? (uint64_t)PyObject_Hash(random) : 0;
    Py_XDECREF(random);
    if (take_keys(&scanner->events, numbers, false) < 0 || take_keys(&scanner->events, texts, true) < 0) {
        Py_DECREF(scanner);
        return NULL;
    }
    return (PyObject *)scanner;
}

static void
scanner_dealloc(PyObject *self)
{
    Scanner *scanner = (Scanner *)self;
    PyTypeObject *type = Py_TYPE(self);
    events_free(&scanner->events);
    column_free(&scanner->rest);
    column_free(&scanner->header);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
scanner_ended(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(((Scanner *)self)->place == AT_END);
}

/* Bytes of all different texts and of the header. */
static PyObject *
scanner_text_bytes(PyObject *self, void *Py_UNUSED(closure))
{
    Scanner *scanner = (Scanner *)self;
    return PyLong_FromSize_t(scanner->events.texts.bytes.used + scanner->header.used);
}

static PyGetSetDef scanner_getset[] = {
    {"ended", scanner_ended, NULL, NULL, NULL},
    {"text_bytes", scanner_text_bytes, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef scanner_members[] = {
    {"offset", T_ULONGLONG, offsetof(Scanner, offset), READONLY, NULL},
    {"broken_at", T_LONGLONG, offsetof(Scanner, broken_at), READONLY, NULL},
    {"has_events", T_BOOL, offsetof(Scanner, has_events), READONLY, NULL},
    {"rows", T_ULONGLONG, offsetof(Scanner, events.rows), READONLY, NULL},
    {"waiting", T_ULONGLONG, offsetof(Scanner, waiting), READONLY, NULL},
    {"odd", T_ULONGLONG, offsetof(Scanner, events.odd), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef scanner_methods[] = {
    {"feed", scanner_feed, METH_O, NULL},
    {"columns", scanner_columns, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot scanner_slots[] = {
    {Py_tp_new, scanner_new},         {Py_tp_dealloc, scanner_dealloc}, {Py_tp_methods, scanner_methods},
    {Py_tp_members, scanner_members}, {Py_tp_getset, scanner_getset},   {0, NULL},
};
static PyType_Spec scanner_spec = {
    .name = "rlprof.trace._scan.Scanner",
    .basicsize = sizeof(Scanner),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = scanner_slots,
};

static int
setup(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &scanner_spec, NULL);
    int result = type ? PyModule_AddType(module, (PyTypeObject *)type) : -1;
    Py_XDECREF(type);
    return result < 0 ? -1 : column_setup(module);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, setup}, {0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "rlprof.trace._scan", .m_slots = slots};

PyMODINIT_FUNC
PyInit__scan(void)
{
#ifdef Py_GIL_DISABLED
    /* This module is not safe without the GIL, and importing it would enable the GIL for the whole program. */
    PyErr_SetString(PyExc_ImportError, "rlprof's C reader of traces needs the interpreter's lock");
    return NULL;
#endif
    return PyModuleDef_Init(&definition);
}
