/* Runs at every call of an environment, a network or an optimizer, to know the phase of a training and to count its steps.
 * The rules are in rlprof.probes.phases, and are called only where something may change.
 *
 * Long, because a training calls it at every step: all of it is one unit for the compiler. */
#include "loop.h"

const char *const CALL_NAMES[CALL_KINDS] = {"forward",  "step",      "vector_step", "step_wait", "reset",
                                            "backward", "optimizer", "zero_grad", "dones"};

static bool
forwards_have(const Forwards *forwards, int64_t kind)
{
    for (unsigned i = 0; i < forwards->used; i++) {
        if (forwards->of[i] == kind) {
            return true;
        }
    }
    return false;
}

static void
forwards_add(Forwards *forwards, int64_t kind)
{
    if (forwards_have(forwards, kind)) {
        return;
    }
    if (forwards->used < MAX_FORWARDS) {
        forwards->of[forwards->used++] = kind;
    }
    else {
        forwards->of[forwards->next++ % MAX_FORWARDS] = kind;
    }
}

static void
forwards_remove(Forwards *forwards, int64_t kind)
{
    for (unsigned i = 0; i < forwards->used; i++) {
        if (forwards->of[i] == kind) {
            forwards->of[i] = forwards->of[--forwards->used];
            return;
        }
    }
}

/* ---- calls into Python ---- */

#define NO_PHASE "the phases of this training could not be found"

static void
failed(Loop *loop, const char *what)
{
    if (!pass_on_interrupt()) {
        complain(loop->ledger, what);
        PyErr_Clear();
    }
}

/* With up to two arguments. NULL: the rules failed, and a warning has said what is unknown now. */
static SLOW_PATH PyObject *
ask_rules(Loop *loop, const char *method, PyObject *first, PyObject *second, const char *otherwise)
{
    Ledger *ledger = loop->ledger;
    Thread *thread = ledger->mode & MODE_ENABLED ? thread_here(ledger) : NULL;
    bool own = own_begin(thread, NULL);
    PyObject *name = PyUnicode_FromString(method);
    PyObject *answer = name ? PyObject_CallMethodObjArgs(loop->rules, name, first, second, NULL) : NULL;
    own_end(thread, own);
    Py_XDECREF(name);
    if (answer == NULL) {
        failed(loop, otherwise);
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

static bool
is_driver(const Loop *loop)
{
    const Ledger *ledger = loop->ledger;
    return (ledger->elsewhere ? ledger->local : ledger->driving) == PyThread_get_thread_ident();
}

/* Of a tensor that is no more than that. What its type's C base says is neither recorded by torch.jit.trace, as its
 * shape would be, nor does it make an object, which takes four times as long. -1: ask for its shape. */
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

/* The leading dimension of what a network is given; -1: not known. A symbolic one would be fixed by being looked at. */
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
        size = ask_rules(loop, "size_of", argument, NULL, NO_PHASE);
    }
    int64_t number = size != NULL && PyLong_CheckExact(size) ? PyLong_AsLongLong(size) : -1;
    PyErr_Clear();
    Py_XDECREF(shape);
    Py_XDECREF(size);
    return number;
}

/* ---- the calls ---- */

/* Whether the rules must be called before the driver calls an environment: a rollout or a prefill may begin. */
static bool
may_begin(const Loop *loop, bool steps)
{
    switch (loop->phase) {
    case PHASE_NONE:
        return steps;
    case PHASE_ROLLOUT:
        return loop->learned || (steps && loop->prefilled && !loop->asked);
    case PHASE_PREFILL:
        return steps && loop->asked && !loop->mixed;
    case PHASE_EVALUATION:
        return false;
    default:
        return true;
    }
}

