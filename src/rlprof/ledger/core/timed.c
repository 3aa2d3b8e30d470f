/* @profile_function on a plain function: a callable that times its calls and otherwise is the function.
 *
 * Its type says METHOD_DESCRIPTOR, so obj.method() passes obj on without making a bound method first. */
#include "core.h"

#include <stddef.h>
#include <structmember.h>

PyTypeObject *Timed_Type;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Span *span;
    PyObject *function;
    PyObject *method; /* a Python function that does the same, for bound methods */
    bool outermost;   /* inside of itself it is not timed */
    PyObject *family; /* tuple of spans inside of which it is not timed either */
    PyObject *around; /* NULL, or what is called in the function's place and times it */
    bool chooses;     /* then `around` is asked for the span instead */
    PyObject *dict;
    PyObject *weakrefs;
} Timed;

/* Whether it is timed already, as what the innermost span is. Who waits inside a wait is timed too. */
static bool
is_inside(const Timed *timed)
{
    if (span_is_innermost(timed->span)) {
        return true;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(timed->family); i++) {
        if (span_is_innermost((Span *)PyTuple_GET_ITEM(timed->family, i))) {
            return true;
        }
    }
    const Ledger *ledger = timed->span->ledger;
    const Thread *thread = this_thread;
    return timed->span->flags & SPAN_WAIT && ledger->mode & MODE_ENABLED && thread != NULL &&
           thread->ledger == ledger && thread->lane->waits > 0;
}

/* Asked with the first argument after the object itself: one call is quicker than passing everything on.
 * An answer that is no span: this call is not timed. */
static PyObject *
timed_as_chosen(Timed *timed, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t count = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *span = PyObject_CallOneArg(timed->around, count > 1 ? args[1] : Py_None);
    if (span == NULL) {
        return NULL;
    }
    bool entered = Py_IS_TYPE(span, Span_Type) && span_enter((Span *)span);
    PyObject *result = PyObject_Vectorcall(timed->function, args, nargsf, kwnames);
    if (entered) {
        span_exit((Span *)span);
    }
    Py_DECREF(span);
    return result;
}

static PyObject *
timed_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Timed *timed = (Timed *)self;
    if (timed->outermost && is_inside(timed)) {
        return PyObject_Vectorcall(timed->function, args, nargsf, kwnames);
    }
    if (timed->around != NULL && timed->span->ledger->mode & MODE_ENABLED) {
        return timed->chooses ? timed_as_chosen(timed, args, nargsf, kwnames)
                              : PyObject_Vectorcall(timed->around, args, nargsf, kwnames);
    }
    bool entered = span_enter(timed->span);
    PyObject *result = PyObject_Vectorcall(timed->function, args, nargsf, kwnames);
    if (entered) {
        span_exit(timed->span);
    }
    return result;
}

static bool
all_spans(PyObject *family)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(family); i++) {
        if (!Py_IS_TYPE(PyTuple_GET_ITEM(family, i), Span_Type)) {
            PyErr_SetString(PyExc_TypeError, "a family is a tuple of spans");
            return false;
        }
    }
    return true;
}

/* Timed(span, function, method, outermost=False, around=None, family=(), chooses=False) */
static PyObject *
timed_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *span, *function, *method, *around = Py_None, *family = NULL;
    int outermost = 0, chooses = 0;
    static char *names[] = {"span", "function", "method", "outermost", "around", "family", "chooses", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO|pOO!p", names, Span_Type, &span, &function, &method,
                                     &outermost, &around, &PyTuple_Type, &family, &chooses) ||
        (family != NULL && !all_spans(family))) {
        return NULL;
    }
    family = family ? Py_NewRef(family) : PyTuple_New(0);
    if (family == NULL) {
        return NULL;
    }
    Timed *timed = (Timed *)type->tp_alloc(type, 0);
    if (timed == NULL) {
        Py_DECREF(family);
    }
    else {
        timed->vectorcall = timed_call;
        timed->span = (Span *)Py_NewRef(span);
        timed->function = Py_NewRef(function);
        timed->method = Py_NewRef(method);
        timed->outermost = outermost;
        timed->family = family;
        timed->chooses = chooses;
        timed->around = around == Py_None ? NULL : Py_NewRef(around);
    }
    return (PyObject *)timed;
}

