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
    PyObject *dict;
    PyObject *weakrefs;
} Timed;

static PyObject *
timed_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Timed *timed = (Timed *)self;
    if (timed->outermost && span_is_innermost(timed->span)) {
        return PyObject_Vectorcall(timed->function, args, nargsf, kwnames);
    }
    bool entered = span_enter(timed->span);
    PyObject *result = PyObject_Vectorcall(timed->function, args, nargsf, kwnames);
    if (entered) {
        span_exit(timed->span);
    }
    return result;
}

/* Timed(span, function, method, outermost=False) */
static PyObject *
timed_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *span, *function, *method;
    int outermost = 0;
    static char *names[] = {"span", "function", "method", "outermost", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO|p", names, Span_Type, &span, &function, &method, &outermost)) {
        return NULL;
    }
    Timed *timed = (Timed *)type->tp_alloc(type, 0);
    if (timed != NULL) {
        timed->vectorcall = timed_call;
        timed->span = (Span *)Py_NewRef(span);
        timed->function = Py_NewRef(function);
        timed->method = Py_NewRef(method);
        timed->outermost = outermost;
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
