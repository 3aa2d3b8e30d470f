/* Runs at every call of an environment, a network or an optimizer, to find the phase of a training. The rules are in
 * rlprof.probes.phase_rules, and are called only where something may change. loop_count.c counts the steps. */
#include "loop.h"

const char *const CALL_NAMES[CALL_KINDS] = {"forward",  "step",      "vector_step", "step_wait", "reset",
                                            "backward", "optimizer", "zero_grad",   "dones",     "loss",
                                            "level"};

/* ---- calls into Python ---- */

#define NO_PHASE "the phases of this training could not be found"

void
loop_failed(Loop *loop, const char *what)
{
    if (!pass_on_interrupt()) {
        complain(loop->ledger, what);
        PyErr_Clear();
    }
}

/* Calls a method of the rules with up to two arguments. NULL: it failed, and `otherwise` was the warning. */
SLOW_PATH PyObject *
loop_call_rules(Loop *loop, const char *method, PyObject *first, PyObject *second, const char *otherwise)
{
    Ledger *ledger = loop->ledger;
    Thread *thread = ledger->mode & MODE_ENABLED ? thread_here(ledger) : NULL;
    bool own = own_begin(thread, NULL);
    PyObject *name = PyUnicode_FromString(method);
    PyObject *answer = name ? PyObject_CallMethodObjArgs(loop->rules, name, first, second, NULL) : NULL;
    own_end(thread, own);
    Py_XDECREF(name);
    if (answer == NULL) {
        loop_failed(loop, otherwise);
    }
    return answer;
}

static bool
is_true(PyObject *builtin)
{
    PyObject *answer = builtin ? PyObject_CallNoArgs(builtin) : NULL;
    bool yes = answer != NULL && answer != Py_False && answer != Py_None;
    PyErr_Clear();
    Py_XDECREF(answer);
    return yes;
}

bool
loop_is_driver(const Loop *loop)
{
    const Ledger *ledger = loop->ledger;
    return (ledger->elsewhere ? ledger->local : ledger->driving) == PyThread_get_thread_ident();
}

/* Length of a plain tensor; -1 if it is something else. The length in the type's C base makes no object, so it takes a
 * quarter of the time that the shape takes, and torch.jit.trace does not record it. */
static int64_t
plain_length(const Loop *loop, PyObject *argument)
{
    if (argument == NULL || !Py_IS_TYPE(argument, loop->tensor)) {
        return -1;
    }
    const PyTypeObject *base = loop->tensor->tp_base;
    if (base == NULL || base->tp_as_mapping == NULL || base->tp_as_mapping->mp_length == NULL) {
        return -1;
    }
    Py_ssize_t length = base->tp_as_mapping->mp_length(argument);
    if (length < 0 && !pass_on_interrupt()) {
        PyErr_Clear();
    }
    return length > 0 ? length : -1; /* also 0 without dimensions */
}

/* The leading dimension of a network's argument; -1 if unknown. A symbolic dimension counts as unknown, because
 * converting it to a number would fix it. */
static int64_t
leading_dimension(Loop *loop, PyObject *argument)
{
    static PyObject *name;
    if (argument == NULL || argument == Py_None) {
        return -1;
    }
    if (name == NULL && (name = PyUnicode_InternFromString("shape")) == NULL) {
        PyErr_Clear();
        return -1;
    }
    PyObject *shape = PyObject_GetAttr(argument, name);
    PyObject *size = NULL;
    if (shape != NULL && PyTuple_Check(shape) && PyTuple_GET_SIZE(shape) > 0) {
        size = Py_NewRef(PyTuple_GET_ITEM(shape, 0));
    }
    else {
        if (!pass_on_interrupt()) {
            PyErr_Clear();
        }
        size = loop_call_rules(loop, "size_of", argument, NULL, NO_PHASE);
    }
    int64_t number = size != NULL && PyLong_CheckExact(size) ? PyLong_AsLongLong(size) : -1;
    PyErr_Clear();
    Py_XDECREF(shape);
    Py_XDECREF(size);
    return number;
}

/* ---- the calls ---- */

/* True if a rollout or a prefill may begin with this call of an environment, so that the rules must be called. */
static bool
may_begin(const Loop *loop, bool steps)
{
    switch (loop->phase) {
    case PHASE_NONE:
        return steps;
    case PHASE_ROLLOUT:
        return loop->learned || (steps && loop->prefilled && !loop->action_chosen);
    case PHASE_PREFILL:
        return steps && loop->action_chosen && !loop->mixed;
    case PHASE_EVALUATION:
        return false;
    default:
        return true;
    }
}

