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
    PyObject *dict;
    PyObject *weakrefs;
} Timed;

static PyObject *
timed_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Timed *timed = (Timed *)self;
    bool entered = span_enter(timed->span);
    PyObject *result = PyObject_Vectorcall(timed->function, args, nargsf, kwnames);
    if (entered) {
        span_exit(timed->span);
    }
    return result;
}

/* timed(span, function) */
static PyObject *
timed_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *span, *function;
    static char *names[] = {"span", "function", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O", names, Span_Type, &span, &function)) {
        return NULL;
    }
    Timed *timed = (Timed *)type->tp_alloc(type, 0);
    if (timed != NULL) {
        timed->vectorcall = timed_call;
        timed->span = (Span *)Py_NewRef(span);
        timed->function = Py_NewRef(function);
    }
    return (PyObject *)timed;
}

static PyObject *
timed_get(PyObject *self, PyObject *object, PyObject *Py_UNUSED(type))
{
    return object == NULL || object == Py_None ? Py_NewRef(self) : PyMethod_New(self, object);
}

static int
timed_traverse(PyObject *self, visitproc visit, void *arg)
{
    Timed *timed = (Timed *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(timed->span);
    Py_VISIT(timed->function);
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
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
timed_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<profiled %R>", ((Timed *)self)->function);
}

/* Pickled as a function is: by its name. */
static PyObject *
timed_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyObject_GetAttrString(((Timed *)self)->function, "__qualname__");
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

int
timed_setup(PyObject *module)
{
    Timed_Type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &timed_spec, NULL);
    return Timed_Type == NULL ? -1 : PyModule_AddType(module, Timed_Type);
}
