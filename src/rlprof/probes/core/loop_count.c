/* Counts the environment steps and episodes of a training, by what each step returned. */
#include "loop.h"

/* The buffer of an array of truth values, one byte each. False: it is something else. */
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

/* Number of episodes that a step has ended, by the arrays `terminated` and `truncated`; -1 if they are something else.
 * Their length is the number of environments that were stepped: a vector may step only some of its own. */
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

/* Counts what a framework itself passes to its own counter. This count always holds. Steps that only fill a replay
 * buffer are no steps of the training. */
void
loop_count_dones(Loop *loop, PyObject *dones)
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
        PyObject *items = PySequence_Fast(dones, "the ends of episodes are not a sequence");
        for (; items != NULL && steps < PySequence_Fast_GET_SIZE(items) && !PyErr_Occurred(); steps++) {
            ended += PyObject_IsTrue(PySequence_Fast_GET_ITEM(items, steps));
        }
        Py_XDECREF(items);
        if (PyErr_Occurred()) {
            loop_failed(loop, "environment steps and episodes are not all counted");
            return;
        }
    }
    loop->ledger->trained = clock_now(&loop->ledger->clock);
    if (loop->filling) {
        return;
    }
    loop->ledger->iterations.steps += steps;
    loop->ledger->iterations.episodes += ended;
}

static void
count(int64_t change, int64_t *counted, int64_t *total, int64_t marked)
{
    change = change < marked - *total ? marked - *total : change;
    *counted += change;
    *total += change;
}

/* Adds to the ledger's counts, or subtracts. The counts of iterations that are already written do not change. */
void
loop_count(Loop *loop, int64_t steps, int64_t episodes)
{
    Iterations *iterations = &loop->ledger->iterations;
    if (loop->counts_steps) {
        count(steps, &loop->counted_steps, &iterations->steps, iterations->marked_steps);
    }
    if (loop->counts_episodes) {
        count(episodes, &loop->counted_episodes, &iterations->episodes, iterations->marked_episodes);
    }
}

/* Counts steps of the driver, and of threads while the driver is not inside an environment. A worker process counts its
 * own steps. They are the training's if the driver counts none. */
void
loop_count_step(Loop *loop, CallKind kind, const LoopCall *call, PyObject *result)
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
    if (ended < 0 && loop->counts_episodes) {
        PyObject *answer = loop_call_rules(loop, "ended_in", result, NULL, "episodes could not be counted");
        ended = answer ? PyLong_AsLongLong(answer) : -1;
        Py_XDECREF(answer);
        PyErr_Clear();
    }
    ended = ended < 0 ? 0 : ended;
    if (counts) {
        loop_count(loop, envs, ended);
    }
    if (call->driving) {
        loop->block_steps += envs;
        loop->block_episodes += ended;
        loop->last_ended = ended;
        loop->whole = ended > 0 && ended >= envs;
    }
}
