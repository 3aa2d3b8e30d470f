/* @profile_function on a plain function: a callable that times its calls and otherwise behaves as the function.
 *
 * Its type has the flag METHOD_DESCRIPTOR, so obj.method() passes obj on without making a bound method first. */
#include "loop.h"

#include <opcode.h>
#include <stddef.h>
#include <structmember.h>

PyTypeObject *Timed_Type;

enum { MAX_FAMILY = 16 };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Span *span;
    PyObject *function;
    PyObject *method; /* a Python function that does the same, for bound methods */
    bool outermost;   /* calls directly inside one of these operations are not timed; its own operation comes first */
    int8_t inside_count;
    const Operation *inside[MAX_FAMILY];
    PyObject *around; /* NULL, or a callable that is called instead of the function and times it */
    Loop *loop;       /* NULL, or the loop that calls are reported to */
    CallKind kind;
    PyObject *name;   /* of the class attribute, if known */
    PyObject *dict;
    PyObject *weakrefs;
} Timed;

/* True if the innermost open span already times this call, or if this call waits inside a wait. Every layer of a
 * network calls this, so it only looks at the thread, its innermost node and this object. */
static bool
is_inside(const Timed *timed)
{
    const Ledger *ledger = timed->span->ledger;
    const Thread *thread = this_thread;
    if (!(ledger->mode & MODE_ENABLED) || thread == NULL || thread->ledger != ledger) {
        return false;
    }
    const Operation *innermost = thread->lane->top->node->operation;
    for (int i = 0; i < timed->inside_count; i++) {
        if (timed->inside[i] == innermost) {
            return true;
        }
    }
    return timed->span->flags & SPAN_WAIT && thread->lane->waits > 0;
}

/* True if this call is a level of a step that is sampled: see levels.h. */
static bool
is_sampled(const Timed *timed)
{
    return timed->loop != NULL && timed->loop->levels.sampled &&
           (timed->kind == CALL_STEP || timed->kind == CALL_VECTOR_STEP || timed->kind == CALL_LEVEL);
}

static PyObject *
timed_level(Timed *timed, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Loop *loop = (Loop *)Py_NewRef(timed->loop);
    bool entered = level_enter(loop, PyVectorcall_NARGS(nargsf) > 0 ? args[0] : NULL);
    PyObject *result = PyObject_Vectorcall(timed->function, args, nargsf, kwnames);
    if (entered) {
        level_leave(loop);
    }
    Py_DECREF(loop);
    return result;
}

static PyObject *
timed_in_loop(Timed *timed, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Loop *loop = (Loop *)Py_NewRef(timed->loop);
    Ledger *ledger = timed->span->ledger;
    int64_t began = clock_now(&ledger->clock);
    Py_ssize_t count = PyVectorcall_NARGS(nargsf) + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    LoopCall call = loop_before(loop, timed->kind, timed->span, args, count);
    bool entered = call.span != NULL && span_enter(call.span);
    int64_t start = entered ? this_thread->lane->mark : 0, end = 0;
    bool stepping = level_step_begin(loop, timed->kind);
    PyObject *result = is_sampled(timed) ? timed_level(timed, args, nargsf, kwnames)
                                         : PyObject_Vectorcall(timed->function, args, nargsf, kwnames);
    if (stepping) {
        level_step_end(loop);
    }
    if (entered) {
        span_exit(call.span);
        end = this_thread != NULL ? this_thread->lane->mark : 0;
    }
    loop_after(loop, timed->kind, &call, result);
    if (entered) {
        own_around(ledger, began, start, end);
    }
    Py_DECREF(loop);
    return result;
}

