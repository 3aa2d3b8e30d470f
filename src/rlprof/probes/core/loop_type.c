/* The Loop as Python sees it. */
#include "loop.h"

#include <stddef.h>
#include <structmember.h>

PyTypeObject *Loop_Type;

/* Loop(ledger, rules, acts, learns, inside_env) */
static PyObject *
loop_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *ledger, *rules, *acts, *learns, *inside_env;
    static char *names[] = {"ledger", "rules", "acts", "learns", "inside_env", NULL};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO!O!O!", names, Ledger_Type, &ledger, &rules,
                                     Span_Type, &acts, Span_Type, &learns, Span_Type, &inside_env)) {
        return NULL;
    }
    Loop *loop = (Loop *)type->tp_alloc(type, 0);
    if (loop != NULL) {
        loop->ledger = (Ledger *)Py_NewRef(ledger);
        loop->rules = Py_NewRef(rules);
        loop->acts = (Span *)Py_NewRef(acts);
        loop->learns = (Span *)Py_NewRef(learns);
        loop->inside_env = (Span *)Py_NewRef(inside_env);
        loop->on = loop->counts_steps = loop->counts_episodes = loop->counting = true;
        loop->envs = 1;
    }
    return (PyObject *)loop;
}

/* use_torch(is_grad_enabled, is_traced, Tensor, is_anomaly_enabled=None): torch's functions for its state, and its type
 * of tensors. */
static PyObject *
loop_use_torch(Loop *loop, PyObject *args)
{
    PyObject *is_grad_enabled, *is_traced, *tensor, *is_anomaly_enabled = Py_None;
    if (!PyArg_ParseTuple(args, "OOO!|O", &is_grad_enabled, &is_traced, &PyType_Type, &tensor, &is_anomaly_enabled)) {
        return NULL;
    }
    Py_XSETREF(loop->is_grad_enabled, Py_NewRef(is_grad_enabled));
    Py_XSETREF(loop->is_traced, Py_NewRef(is_traced));
    Py_XSETREF(loop->tensor, (PyTypeObject *)Py_NewRef(tensor));
    Py_XSETREF(loop->is_anomaly_enabled, is_anomaly_enabled != Py_None ? Py_NewRef(is_anomaly_enabled) : NULL);
    Py_RETURN_NONE;
}

static PyObject *
loop_forget_recent(Loop *loop, PyObject *Py_UNUSED(ignored))
{
    loop->recent.used = 0;
    Py_RETURN_NONE;
}

static PyObject *
loop_forget_env(Loop *loop, PyObject *Py_UNUSED(ignored))
{
    loop->env = NULL;
    Py_RETURN_NONE;
}

/* take_block(): the driver's (steps, episodes) since the last call. */
static PyObject *
loop_take_block(Loop *loop, PyObject *Py_UNUSED(ignored))
{
    PyObject *taken = Py_BuildValue("LL", (long long)loop->block_steps, (long long)loop->block_episodes);
    loop->block_steps = loop->block_episodes = 0;
    return taken;
}

/* recount(steps, episodes): add to the count, or subtract. */
static PyObject *
loop_recount(Loop *loop, PyObject *args)
{
    long long steps, episodes;
    if (!PyArg_ParseTuple(args, "LL", &steps, &episodes)) {
        return NULL;
    }
    loop_count(loop, steps, episodes);
    Py_RETURN_NONE;
}

/* has_acted(size, gradients) */
static PyObject *
loop_has_acted(Loop *loop, PyObject *args)
{
    long long size;
    int gradients;
    if (!PyArg_ParseTuple(args, "Lp", &size, &gradients)) {
        return NULL;
    }
    return PyBool_FromLong(forwards_have(&loop->acting, 2 * size + gradients));
}

