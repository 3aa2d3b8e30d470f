/* The Span type: what `profile(name)` returns.
 *
 * `with` looks __enter__ and __exit__ up on the type and would bind two new method objects. The descriptors below
 * return existing objects, so a span allocates nothing. For __enter__ it is the span itself, whose vectorcall
 * without arguments enters, and with one argument decorates a function. For __exit__ it is a builtin method that was
 * made with the span, because the interpreter calls builtins faster. */
#include "core.h"

#include <stddef.h>
#include <structmember.h>

PyTypeObject *Span_Type;

static PyMethodDef exit_definition = {
    "__exit__", (PyCFunction)(void (*)(void))span_exit_method, METH_FASTCALL, NULL};

Span *
span_get(Ledger *ledger, Operation *operation, unsigned flags)
{
    for (Span *span = operation->spans; span != NULL; span = span->next) {
        if (span->flags == flags) {
            return span;
        }
    }
    Span *span = PyObject_GC_New(Span, Span_Type);
    if (span == NULL) {
        return NULL;
    }
    span->vectorcall = span_call;
    span->ledger = (Ledger *)Py_NewRef((PyObject *)ledger);
    span->operation = operation;
    span->flags = flags;
    span->exit = PyCFunction_New(&exit_definition, (PyObject *)span);
    if (span->exit == NULL) {
        span->next = NULL;
        Py_DECREF(span);
        return NULL;
    }
    /* The plain one goes first, where profile() looks for it. The list holds the ledger's reference. */
    Span **at = flags == 0 || operation->spans == NULL ? &operation->spans : &operation->spans->next;
    span->next = *at;
    *at = span;
    PyObject_GC_Track(span);
    return span;
}

/* No tp_clear: the ledger breaks the cycle, so that a span always has one. */
static int
span_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Span *)self)->ledger);
    Py_VISIT(((Span *)self)->exit);
    return 0;
}

static void
span_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_DECREF(((Span *)self)->ledger);
    Py_XDECREF(((Span *)self)->exit);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyObject *
span_repr(PyObject *self)
{
    Span *span = (Span *)self;
    return PyUnicode_FromFormat("profile(%R%s%s)", span->operation->name,
                                span->flags & SPAN_MEMORY ? ", track_memory=True" : "",
                                span->flags & SPAN_WAIT ? ", wait=True" : "");
}

static PyObject *
span_name(PyObject *self, void *Py_UNUSED(closure))
{
    return Py_NewRef(((Span *)self)->operation->name);
}

static PyObject *
span_arguments(PyObject *self, void *Py_UNUSED(closure))
{
    Span *span = (Span *)self;
    PyObject *device = span->flags & SPAN_DEVICE ? Py_True : span->flags & SPAN_NO_DEVICE ? Py_False : Py_None;
    return Py_BuildValue("(OOOOO)", span->operation->name, span->flags & SPAN_MEMORY ? Py_True : Py_False, Py_None,
                         span->flags & SPAN_WAIT ? Py_True : Py_False, device);
}

/* Pickled and copied as the call that returned it. */
static PyObject *
span_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue("(ON)", ((Span *)self)->ledger->profile, span_arguments(self, NULL));
}

static PyMethodDef span_methods[] = {
    {"__reduce__", span_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef span_getset[] = {
    {"name", span_name, NULL, PyDoc_STR("The operation's name."), NULL},
    {"arguments", span_arguments, NULL, PyDoc_STR("What profile() was called with."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef span_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Span, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot span_slots[] = {
    {Py_tp_doc, "One operation, to be timed: a context manager and a decorator."},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_traverse, span_traverse},
    {Py_tp_dealloc, span_dealloc},
    {Py_tp_repr, span_repr},
    {Py_tp_methods, span_methods},
    {Py_tp_getset, span_getset},
    {Py_tp_members, span_members},
    {0, NULL},
};
static PyType_Spec span_spec = {
    .name = "rlprof.ledger._core.Span",
    .basicsize = sizeof(Span),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = span_slots,
};

/* ---- __enter__ and __exit__ ---- */

static bool
is_span(PyObject *object)
{
    return object != NULL && Py_IS_TYPE(object, Span_Type);
}

static PyObject *
enter_get(PyObject *self, PyObject *span, PyObject *Py_UNUSED(type))
{
    return Py_NewRef(span != NULL ? span : self);
}

static PyObject *
exit_get(PyObject *self, PyObject *span, PyObject *Py_UNUSED(type))
{
    return Py_NewRef(is_span(span) ? ((Span *)span)->exit : self);
}

/* contextlib.ExitStack takes __enter__ and __exit__ off the type and calls them with the span. */
static PyObject *
enter_call(PyObject *Py_UNUSED(self), PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *span;
    if (!PyArg_ParseTuple(args, "O!:__enter__", Span_Type, &span)) {
        return NULL;
    }
    span_enter((Span *)span);
    return Py_NewRef(span);
}

static PyObject *
exit_call(PyObject *Py_UNUSED(self), PyObject *args, PyObject *Py_UNUSED(kwargs))
{
    PyObject *span, *type, *value, *traceback;
    if (!PyArg_ParseTuple(args, "O!OOO:__exit__", Span_Type, &span, &type, &value, &traceback)) {
        return NULL;
    }
    span_exit((Span *)span);
    Py_RETURN_NONE;
}

static PyType_Slot enter_slots[] = {{Py_tp_descr_get, enter_get}, {Py_tp_call, enter_call}, {0, NULL}};
static PyType_Slot exit_slots[] = {{Py_tp_descr_get, exit_get}, {Py_tp_call, exit_call}, {0, NULL}};

static int
add_descriptor(const char *attribute, PyType_Slot *slots)
{
    PyType_Spec spec = {
        .name = "rlprof.ledger._core.SpanMethod",
        .basicsize = sizeof(PyObject),
        .flags = Py_TPFLAGS_DEFAULT,
        .slots = slots,
    };
    PyObject *type = PyType_FromSpec(&spec);
    PyObject *descriptor = type ? PyObject_CallNoArgs(type) : NULL;
    int result = descriptor ? PyObject_SetAttrString((PyObject *)Span_Type, attribute, descriptor) : -1;
    Py_XDECREF(descriptor);
    Py_XDECREF(type);
    return result;
}

int
span_setup(PyObject *module)
{
    Span_Type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &span_spec, NULL);
    if (Span_Type == NULL || add_descriptor("__enter__", enter_slots) < 0 ||
        add_descriptor("__exit__", exit_slots) < 0) {
        return -1;
    }
    return PyModule_AddType(module, Span_Type);
}
