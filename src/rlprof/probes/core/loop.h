/* Where a training's loop is, judged by its calls of environments, networks and optimizers. */
#ifndef RLPROF_LOOP_H
#define RLPROF_LOOP_H

#include "core.h"

typedef enum {
    CALL_FORWARD,
    CALL_STEP,
    CALL_VECTOR_STEP,
    CALL_STEP_WAIT,
    CALL_RESET,
    CALL_BACKWARD,
    CALL_OPTIMIZER,
    CALL_ZERO_GRAD,
    CALL_DONES, /* its second argument has the environments that ended: counted, not timed */
    CALL_KINDS,
} CallKind;

typedef enum { PHASE_NONE, PHASE_ROLLOUT, PHASE_UPDATE, PHASE_PREFILL, PHASE_EVALUATION } Phase;

/* Kinds of forward passes: twice the leading dimension, plus one where gradients are kept. The oldest are forgotten. */
#define MAX_FORWARDS 32
typedef struct {
    int64_t of[MAX_FORWARDS];
    unsigned used, next;
} Forwards;

/* The state that the rules of rlprof.probes.phases read. They are called only where something may change. */
typedef struct {
    PyObject_HEAD
    PyObject *rules;
    Ledger *ledger;
    Span *acts, *learns, *inside_env; /* for forward passes */
    PyObject *is_grad_enabled, *is_traced; /* torch's functions, NULL before ask_torch */
    PyTypeObject *tensor;
    int phase;
    bool on;
    bool training; /* there is an optimizer */
    bool stepping; /* the driver is inside an environment */
    bool learned;  /* an optimizer has stepped since the last iteration began */
    bool asked;    /* a forward pass has chosen actions since the driver last called an environment */
    bool acted;    /* some step's actions were chosen by a forward pass */
    bool prefilled; /* nothing was learned yet, and the first steps were taken without a forward pass */
    bool mixed;     /* of them, some later ones were taken with one */
    bool counting;  /* the driver's steps are the training's, as far as is known */
    bool fresh;     /* the driver has stepped, and nothing was learned since */
    bool stepped;   /* some environment was stepped, by whatever thread */
    uint32_t seen;  /* of the steps in other processes, when something was last learned here */
    bool counts_steps, counts_episodes;
    int64_t counted_steps, counted_episodes;
    int64_t envs;  /* that the last step was for */
    int64_t steps; /* of all environments, in this rollout */
    int64_t batch; /* the largest that was learned from since an optimizer stepped */
    int64_t samples; /* learned from since the last epoch ended */
    const void *env; /* that the driver called last: an address, never followed */
    int64_t block_steps, block_episodes; /* the driver's, since the rules last took them */
    int64_t last_ended; /* episodes that the driver's last step ended */
    bool whole;         /* and that was the end of all of its environments' */
    Forwards acting; /* that were seen directly before a step */
    Forwards recent; /* since the last step or backward pass */
} Loop;

/* What is remembered from before a call until after it. */
typedef struct {
    Span *span; /* to be timed as, or NULL */
    int64_t envs;
    bool driving; /* by the driver, and not inside another environment */
} LoopCall;

extern PyTypeObject *Loop_Type;
extern const char *const CALL_NAMES[CALL_KINDS];

int loop_setup(PyObject *module);
/* None of them fails: an error warns once, and the training goes on. */
LoopCall loop_before(Loop *, CallKind, Span *usual, PyObject *const *args, Py_ssize_t count);
void loop_count(Loop *, int64_t steps, int64_t episodes);
void loop_after(Loop *, CallKind, const LoopCall *, PyObject *result); /* NULL: an exception is set, and kept */

#endif