/* Before a step (`envs` > 0) or a reset. True if the driver calls, and not from inside another environment. */
static bool
enter_env(Loop *loop, PyObject *env, int64_t envs)
{
    if (envs > 0 && loop->on && !loop->stepping) {
        training_begins(loop->ledger, false); /* on whatever thread */
    }
    if (loop->stepping || !loop_is_driver(loop)) {
        return false;
    }
    if (loop->on && loop->training) {
        if (env != loop->env && env != NULL) {
            loop->env = env;
            Py_XDECREF(loop_call_rules(loop, "switch_to", env, envs > 0 ? Py_False : Py_True, NO_PHASE));
        }
        if (may_begin(loop, envs > 0)) {
            Py_XDECREF(loop_call_rules(loop, "before_rollout", NULL, NULL, NO_PHASE));
        }
    }
    loop->stepping = true;
    loop->acted |= envs > 0 && loop->action_chosen;
    loop->fresh |= envs > 0;
    loop->action_chosen = loop->whole = false;
    if (envs > 0 && loop->phase != PHASE_EVALUATION) {
        if (loop->steps == 0) {
            loop->samples = loop->batch = 0;
        }
        loop->envs = envs;
        loop->steps += envs;
        for (unsigned i = 0; i < loop->recent.used; i++) {
            forwards_add(&loop->acting, loop->recent.of[i]);
        }
        loop->recent.used = 0;
    }
    return true;
}

/* Before a forward pass: decides whether it chooses actions or learns, and returns its span. */
static Span *
forward(Loop *loop, PyObject *argument)
{
    bool gradients = is_true(loop->is_grad_enabled);
    Span *usual = gradients ? loop->learns : loop->acts;
    if (!loop->on || !loop_is_driver(loop)) {
        return usual;
    }
    if (loop->stepping || (loop->phase == PHASE_NONE && (!loop->training || loop->env == NULL))) {
        return loop->stepping ? loop->inside_env : usual;
    }
    int64_t size = plain_length(loop, argument);
    if (size < 0) {
        if (is_true(loop->is_traced)) {
            return usual; /* torch.jit.trace would record the query of a size */
        }
        size = leading_dimension(loop, argument);
    }
    if (size < 0) {
        loop->action_chosen |= loop->phase != PHASE_UPDATE;
        return loop->phase == PHASE_UPDATE ? loop->learns : loop->acts;
    }
    int64_t kind = 2 * size + gradients;
    bool acts = forwards_have(&loop->acting, kind);
    if (loop->phase == PHASE_EVALUATION && loop->whole && acts) {
        Py_XDECREF(loop_call_rules(loop, "after_episode", NULL, NULL, NO_PHASE));
    }
    if (loop->phase == PHASE_EVALUATION) {
        loop->action_chosen = true;
        return loop->acts;
    }
    if (acts != (loop->phase == PHASE_ROLLOUT) || loop->phase == PHASE_NONE || loop->phase == PHASE_PREFILL) {
        PyObject *number = PyLong_FromLongLong(size);
        PyObject *mode = gradients ? Py_True : Py_False;
        PyObject *answer = number ? loop_call_rules(loop, "is_acting", number, mode, NO_PHASE) : NULL;
        acts = answer == Py_True;
        PyErr_Clear();
        Py_XDECREF(number);
        Py_XDECREF(answer);
    }
    forwards_add(&loop->recent, kind);
    loop->action_chosen |= acts;
    if (acts) {
        sizes_add(&loop->acting_sizes, size);
    }
    else if (size > loop->batch) {
        loop->batch = size;
    }
    if (!acts && size > loop->learning_batch) {
        loop->learning_batch = size;
    }
    return acts ? loop->acts : loop->learns;
}

static void
begin_update(Loop *loop)
{
    if (loop->phase != PHASE_NONE && loop->phase != PHASE_UPDATE) {
        Py_XDECREF(loop_call_rules(loop, "begin_update", NULL, NULL, NO_PHASE));
    }
}

/* True if other processes have stepped since this one last learned. Used for a learner that never steps itself. */
static bool
others_stepped(Loop *loop)
{
    const Page *page = loop->ledger->member.page;
    if (loop->stepped || page == NULL) {
        return false;
    }
    uint32_t before = loop->seen;
    loop->seen = __atomic_load_n(&page->stepped, __ATOMIC_RELAXED);
    return loop->seen != before;
}

