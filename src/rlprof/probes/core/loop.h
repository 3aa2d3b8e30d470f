/* The state of a training's loop, found by its calls of environments, networks and optimizers. */
#ifndef RLPROF_LOOP_H
#define RLPROF_LOOP_H

#include "core.h"
#include "forwards.h"
#include "levels.h"
#include "sizes.h"

typedef enum {
    CALL_FORWARD,
    CALL_STEP,
    CALL_VECTOR_STEP,
    CALL_STEP_WAIT,
    CALL_RESET,
    CALL_BACKWARD,
    CALL_OPTIMIZER,
    CALL_ZERO_GRAD,
    CALL_DONES, /* counted, not timed: its second argument has a flag per environment, true at the end of an episode */
    CALL_LOSS,  /* of a framework that computes losses in modules of its own: shows the size of a batch */
    CALL_LEVEL, /* a step inside a vector of environments: only its levels are timed */
    CALL_KINDS,
} CallKind;

typedef enum { PHASE_NONE, PHASE_ROLLOUT, PHASE_UPDATE, PHASE_PREFILL, PHASE_EVALUATION } Phase;

/* The state that the rules of rlprof.probes.phase_rules read. They are called only where something may change. */
typedef struct {
    PyObject_HEAD
    PyObject *rules;
    Ledger *ledger;
    Span *acts, *learns, *inside_env;      /* for forward passes */
    PyObject *is_grad_enabled, *is_traced; /* torch's functions, NULL before use_torch */
    PyObject *is_anomaly_enabled;          /* NULL if unknown */
    PyTypeObject *tensor;
    int phase;
    bool on;
    bool training;      /* there is an optimizer */
    bool stepping;      /* the driver is inside an environment */
    bool learned;       /* an optimizer has stepped since the last iteration began */
    bool action_chosen; /* a forward pass has chosen actions since the driver last called an environment */
    bool acted;         /* a forward pass has chosen the actions of some step */
    bool prefilled;     /* nothing was learned yet, and no forward pass chose the actions of the first steps */
    bool mixed;         /* and a forward pass chose the actions of some later steps */
    bool counting;      /* the driver's steps are the training's, as far as is known */
    bool filling;       /* a framework's probe knows that the steps only fill a replay buffer */
    bool fresh;         /* the driver has stepped, and nothing was learned since */
    bool stepped;       /* some thread has stepped an environment */
    uint32_t seen;      /* steps of other processes when this process last learned */
    bool counts_steps, counts_episodes;
    int64_t counted_steps, counted_episodes;
    int64_t envs;        /* number of environments in the last step */
    int64_t steps;       /* of all environments, in this rollout */
    int64_t batch;       /* size of the largest batch since an optimizer last stepped */
    int64_t samples;     /* learned from since the last epoch ended */
    const void *env;     /* the environment that the driver called last: an address, never followed */
    int64_t block_steps; /* the driver's steps and episodes since the rules last took them */
    int64_t block_episodes;
    int64_t last_ended; /* number of episodes that the driver's last step ended */
    bool whole;         /* the last step ended the episodes of all of its environments */
    Forwards acting;    /* kinds that were seen directly before a step */
    Forwards recent;    /* kinds that were seen since the last step or backward pass */
    int64_t learning_batch; /* as `batch`, whether or not the rules are on */
    Sizes acting_sizes;     /* of forward passes that choose actions */
    Sizes learning_sizes;   /* of the largest batch before each optimizer step */
    int64_t backwards, anomalous; /* backward passes, and those in torch's anomaly mode */
    Levels levels;
} Loop;

/* Remembered from before a call until after it. */
typedef struct {
    Span *span; /* times the call; NULL: it is not timed */
    int64_t envs;
    bool driving; /* called by the driver, and not from inside another environment */
} LoopCall;

extern PyTypeObject *Loop_Type;
extern const char *const CALL_NAMES[CALL_KINDS];

int loop_setup(PyObject *module);
/* None of these raises: an error warns once, and the training goes on. */
LoopCall loop_before(Loop *, CallKind, Span *usual, PyObject *const *args, Py_ssize_t count);
void loop_after(Loop *, CallKind, const LoopCall *, PyObject *result); /* NULL: an exception is set, and kept */
void loop_count(Loop *, int64_t steps, int64_t episodes);
void loop_count_dones(Loop *, PyObject *dones);
void loop_count_step(Loop *, CallKind, const LoopCall *, PyObject *result);
PyObject *loop_call_rules(Loop *, const char *method, PyObject *first, PyObject *second, const char *otherwise);
void loop_failed(Loop *, const char *what);
bool loop_is_driver(const Loop *);

/* levels.c. Every level_enter that returns true is followed by level_leave. */
bool level_step_begin(Loop *, int kind);
void level_step_end(Loop *);
bool level_enter(Loop *, PyObject *env);
void level_leave(Loop *);
void levels_forget(Loop *);
PyObject *levels_list(const Loop *);

#endif