static bool
enter_env(Loop *loop, PyObject *env, int64_t envs)
{
    if (envs > 0 && loop->on && !loop->stepping) {
        training_begins(loop->ledger, false); /* on whatever thread */
    }
    if (loop->stepping || !is_driver(loop)) {
        return false;
    }
    if (loop->on && loop->training) {
        if (env != loop->env && env != NULL) {
            loop->env = env;
            Py_XDECREF(ask_rules(loop, "turn_to", env, envs > 0 ? Py_False : Py_True, NO_PHASE));
        }
        if (may_begin(loop, envs > 0)) {
            Py_XDECREF(ask_rules(loop, "before_rollout", NULL, NULL, NO_PHASE));
        }
    }
    loop->stepping = true;
    loop->acted |= envs > 0 && loop->asked;
    loop->fresh |= envs > 0;
    loop->asked = loop->whole = false;
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

static Span *
forward(Loop *loop, PyObject *argument)
{
    bool gradients = is_true(loop->is_grad_enabled);
    Span *usual = gradients ? loop->learns : loop->acts;
    if (!loop->on || !is_driver(loop)) {
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
        loop->asked |= loop->phase != PHASE_UPDATE;
        return loop->phase == PHASE_UPDATE ? loop->learns : loop->acts;
    }
    int64_t kind = 2 * size + gradients;
    bool known = forwards_have(&loop->acting, kind);
    bool acts = known;
    if (loop->phase == PHASE_EVALUATION && loop->whole && known) {
        Py_XDECREF(ask_rules(loop, "after_episode", NULL, NULL, NO_PHASE));
    }
    if (loop->phase == PHASE_EVALUATION) {
        loop->asked = true;
        return loop->acts;
    }
    if (known != (loop->phase == PHASE_ROLLOUT) || loop->phase == PHASE_NONE || loop->phase == PHASE_PREFILL) {
        PyObject *number = PyLong_FromLongLong(size);
        PyObject *answer = number ? ask_rules(loop, "is_acting", number, gradients ? Py_True : Py_False, NO_PHASE) : NULL;
        acts = answer == Py_True;
        PyErr_Clear();
        Py_XDECREF(number);
        Py_XDECREF(answer);
    }
    forwards_add(&loop->recent, kind);
    loop->asked |= acts;
    if (!acts && size > loop->batch) {
        loop->batch = size;
    }
    return acts ? loop->acts : loop->learns;
}

static void
begin_update(Loop *loop)
{
    if (loop->phase != PHASE_NONE && loop->phase != PHASE_UPDATE) {
        Py_XDECREF(ask_rules(loop, "begin_update", NULL, NULL, NO_PHASE));
    }
}

/* Whether other processes have stepped since something was last learned here, for a learner that never steps itself. */
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

/* A forward pass alone is no learning: it may be misjudged. */
static void
learns(Loop *loop)
{
    if (loop->fresh || others_stepped(loop)) {
        loop->fresh = false;
        training_begins(loop->ledger, true);
        Py_XDECREF(ask_rules(loop, "learns", NULL, NULL, NO_PHASE));
    }
}

/* What was taken for acting has learned; where acting and learning look the same, it stays acting. */
static void
before_backward(Loop *loop)
{
    if (!loop->stepping) {
        training_begins(loop->ledger, true);
    }
    if (!loop->on || loop->stepping || !is_driver(loop)) {
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

/* An epoch has ended when as much was learned from as was collected. */
static void
after_optimizer(Loop *loop)
{
    loop->learned = true;
    loop->ledger->learned = true;
    loop->ledger->trained = clock_now(&loop->ledger->clock);
    loop->samples += loop->batch;
    loop->batch = 0;
    if (loop->on && loop->steps > 0 && loop->samples >= loop->steps) {
        loop->samples = 0;
        Py_XDECREF(ask_rules(loop, "epoch_ended", NULL, NULL, "epochs could not be found"));
    }
}

static int64_t
envs_of(PyObject *vector)
{
    PyObject *number = PyObject_GetAttrString(vector, "num_envs");
    int64_t envs = number ? PyLong_AsLongLong(number) : 0;
    Py_XDECREF(number);
    PyErr_Clear();
    return envs < 0 ? 0 : envs;
}

/* ---- counting ---- */

static bool
flags_of(PyObject *array, Py_buffer *buffer)
{
    if (PyObject_GetBuffer(array, buffer, PyBUF_CONTIG_RO | PyBUF_FORMAT) < 0) {
        PyErr_Clear();
        return false;
    }
    if (buffer->itemsize == 1) {
        return true;
    }
    PyBuffer_Release(buffer);
    return false;
}

/* How many episodes a step has ended, by the arrays `terminated` and `truncated`; -1: they are something else. The
 * arrays also tell how many environments were stepped: a vector may step some of its own. */
static int64_t
ended_of(PyObject *terminated, PyObject *truncated, int64_t *envs)
{
    if (terminated == Py_True || truncated == Py_True) {
        return 1;
    }
    if (terminated == Py_False && truncated == Py_False) {
        return 0;
    }
    Py_buffer one, other;
    int64_t ended = -1;
    if (!flags_of(terminated, &one)) {
        return -1;
    }
    if (flags_of(truncated, &other)) {
        if (one.len == other.len) {
            const char *a = one.buf, *b = other.buf;
            ended = 0;
            *envs = one.len;
            for (Py_ssize_t i = 0; i < one.len; i++) {
                ended += (a[i] | b[i]) != 0;
            }
        }
        PyBuffer_Release(&other);
    }
    PyBuffer_Release(&one);
    return ended;
}

/* A framework's own count: it holds, whatever else counts. */
static void
count_dones(Loop *loop, PyObject *dones)
{
    Py_buffer flags;
    int64_t steps = 0, ended = 0;
    if (dones == Py_None) {
        return;
    }
    if (flags_of(dones, &flags)) {
        steps = flags.len;
        for (Py_ssize_t i = 0; i < flags.len; i++) {
            ended += ((const char *)flags.buf)[i] != 0;
        }
        PyBuffer_Release(&flags);
    }
    else {
        PyObject *items = PySequence_Fast(dones, "who ended is not told by a sequence");
        for (; items != NULL && steps < PySequence_Fast_GET_SIZE(items) && !PyErr_Occurred(); steps++) {
            ended += PyObject_IsTrue(PySequence_Fast_GET_ITEM(items, steps));
        }
        Py_XDECREF(items);
        if (PyErr_Occurred()) {
            failed(loop, "environment steps and episodes are not all counted");
            return;
        }
    }
    loop->ledger->trained = clock_now(&loop->ledger->clock);
    loop->ledger->iterations.steps += steps;
    loop->ledger->iterations.episodes += ended;
}

/* Adds to what the ledger counts, or takes back; but what an iteration has is written, and stays. */
void
loop_count(Loop *loop, int64_t steps, int64_t episodes)
{
    Iterations *iterations = &loop->ledger->iterations;
    if (loop->counts_steps) {
        int64_t least = iterations->marked_steps - iterations->steps;
        steps = steps < least ? least : steps;
        loop->counted_steps += steps;
        iterations->steps += steps;
    }
    if (loop->counts_episodes) {
        int64_t least = iterations->marked_episodes - iterations->episodes;
        episodes = episodes < least ? least : episodes;
        loop->counted_episodes += episodes;
        iterations->episodes += episodes;
    }
}

/* The driver's own steps, or those of threads that it lets step. A worker's process counts its own: they are the
 * training's where the driver counts none. */
static void
count_step(Loop *loop, CallKind kind, const LoopCall *call, PyObject *result)
{
    if (!loop->on || !(call->driving || (!loop->stepping && (loop->ledger->driving != 0 || loop->ledger->elsewhere)))) {
        return;
    }
    loop->ledger->trained = clock_now(&loop->ledger->clock);
    if (loop->ledger->elsewhere && loop->ledger->member.page != NULL) {
        __atomic_fetch_add(&loop->ledger->member.page->stepped, 1, __ATOMIC_RELAXED);
    }
    bool counts = loop->counting || !call->driving;
    int64_t ended = -1, envs = call->envs;
    if (PyTuple_CheckExact(result) && PyTuple_GET_SIZE(result) == 5) {
        ended = ended_of(PyTuple_GET_ITEM(result, 2), PyTuple_GET_ITEM(result, 3), &envs);
        envs = kind == CALL_STEP ? call->envs : envs;
    }
    loop_count(loop, counts ? envs : 0, 0);
    if (call->driving) {
        loop->block_steps += envs;
        loop->last_ended = 0;
        loop->whole = false;
    }
    if (ended < 0 && loop->counts_episodes) {
        PyObject *answer = ask_rules(loop, "ended_in", result, NULL, "episodes could not be counted");
        ended = answer ? PyLong_AsLongLong(answer) : -1;
        Py_XDECREF(answer);
        PyErr_Clear();
    }
    if (ended > 0) {
        loop_count(loop, 0, counts ? ended : 0);
        if (call->driving) {
            loop->block_episodes += ended;
            loop->last_ended = ended;
            loop->whole = ended >= envs;
        }
    }
}

/* ---- around a call ---- */

LoopCall
loop_before(Loop *loop, CallKind kind, Span *usual, PyObject *const *args, Py_ssize_t count)
{
    LoopCall call = {.span = usual};
    switch (kind) {
    case CALL_FORWARD:
        call.span = forward(loop, count > 1 ? args[1] : NULL);
        break;
    case CALL_STEP:
    case CALL_VECTOR_STEP:
        call.envs = kind == CALL_STEP ? 1 : count > 0 ? envs_of(args[0]) : 0;
        call.driving = enter_env(loop, count > 0 ? args[0] : NULL, call.envs);
        loop->stepped = true;
        break;
    case CALL_STEP_WAIT:
        call.envs = count > 0 ? envs_of(args[0]) : 0;
        loop->stepped = true;
        break;
    case CALL_RESET:
        call.driving = enter_env(loop, count > 0 ? args[0] : NULL, 0);
        break;
    case CALL_BACKWARD:
        before_backward(loop);
        break;
    case CALL_DONES:
        call.span = NULL;
        if (count > 2) {
            count_dones(loop, args[2]);
        }
        break;
    default:
        if (loop->on && !loop->stepping && (loop->steps > 0 || !loop->stepped) && is_driver(loop)) {
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
        count_step(loop, kind, call, result);
    }
    else if (kind == CALL_OPTIMIZER && !loop->stepping && is_driver(loop)) {
        after_optimizer(loop);
    }
}
