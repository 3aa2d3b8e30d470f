/* Finds the ends of strings, numbers and values. It is not a validator: it finds them in valid JSON, and stays inside
 * the text if that is not JSON. */
#include "scan.h"

#include <string.h>

Scan
json_space(Cursor *cursor)
{
    const char *at = cursor->at;
    while (at < cursor->end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) {
        at++;
    }
    cursor->at = at;
    return at < cursor->end ? SCAN_OK : SCAN_MORE;
}

Scan
json_string(Cursor *cursor, Text *text)
{
    const char *start = cursor->at, *from = start + 1;
    while (from < cursor->end) {
        const char *quote = memchr(from, '"', (size_t)(cursor->end - from));
        if (quote == NULL) {
            return SCAN_MORE;
        }
        const char *back = quote;
        while (back > start + 1 && back[-1] == '\\') {
            back--;
        }
        if ((quote - back) % 2 == 0) {
            *text = (Text){start, (size_t)(quote + 1 - start)};
            cursor->at = quote + 1;
            return SCAN_OK;
        }
        from = quote + 1;
    }
    return SCAN_MORE;
}

static Scan
json_nested(Cursor *cursor, Text *text)
{
    const char *start = cursor->at;
    Cursor inside = *cursor;
    int64_t depth = 0;
    while (inside.at < inside.end) {
        switch (*inside.at) {
        case '"': {
            Text ignored;
            Scan found = json_string(&inside, &ignored);
            if (found != SCAN_OK) {
                return found;
            }
            continue;
        }
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            if (--depth == 0) {
                cursor->at = inside.at + 1;
                *text = (Text){start, (size_t)(cursor->at - start)};
                return SCAN_OK;
            }
            break;
        default:
            break;
        }
        inside.at++;
    }
    return SCAN_MORE;
}

static bool
ends_plain(char byte)
{
    return byte == ',' || byte == '}' || byte == ']' || byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t' ||
           byte == ':' || byte == '"' || byte == '{' || byte == '[';
}

/* The cursor is on the first byte. */
Scan
json_value(Cursor *cursor, Text *text)
{
    if (*cursor->at == '"') {
        return json_string(cursor, text);
    }
    if (*cursor->at == '{' || *cursor->at == '[') {
        return json_nested(cursor, text);
    }
    const char *at = cursor->at;
    while (at < cursor->end && !ends_plain(*at)) {
        at++;
    }
    if (at == cursor->end) {
        return SCAN_MORE; /* there may be more digits */
    }
    if (at == cursor->at) {
        return SCAN_BAD;
    }
    *text = (Text){cursor->at, (size_t)(at - cursor->at)};
    cursor->at = at;
    return SCAN_OK;
}

static Text
without_quotes(Text text)
{
    return text.size >= 2 && *text.at == '"' ? (Text){text.at + 1, text.size - 2} : text;
}

/* A decimal number times 10^shift, rounded half away from zero. False for other text and for numbers too large. */
static bool
decimal(Text text, int shift, int64_t *value)
{
    text = without_quotes(text);
    const char *at = text.at, *end = text.at + text.size;
    bool negative = at < end && *at == '-';
    at += negative || (at < end && *at == '+');
    uint64_t digits = 0;
    int kept = 0, point = 0, exponent = 0;
    bool any = false, after_point = false, half = false; /* the first dropped digit is 5 or more */
    for (; at < end && ((*at >= '0' && *at <= '9') || (*at == '.' && !after_point)); at++) {
        if (*at == '.') {
            after_point = true;
            continue;
        }
        any = true;
        if (kept < 19) {
            digits = digits * 10 + (uint64_t)(*at - '0');
            kept += digits != 0;
            point += after_point;
        }
        else { /* a digit beyond 64 bits */
            half = kept == 19 ? *at >= '5' : half;
            kept = 20;
            point -= !after_point;
        }
    }
    if (any && at < end && (*at == 'e' || *at == 'E')) {
        at++;
        bool down = at < end && *at == '-';
        at += down || (at < end && *at == '+');
        any = at < end;
        for (; at < end && *at >= '0' && *at <= '9'; at++) {
            exponent = exponent < 1000 ? exponent * 10 + (*at - '0') : exponent;
        }
        exponent = down ? -exponent : exponent;
    }
    if (!any || at != end) {
        return false;
    }
    int power = shift + exponent - point;
    for (; power > 0 && digits != 0; power--) {
        if (digits > INT64_MAX / 10) {
            return false;
        }
        digits *= 10;
    }
    for (; power < -1 && digits != 0; power++) {
        digits /= 10;
    }
    if (power == -1) {
        digits = digits / 10 + (digits % 10 >= 5);
    }
    else {
        digits += power == 0 && half;
    }
    if (digits > INT64_MAX) {
        return false;
    }
    *value = negative ? -(int64_t)digits : (int64_t)digits;
    return true;
}

bool
json_integer(Text text, int64_t *value)
{
    return decimal(text, 0, value);
}

/* Nanoseconds of a number of microseconds, exactly: today's timestamps have more digits than a double. */
bool
json_nanoseconds(Text text, int64_t *value)
{
    return decimal(text, 3, value);
}
