/* Reads the JSON of a trace into columns, one event at a time, without building an object per event.
 *
 * The text comes in pieces. An event or a value of the header that is not complete yet stays in the buffer and is read
 * again when there is more text. An event enters the columns when its last brace is read, so all events before a
 * damaged place are complete.
 *
 *   json.c      where strings, numbers and values end
 *   texts.c     every text once
 *   column.c    growing arrays, which numpy reads without copying
 *   event.c     one event
 *   scanner.c   the text around the events, and the type that Python sees
 */
#ifndef RLPROF_TRACE_SCAN_H
#define RLPROF_TRACE_SCAN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum { SCAN_OK, SCAN_MORE, SCAN_BAD, SCAN_MEMORY } Scan;

typedef struct {
    const char *at, *end;
} Cursor;

/* A part of the text; a string includes its quotes. */
typedef struct {
    const char *at;
    size_t size;
} Text;

/* json.c */
Scan json_space(Cursor *cursor);
Scan json_string(Cursor *cursor, Text *text);
Scan json_value(Cursor *cursor, Text *text);
bool json_integer(Text text, int64_t *value);
bool json_nanoseconds(Text text, int64_t *value);

/* column.c */
typedef struct {
    char *data;
    size_t used, size; /* bytes */
} Column;

int column_add(Column *column, const void *item, size_t size);
void column_free(Column *column);
PyObject *column_give(Column *column); /* hands it over to Python, which then owns it */
int column_setup(PyObject *module);

/* texts.c */
typedef struct {
    Column bytes;  /* all texts, one after the other */
    Column ends;   /* uint64_t: the end of each */
    uint32_t *table; /* index + 1; 0 is free */
    size_t capacity; /* a power of two */
    uint64_t seed;   /* random, so that a file cannot choose names that all have one hash */
} Texts;

int64_t texts_add(Texts *texts, Text text); /* its index; -1 without memory */
int64_t texts_add_after(Texts *texts, Text text, int64_t *last); /* `last` is checked first, because texts repeat */
void texts_free(Texts *texts);

/* event.c */
enum { MAX_KEYS = 16 };

typedef struct {
    char name[40];
    size_t size;
    bool is_text;
    Column rows, values;
} Key;

typedef struct {
    Column phase, category, name, process, thread, start, duration;
    Texts texts;
    Key keys[MAX_KEYS];
    int key_count;
    int64_t last_category, last_process, last_thread; /* the last event's, because they repeat */
    uint64_t rows, odd;
    bool keeps_places;     /* keeps the place of each event in the text; then arrows are rows, too */
    Column at, size;       /* int64_t, bytes */
    const char *origin;    /* the first byte of the buffer */
    uint64_t origin_offset; /* and its place in the whole text */
} Events;

#define ABSENT INT64_MIN

Scan events_read(Events *events, Cursor *cursor);
void events_free(Events *events);

#endif