static PyObject *
sizes_dict(const Sizes *sizes)
{
    PyObject *dict = PyDict_New();
    for (unsigned i = 0; dict != NULL && i < sizes->used; i++) {
        PyObject *size = PyLong_FromLongLong(sizes->size[i]), *count = PyLong_FromLongLong(sizes->count[i]);
        if (size == NULL || count == NULL || PyDict_SetItem(dict, size, count) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(size);
        Py_XDECREF(count);
    }
    return dict;
}

/* batch_sizes(): how often each batch size acted, and how often an optimizer learned from each. */
static PyObject *
loop_batch_sizes(Loop *loop, PyObject *Py_UNUSED(ignored))
{
    PyObject *acting = sizes_dict(&loop->acting_sizes);
    PyObject *learning = acting ? sizes_dict(&loop->learning_sizes) : NULL;
    if (learning == NULL) {
        Py_XDECREF(acting);
        return NULL;
    }
    return Py_BuildValue("NN", acting, learning);
}

/* env_levels(): a list of (class, depth, timed calls, own ns). */
static PyObject *
loop_env_levels(Loop *loop, PyObject *Py_UNUSED(ignored))
{
    return levels_list(loop);
}

/* forget_levels(): in a forked child. */
static PyObject *
loop_forget_levels(Loop *loop, PyObject *Py_UNUSED(ignored))
{
    levels_forget(loop);
    Py_RETURN_NONE;
}

static int
loop_traverse(PyObject *self, visitproc visit, void *arg)
{
    Loop *loop = (Loop *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(loop->ledger);
    Py_VISIT(loop->rules);
    Py_VISIT(loop->acts);
    Py_VISIT(loop->learns);
    Py_VISIT(loop->inside_env);
    Py_VISIT(loop->is_grad_enabled);
    Py_VISIT(loop->is_traced);
    Py_VISIT(loop->tensor);
    Py_VISIT(loop->is_anomaly_enabled);
    for (unsigned i = 0; i < loop->levels.used; i++) {
        Py_VISIT(loop->levels.of[i].type);
    }
    return 0;
}

/* The rules hold the loop. None takes their place, because a later call must find an object. */
static int
loop_clear(PyObject *self)
{
    Loop *loop = (Loop *)self;
    loop->on = false;
    Py_XSETREF(loop->rules, Py_NewRef(Py_None));
    Py_CLEAR(loop->is_grad_enabled);
    Py_CLEAR(loop->is_traced);
    Py_CLEAR(loop->tensor);
    Py_CLEAR(loop->is_anomaly_enabled);
    levels_forget(loop);
    return 0;
}

static void
loop_dealloc(PyObject *self)
{
    Loop *loop = (Loop *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    loop_clear(self);
    Py_XDECREF(loop->rules);
    Py_XDECREF(loop->ledger);
    Py_XDECREF(loop->acts);
    Py_XDECREF(loop->learns);
    Py_XDECREF(loop->inside_env);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef loop_methods[] = {
    {"use_torch", (PyCFunction)loop_use_torch, METH_VARARGS, NULL},
    {"forget_recent", (PyCFunction)loop_forget_recent, METH_NOARGS, NULL},
    {"forget_env", (PyCFunction)loop_forget_env, METH_NOARGS, NULL},
    {"take_block", (PyCFunction)loop_take_block, METH_NOARGS, NULL},
    {"recount", (PyCFunction)loop_recount, METH_VARARGS, NULL},
    {"has_acted", (PyCFunction)loop_has_acted, METH_VARARGS, NULL},
    {"batch_sizes", (PyCFunction)loop_batch_sizes, METH_NOARGS, NULL},
    {"env_levels", (PyCFunction)loop_env_levels, METH_NOARGS, NULL},
    {"forget_levels", (PyCFunction)loop_forget_levels, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef loop_members[] = {
    {"phase", T_INT, offsetof(Loop, phase), 0, NULL},
    {"on", T_BOOL, offsetof(Loop, on), 0, NULL},
    {"training", T_BOOL, offsetof(Loop, training), 0, NULL},
    {"stepping", T_BOOL, offsetof(Loop, stepping), 0, NULL},
    {"learned", T_BOOL, offsetof(Loop, learned), 0, NULL},
    {"action_chosen", T_BOOL, offsetof(Loop, action_chosen), 0, NULL},
    {"acted", T_BOOL, offsetof(Loop, acted), READONLY, NULL},
    {"prefilled", T_BOOL, offsetof(Loop, prefilled), 0, NULL},
    {"mixed", T_BOOL, offsetof(Loop, mixed), 0, NULL},
    {"counting", T_BOOL, offsetof(Loop, counting), 0, NULL},
    {"filling", T_BOOL, offsetof(Loop, filling), 0, NULL},
    {"fresh", T_BOOL, offsetof(Loop, fresh), READONLY, NULL},
    {"stepped", T_BOOL, offsetof(Loop, stepped), READONLY, NULL},
    {"whole", T_BOOL, offsetof(Loop, whole), READONLY, NULL},
    {"last_ended", T_LONGLONG, offsetof(Loop, last_ended), READONLY, NULL},
    {"counts_steps", T_BOOL, offsetof(Loop, counts_steps), 0, NULL},
    {"counts_episodes", T_BOOL, offsetof(Loop, counts_episodes), 0, NULL},
    {"counted_steps", T_LONGLONG, offsetof(Loop, counted_steps), READONLY, NULL},
    {"counted_episodes", T_LONGLONG, offsetof(Loop, counted_episodes), READONLY, NULL},
    {"envs", T_LONGLONG, offsetof(Loop, envs), READONLY, NULL},
    {"steps", T_LONGLONG, offsetof(Loop, steps), 0, NULL},
    {"backwards", T_LONGLONG, offsetof(Loop, backwards), READONLY, NULL},
    {"anomalous", T_LONGLONG, offsetof(Loop, anomalous), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot loop_slots[] = {
    {Py_tp_new, loop_new},
    {Py_tp_traverse, loop_traverse},
    {Py_tp_clear, loop_clear},
    {Py_tp_dealloc, loop_dealloc},
    {Py_tp_methods, loop_methods},
    {Py_tp_members, loop_members},
    {0, NULL},
};
static PyType_Spec loop_spec = {
    .name = "rlprof.ledger._core.Loop",
    .basicsize = sizeof(Loop),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = loop_slots,
};

int
loop_setup(PyObject *module)
{
    Loop_Type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &loop_spec, NULL);
    return Loop_Type ? PyModule_AddType(module, Loop_Type) : -1;
}
