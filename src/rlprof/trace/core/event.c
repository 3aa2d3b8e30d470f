/* Reads one event. Members of every event go into columns, members of some events into pairs of row and value. */
#include "scan.h"

#include <string.h>

/* Members of an event that is not complete yet. */
typedef struct {
    Text phase, category, name, process, thread, start, duration;
    Text of_key[MAX_KEYS];
} Draft;

/* There are few keys, and most members differ from all of them in size. */
static int
key_named(const Events *events, Text quoted)
{
    size_t size = quoted.size - 2;
    for (int i = 0; i < events->key_count; i++) {
        const Key *key = &events->keys[i];
        if (key->size == size && memcmp(key->name, quoted.at + 1, size) == 0) {
            return i;
        }
    }
    return -1;
}

/* Moves to the value of the next member of an object; sets `*ended` if there is none. */
static Scan
next_member(Cursor *cursor, Text *key, bool *ended)
{
    Scan found = json_space(cursor);
    if (found == SCAN_OK && *cursor->at == ',') {
        cursor->at++;
        found = json_space(cursor);
    }
    if (found != SCAN_OK) {
        return found;
    }
    *ended = *cursor->at == '}';
    if (*ended) {
        cursor->at++;
        return SCAN_OK;
    }
    if (*cursor->at != '"') {
        return SCAN_BAD;
    }
    if ((found = json_string(cursor, key)) != SCAN_OK || (found = json_space(cursor)) != SCAN_OK) {
        return found;
    }
    if (*cursor->at != ':') {
        return SCAN_BAD;
    }
    cursor->at++;
    return json_space(cursor);
}

static Scan
read_args(const Events *events, Cursor *cursor, Draft *draft)
{
    Text key, value;
    bool ended;
    if (*cursor->at != '{') {
        return json_value(cursor, &value); /* null or an unknown type */
    }
    cursor->at++;
    for (;;) {
        Scan found = next_member(cursor, &key, &ended);
        if (found != SCAN_OK || ended) {
            return found;
        }
        if ((found = json_value(cursor, &value)) != SCAN_OK) {
            return found;
        }
        int index = key_named(events, key);
        if (index >= 0) {
            draft->of_key[index] = value;
        }
    }
}

static Text *
place_of(Draft *draft, Text key)
{
#define IS(word) (key.size == sizeof word + 1 && memcmp(key.at + 1, word, sizeof word - 1) == 0)
    switch (key.at[1]) {
    case 'p':
        return IS("ph") ? &draft->phase : IS("pid") ? &draft->process : NULL;
    case 'c':
        return IS("cat") ? &draft->category : NULL;
    case 'n':
        return IS("name") ? &draft->name : NULL;
    case 't':
        return IS("ts") ? &draft->start : IS("tid") ? &draft->thread : NULL;
    case 'd':
        return IS("dur") ? &draft->duration : NULL;
    default:
        return NULL;
    }
#undef IS
}

static int
add_index(Column *column, int64_t index)
{
    int32_t value = (int32_t)index;
    return column_add(column, &value, sizeof value);
}

static int
add_text(Events *events, Column *column, Text text, int64_t *last)
{
    int64_t index = text.at == NULL ? -1 : last ? texts_add_after(&events->texts, text, last)
                                                : texts_add(&events->texts, text);
    return text.at != NULL && index < 0 ? -1 : add_index(column, index);
}

static int
add_time(Column *column, Text text)
{
    int64_t value;
    if (text.at == NULL || !json_nanoseconds(text, &value)) {
        value = ABSENT;
    }
    return column_add(column, &value, sizeof value);
}

static int
add_key(Events *events, Key *key, Text text, int64_t row)
{
    int64_t value;
    if (text.at == NULL || (!key->is_text && !json_integer(text, &value))) {
        return 0;
    }
    if (key->is_text && (value = texts_add(&events->texts, text)) < 0) {
        return -1;
    }
    return add_index(&key->rows, row) < 0 || column_add(&key->values, &value, sizeof value) < 0 ? -1 : 0;
}

/* Arrows between events repeat the correlation numbers of the events. */
static bool
is_wanted(char phase)
{
    return phase != 's' && phase != 't' && phase != 'f';
}

static int
add_place(Events *events, const char *begin, const char *end)
{
    int64_t at = (int64_t)(events->origin_offset + (uint64_t)(begin - events->origin)), size = end - begin;
    return column_add(&events->at, &at, sizeof at) < 0 || column_add(&events->size, &size, sizeof size) < 0 ? -1 : 0;
}

static Scan
add(Events *events, const Draft *draft)
{
    char phase = draft->phase.at != NULL && draft->phase.size == 3 ? draft->phase.at[1] : 0;
    if (!is_wanted(phase) && !events->keeps_places) {
        return SCAN_OK;
    }
    int64_t row = (int64_t)events->rows;
    if (row >= INT32_MAX || column_add(&events->phase, &phase, 1) < 0 ||
        add_text(events, &events->category, draft->category, &events->last_category) < 0 ||
        add_text(events, &events->name, draft->name, NULL) < 0 ||
        add_text(events, &events->process, draft->process, &events->last_process) < 0 ||
        add_text(events, &events->thread, draft->thread, &events->last_thread) < 0 ||
        add_time(&events->start, draft->start) < 0 || add_time(&events->duration, draft->duration) < 0) {
        return SCAN_MEMORY;
    }
    for (int i = 0; i < events->key_count; i++) {
        if (add_key(events, &events->keys[i], draft->of_key[i], row) < 0) {
            return SCAN_MEMORY;
        }
    }
    events->rows++;
    return SCAN_OK;
}

/* Reads the element at the cursor. Moves the cursor behind the element if it is complete. */
Scan
events_read(Events *events, Cursor *cursor)
{
    Cursor inside = *cursor;
    Text key, value;
    Draft draft = {0};
    if (*inside.at != '{') {
        Scan found = json_value(&inside, &value);
        if (found == SCAN_OK) {
            events->odd++;
            *cursor = inside;
        }
        return found;
    }
    inside.at++;
    for (;;) {
        bool ended;
        Scan found = next_member(&inside, &key, &ended);
        if (found == SCAN_OK && ended) {
            uint64_t rows = events->rows;
            found = add(events, &draft);
            if (events->keeps_places && events->rows > rows && add_place(events, cursor->at, inside.at) < 0) {
                found = SCAN_MEMORY;
            }
            *cursor = inside;
            return found;
        }
        if (found == SCAN_OK) {
            bool is_args = key.size == 6 && memcmp(key.at, "\"args\"", 6) == 0;
            found = is_args ? read_args(events, &inside, &draft) : json_value(&inside, &value);
            Text *place = is_args || found != SCAN_OK ? NULL : place_of(&draft, key);
            if (place != NULL) {
                *place = value;
            }
        }
        if (found != SCAN_OK) {
            return found;
        }
    }
}

void
events_free(Events *events)
{
    Column *columns[] = {&events->phase, &events->category, &events->name, &events->process, &events->thread,
                         &events->start, &events->duration, &events->at,   &events->size};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        column_free(columns[i]);
    }
    for (int i = 0; i < events->key_count; i++) {
        column_free(&events->keys[i].rows);
        column_free(&events->keys[i].values);
    }
    texts_free(&events->texts);
}
