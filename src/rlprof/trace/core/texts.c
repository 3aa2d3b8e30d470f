/* Stores every text once: a trace has millions of events but only thousands of names. */
#include "scan.h"

#include <string.h>

static uint64_t
hash_of(Text text, uint64_t seed)
{
    uint64_t hash = seed ^ (text.size * 0x9E3779B97F4A7C15u), word;
    const char *at = text.at;
    size_t left = text.size;
    for (; left >= 8; at += 8, left -= 8) {
        memcpy(&word, at, 8);
        hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, at, left);
    hash = (hash ^ word) * 0xC4CEB9FE1A85EC53u;
    return hash ^ (hash >> 29);
}

static Text
text_at(const Texts *texts, size_t index)
{
    const uint64_t *ends = (const uint64_t *)texts->ends.data;
    uint64_t start = index ? ends[index - 1] : 0;
    return (Text){texts->bytes.data + start, ends[index] - start};
}

static uint32_t *
slot_of(const Texts *texts, Text text)
{
    size_t at = hash_of(text, texts->seed) & (texts->capacity - 1);
    while (texts->table[at] != 0) {
        Text other = text_at(texts, texts->table[at] - 1);
        if (other.size == text.size && memcmp(other.at, text.at, text.size) == 0) {
            break;
        }
        at = (at + 1) & (texts->capacity - 1);
    }
    return &texts->table[at];
}

static int
grow(Texts *texts)
{
    size_t count = texts->ends.used / sizeof(uint64_t);
    size_t capacity = texts->capacity ? 2 * texts->capacity : 4096;
    uint32_t *table = PyMem_RawCalloc(capacity, sizeof *table);
    if (table == NULL) {
        return -1;
    }
    PyMem_RawFree(texts->table);
    texts->table = table;
    texts->capacity = capacity;
    for (size_t index = 0; index < count; index++) {
        *slot_of(texts, text_at(texts, index)) = (uint32_t)index + 1;
    }
    return 0;
}

int64_t
texts_add(Texts *texts, Text text)
{
    size_t count = texts->ends.used / sizeof(uint64_t);
    if (2 * (count + 1) > texts->capacity && (count >= INT32_MAX || grow(texts) < 0)) {
        return -1;
    }
    uint32_t *slot = slot_of(texts, text);
    if (*slot == 0) {
        uint64_t end = texts->bytes.used + text.size;
        if (column_add(&texts->bytes, text.at, text.size) < 0 || column_add(&texts->ends, &end, sizeof end) < 0) {
            texts->bytes.used = end - text.size;
            return -1;
        }
        *slot = (uint32_t)count + 1;
    }
    return *slot - 1;
}

int64_t
texts_add_after(Texts *texts, Text text, int64_t *last)
{
    if ((size_t)*last < texts->ends.used / sizeof(uint64_t)) {
        Text other = text_at(texts, (size_t)*last);
        if (other.size == text.size && memcmp(other.at, text.at, text.size) == 0) {
            return *last;
        }
    }
    return *last = texts_add(texts, text);
}

void
texts_free(Texts *texts)
{
    column_free(&texts->bytes);
    column_free(&texts->ends);
    PyMem_RawFree(texts->table);
    *texts = (Texts){0};
}