/* obj.method() never comes here, but code that takes a class or a method apart does (torch.compile, inspect, pickle): it
 * must find a Python function. */
static PyObject *
timed_get(PyObject *self, PyObject *object, PyObject *Py_UNUSED(type))
{
    PyObject *method = ((Timed *)self)->method;
    return object == NULL || object == Py_None ? Py_NewRef(method) : PyMethod_New(method, object);
}

static int
timed_traverse(PyObject *self, visitproc visit, void *arg)
{
    Timed *timed = (Timed *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(timed->span);
    Py_VISIT(timed->function);
    Py_VISIT(timed->method);
    Py_VISIT(timed->family);
    Py_VISIT(timed->around);
    Py_VISIT(timed->dict);
    return 0;
}

/* The span stays: a call must find it even while the garbage collector takes a cycle apart. */
static int
timed_clear(PyObject *self)
{
    Py_CLEAR(((Timed *)self)->dict);
    return 0;
}

static void
timed_dealloc(PyObject *self)
{
    Timed *timed = (Timed *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (timed->weakrefs != NULL) {
        PyObject_ClearWeakRefs(self);
    }
    timed_clear(self);
    Py_XDECREF(timed->span);
    Py_XDECREF(timed->function);
    Py_XDECREF(timed->method);
    Py_XDECREF(timed->family);
    Py_XDECREF(timed->around);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
timed_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<profiled %R>", ((Timed *)self)->function);
}

static PyObject *
timed_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    Timed *timed = (Timed *)self;
    return PyObject_CallMethod(timed->span->ledger->hooks, "reduce_function", "OO", (PyObject *)timed->span,
                               timed->function);
}

static PyMethodDef timed_methods[] = {
    {"__reduce__", timed_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef timed_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Timed, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(Timed, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Timed, weakrefs), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(Timed, function), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef timed_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot timed_slots[] = {
    {Py_tp_new, timed_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_descr_get, timed_get},
    {Py_tp_traverse, timed_traverse},
    {Py_tp_clear, timed_clear},
    {Py_tp_dealloc, timed_dealloc},
    {Py_tp_repr, timed_repr},
    {Py_tp_methods, timed_methods},
    {Py_tp_members, timed_members},
    {Py_tp_getset, timed_getset},
    {0, NULL},
};
static PyType_Spec timed_spec = {
    .name = "rlprof.ledger._core.Timed",
    .basicsize = sizeof(Timed),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .slots = timed_slots,
};

/* For torch.compile, which traces the Python functions it finds on the type: see rlprof.ledger.compiled. They are put
 * into the dictionary and not set as attributes, so that real calls go on through the slots. */
static int
show_to_dynamo(PyObject *compiled, const char *attribute, const char *function)
{
    PyObject *traced = compiled ? PyObject_GetAttrString(compiled, function) : NULL;
    int result = traced ? PyDict_SetItemString(Timed_Type->tp_dict, attribute, traced) : -1;
    Py_XDECREF(traced);
    return result;
}

int
timed_setup(PyObject *module)
{
    Timed_Type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &timed_spec, NULL);
    PyObject *compiled = Timed_Type ? PyImport_ImportModule("rlprof.ledger.compiled") : NULL;
    if (show_to_dynamo(compiled, "__call__", "call") < 0 || show_to_dynamo(compiled, "__get__", "get") < 0) {
        Py_XDECREF(compiled);
        return -1;
    }
    Py_DECREF(compiled);
    PyType_Modified(Timed_Type);
    return PyModule_AddType(module, Timed_Type);
}
