/* Times the levels of an environment in a sample of its steps: see levels.h. The driver's thread only. */
#include "loop.h"

static Level *
level_of(Loop *loop, PyObject *env)
{
    Levels *levels = &loop->levels;
    for (unsigned i = 0; i < levels->used; i++) {
        if (levels->of[i].type == Py_TYPE(env)) {
            return &levels->of[i];
        }
    }
    if (levels->used == MAX_LEVELS) {
        return NULL;
    }
    Level *level = &levels->of[levels->used++];
    *level = (Level){.type = (PyTypeObject *)Py_NewRef(Py_TYPE(env)), .depth = levels->timed};
    Py_XDECREF(loop_call_rules(loop, "new_level", env, NULL, "the wrappers of an environment are not known"));
    return level;
}

/* A step with a span begins. True if level_step_end follows. */
bool
level_step_begin(Loop *loop, int kind)
{
    Levels *levels = &loop->levels;
    bool steps = kind == CALL_STEP || kind == CALL_VECTOR_STEP || kind == CALL_STEP_WAIT || kind == CALL_LEVEL;
    if (!steps || !loop_is_driver(loop)) {
        return false;
    }
    if (levels->steps++ == 0) {
        uint64_t period = levels->entries < LEVEL_MANY ? LEVEL_PERIOD : LEVEL_LONG_PERIOD;
        levels->sampled = levels->entries++ % period == 0;
        levels->nest = levels->timed = 0;
    }
    return true;
}

void
level_step_end(Loop *loop)
{
    Levels *levels = &loop->levels;
    if (levels->steps > 0 && --levels->steps == 0) {
        levels->sampled = false;
    }
}

bool
level_enter(Loop *loop, PyObject *env)
{
    Levels *levels = &loop->levels;
    if (env == NULL || !loop_is_driver(loop)) {
        return false;
    }
    if (levels->nest++ == 0) {
        levels->timed = 0;
    }
    if (levels->timed >= MAX_LEVEL_DEPTH || levels->timed != levels->nest - 1) {
        return true;
    }
    int64_t entered = clock_now(&loop->ledger->clock);
    Level *level = level_of(loop, env);
    if (level == NULL || levels->timed != levels->nest - 1) { /* the rules may have run a step themselves */
        return true;
    }
    if (levels->timed < level->depth) {
        level->depth = levels->timed;
    }
    levels->open[levels->timed].level = level;
    levels->open[levels->timed].env = env;
    levels->open[levels->timed].entered = entered;
    levels->open[levels->timed].inner = 0;
    levels->open[levels->timed++].start = clock_now(&loop->ledger->clock);
    return true;
}

void
level_leave(Loop *loop)
{
    Levels *levels = &loop->levels;
    if (levels->nest == 0) {
        return; /* forgotten meanwhile, in a forked child */
    }
    if (levels->timed == levels->nest) {
        int64_t now = clock_now(&loop->ledger->clock);
        int place = --levels->timed;
        Level *level = levels->open[place].level;
        level->own += now - levels->open[place].start - levels->open[place].inner;
        /* A method that calls the one it overrides, by super(), is the same call. */
        level->calls += place == 0 || levels->open[place - 1].env != levels->open[place].env;
        if (place > 0) {
            levels->open[place - 1].inner += now - levels->open[place].entered;
        }
    }
    levels->nest--;
}

/* After a fork: the child measures its own steps. */
void
levels_forget(Loop *loop)
{
    Levels *levels = &loop->levels;
    for (unsigned i = 0; i < levels->used; i++) {
        Py_CLEAR(levels->of[i].type);
    }
    *levels = (Levels){0};
}

/* A list of (type, depth, timed calls, own ns), and the number of outermost steps. */
PyObject *
levels_list(const Loop *loop)
{
    PyObject *list = PyList_New(0);
    for (unsigned i = 0; list != NULL && i < loop->levels.used; i++) {
        const Level *level = &loop->levels.of[i];
        PyObject *row = Py_BuildValue("OiLL", level->type, level->depth, (long long)level->calls, (long long)level->own);
        if (row == NULL || PyList_Append(list, row) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}