static PyObject *
timed_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Timed *timed = (Timed *)self;
    if (timed->outermost && is_inside(timed)) {
        return is_sampled(timed) ? timed_level(timed, args, nargsf, kwnames)
                                 : PyObject_Vectorcall(timed->function, args, nargsf, kwnames);
    }
    if ((timed->loop != NULL || timed->around != NULL) && timed->span->ledger->mode & MODE_ENABLED) {
        return timed->loop != NULL ? timed_in_loop(timed, args, nargsf, kwnames)
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
is_family(PyObject *family)
{
    bool fits = PyTuple_GET_SIZE(family) < MAX_FAMILY;
    for (Py_ssize_t i = 0; fits && i < PyTuple_GET_SIZE(family); i++) {
        fits = Py_IS_TYPE(PyTuple_GET_ITEM(family, i), Span_Type);
    }
    if (!fits) {
        PyErr_Format(PyExc_TypeError, "a family is a tuple of less than %d spans", MAX_FAMILY);
    }
    return fits;
}

static int
kind_named(const char *name)
{
    for (int kind = 0; kind < CALL_KINDS; kind++) {
        if (strcmp(name, CALL_NAMES[kind]) == 0) {
            return kind;
        }
    }
    PyErr_Format(PyExc_ValueError, "no kind of call is named '%.50s'", name);
    return -1;
}

static void
timed_take_name(Timed *timed, PyObject *name)
{
    if (PyUnicode_CheckExact(name)) {
        Py_XSETREF(timed->name, Py_NewRef(name));
        PyUnicode_InternInPlace(&timed->name);
    }
}

/* Timed(span, function, method, outermost=False, around=None, family=(), loop=None, kind="forward") */
static PyObject *
timed_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *span, *function, *method, *around = Py_None, *family = NULL, *loop = Py_None;
    int outermost = 0;
    const char *kind_name = CALL_NAMES[0];
    static char *names[] = {"span", "function", "method", "outermost", "around", "family", "loop", "kind", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO|pOO!Os", names, Span_Type, &span, &function, &method,
                                     &outermost, &around, &PyTuple_Type, &family, &loop, &kind_name) ||
        (family != NULL && !is_family(family))) {
        return NULL;
    }
    int kind = kind_named(kind_name);
    if (kind < 0 || (loop != Py_None && !Py_IS_TYPE(loop, Loop_Type))) {
        return kind < 0 ? NULL : PyErr_Format(PyExc_TypeError, "loop is a Loop, not %R", loop);
    }
    Timed *timed = (Timed *)type->tp_alloc(type, 0);
    if (timed == NULL) {
        return NULL;
    }
    timed->vectorcall = timed_call;
    timed->span = (Span *)Py_NewRef(span);
    timed->function = Py_NewRef(function);
    timed->method = Py_NewRef(method);
    timed->outermost = outermost;
    timed->inside[timed->inside_count++] = timed->span->operation;
    for (Py_ssize_t i = 0; family != NULL && i < PyTuple_GET_SIZE(family); i++) {
        timed->inside[timed->inside_count++] = ((Span *)PyTuple_GET_ITEM(family, i))->operation;
    }
    timed->around = around == Py_None ? NULL : Py_NewRef(around);
    timed->loop = loop == Py_None ? NULL : (Loop *)Py_NewRef(loop);
    timed->kind = (CallKind)kind;
    PyObject *name = PyObject_GetAttrString(function, "__name__");
    if (name != NULL) {
        timed_take_name(timed, name);
        Py_DECREF(name);
    }
    PyErr_Clear();
    return (PyObject *)timed;
}

/* True if the running code loads a method only to call it, as in `module.__call__(x)`. No other code sees the method
 * then. A compiler that inspects a module loads it by another instruction. */
static bool
is_called_at_once(void)
{
    PyFrameObject *frame = PyEval_GetFrame(); /* borrowed */
    if (frame == NULL) {
        return false;
    }
    int place = PyFrame_GetLasti(frame);
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *bytes = PyCode_GetCode(code);
    bool called = false;
    if (bytes != NULL && place >= 0 && place + 1 < PyBytes_GET_SIZE(bytes)) {
        const unsigned char *instruction = (const unsigned char *)PyBytes_AS_STRING(bytes) + place;
#if PY_VERSION_HEX < 0x030C0000
        called = instruction[0] == LOAD_METHOD;
#else
        called = instruction[0] == LOAD_ATTR && (instruction[1] & 1);
#endif
    }
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_DECREF(code);
    return called;
}

/* obj.method() does not call this, but code that inspects a class or a method does (torch.compile, inspect, pickle). It
 * must find a Python function. If the object's class has another object of that name, super() was used and the call
 * follows at once. Wrappers of environments do so at every step, and get this object, which is faster. */
static PyObject *
timed_get(PyObject *self, PyObject *object, PyObject *Py_UNUSED(type))
{
    Timed *timed = (Timed *)self;
    bool none = object == NULL || object == Py_None;
    if (timed->method == timed->function && is_called_at_once()) {
        return none ? Py_NewRef(self) : PyMethod_New(self, object);
    }
    if (none) {
        return Py_NewRef(timed->method);
    }
    PyObject *found = timed->name != NULL ? _PyType_Lookup(Py_TYPE(object), timed->name) /* borrowed */ : NULL;
    return PyMethod_New(found != NULL && found != self ? self : timed->method, object);
}

static int
timed_traverse(PyObject *self, visitproc visit, void *arg)
{
    Timed *timed = (Timed *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(timed->span);
    Py_VISIT(timed->function);
    Py_VISIT(timed->method);
    Py_VISIT(timed->around);
    Py_VISIT(timed->loop);
    Py_VISIT(timed->dict);
    return 0;
}

/* The span stays: a call needs it even while the garbage collector breaks a cycle. */
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
    Py_XDECREF(timed->around);
    Py_XDECREF(timed->loop);
    Py_XDECREF(timed->name);
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

/* Called by classes with the attribute's name, which may differ from the function's. */
static PyObject *
timed_set_name(PyObject *self, PyObject *args)
{
    PyObject *owner, *name;
    if (!PyArg_ParseTuple(args, "OO", &owner, &name)) {
        return NULL;
    }
    timed_take_name((Timed *)self, name);
    Py_RETURN_NONE;
}

static PyMethodDef timed_methods[] = {
    {"__set_name__", timed_set_name, METH_VARARGS, NULL},
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

/* For torch.compile, which traces the Python functions that it finds on the type: see rlprof.ledger.compiled. They are
 * put into the dictionary and not set as attributes, so that real calls use the slots. */
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