/* Before a backward pass or an optimizer step. A forward pass is not enough: it may be misjudged. */
static void
learns(Loop *loop)
{
    if (loop->fresh || others_stepped(loop)) {
        loop->fresh = false;
        training_begins(loop->ledger, true);
        Py_XDECREF(loop_call_rules(loop, "learns", NULL, NULL, NO_PHASE));
    }
}

/* The recent forward passes have learned, so passes like them do not act. Only those that fit the environments may. */
static void
before_backward(Loop *loop)
{
    loop->backwards++;
    loop->anomalous += is_true(loop->is_anomaly_enabled);
    if (!loop->stepping) {
        training_begins(loop->ledger, true);
    }
    if (!loop->on || loop->stepping || !loop_is_driver(loop)) {
        return;
    }
    learns(loop);
    for (unsigned i = 0; i < loop->recent.used; i++) {
        if (loop->recent.of[i] / 2 != loop->envs) {
            forwards_remove(&loop->acting, loop->recent.of[i]);
        }
    }
    loop->recent.used = 0;
    begin_update(loop);
}

/* An epoch has ended once the training has learned from as many samples as it has collected. */
static void
after_optimizer(Loop *loop)
{
    loop->learned = true;
    loop->ledger->learned = true;
    loop->ledger->trained = clock_now(&loop->ledger->clock);
    if (loop->learning_batch > 0) {
        sizes_add(&loop->learning_sizes, loop->learning_batch);
    }
    loop->learning_batch = 0;
    loop->samples += loop->batch;
    loop->batch = 0;
    if (loop->on && loop->steps > 0 && loop->samples >= loop->steps) {
        loop->samples = 0;
        Py_XDECREF(loop_call_rules(loop, "epoch_ended", NULL, NULL, "epochs could not be found"));
    }
}

/* The call of a loss, which learns from the batch that it gets. */
static void
note_loss(Loop *loop, PyObject *argument)
{
    if (!loop_is_driver(loop) || is_true(loop->is_traced)) {
        return;
    }
    int64_t size = leading_dimension(loop, argument);
    if (size > loop->learning_batch) {
        loop->learning_batch = size;
    }
}

static int64_t
envs_of(PyObject *vector)
{
    PyObject *number = vector ? PyObject_GetAttrString(vector, "num_envs") : NULL;
    int64_t envs = number ? PyLong_AsLongLong(number) : 0;
    Py_XDECREF(number);
    PyErr_Clear();
    return envs < 0 ? 0 : envs;
}

/* ---- around a call ---- */

LoopCall
loop_before(Loop *loop, CallKind kind, Span *usual, PyObject *const *args, Py_ssize_t count)
{
    LoopCall call = {.span = usual};
    PyObject *env = count > 0 ? args[0] : NULL;
    switch (kind) {
    case CALL_FORWARD:
        call.span = forward(loop, count > 1 ? args[1] : NULL);
        break;
    case CALL_STEP:
    case CALL_VECTOR_STEP:
    case CALL_STEP_WAIT:
        call.envs = kind == CALL_STEP ? 1 : envs_of(env);
        call.driving = kind != CALL_STEP_WAIT && enter_env(loop, env, call.envs);
        loop->stepped = true;
        break;
    case CALL_RESET:
        call.driving = enter_env(loop, env, 0);
        break;
    case CALL_BACKWARD:
        before_backward(loop);
        break;
    case CALL_LOSS:
        note_loss(loop, count > 1 ? args[1] : NULL);
        break;
    case CALL_LEVEL:
        break;
    case CALL_DONES:
        call.span = NULL;
        if (count > 2) {
            loop_count_dones(loop, args[2]);
        }
        break;
    default:
        if (loop->on && !loop->stepping && (loop->steps > 0 || !loop->stepped) && loop_is_driver(loop)) {
            if (kind == CALL_OPTIMIZER) {
                learns(loop);
            }
            if (loop->steps > 0) {
                begin_update(loop);
            }
        }
    }
    return call;
}

void
loop_after(Loop *loop, CallKind kind, const LoopCall *call, PyObject *result)
{
    if (call->driving) {
        loop->stepping = false;
    }
    if (result == NULL) {
        return;
    }
    if (kind == CALL_STEP || kind == CALL_VECTOR_STEP || kind == CALL_STEP_WAIT) {
        loop_count_step(loop, kind, call, result);
    }
    else if (kind == CALL_OPTIMIZER && !loop->stepping && loop_is_driver(loop)) {
        after_optimizer(loop);
    }
}
