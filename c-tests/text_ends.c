/* How far a function of libc reads a text depends on what it finds, which another thread changes meanwhile: first the beginning, so that there is more to
 * read, then what is read only then. */
#include "t.h"

static char text[16] __attribute__((aligned(16)));
static const char like[16] __attribute__((aligned(16))) = "123456789";
static char copy[16];
static int begins, ends, result;
static const char *what;

static void *reads(void *unused)
{
    if (strcmp(what, "compare") == 0)
        result = strcmp(text, like);
    if (strcmp(what, "length") == 0)
        result = strlen(text);
    if (strcmp(what, "copy") == 0)
        result = strlen(strcpy(copy, text));
    if (strcmp(what, "find") == 0)
        result = strchr(text, '9') != NULL;
    if (strcmp(what, "print") == 0)
        result = snprintf(copy, sizeof copy, "%s", text);
    if (strcmp(what, "number") == 0)
        result = atoi(text);
    return unused;
}

static void *prints(void *unused)
{
    snprintf(copy, sizeof copy, "%s", text);
    return unused;
}

/* All of it lies in one word. */
static void short_one(void)
{
    strcpy(text, "ab");
    pthread_t thread = go(prints, NULL);
    ((volatile char *)text)[0] = 'X';
    ((volatile char *)text)[1] = 'Y';
    join(thread);
    printf("%s\n", copy);
}

static void *measures(void *unused)
{
    result = strlen(text);
    return unused;
}

static void *changes(void *unused)
{
    volatile char *at = text;
    at[1] = 'b', at[0] = 0, at[0] = 'a';
    return unused;
}

/* It becomes shorter, and then long again. */
static void to_and_fro(void)
{
    strcpy(text, "zabcd");
    pthread_t one = go(measures, NULL), other = go(changes, NULL);
    join(one);
    join(other);
    printf("%d\n", result);
}

int main(int argc, char **argv)
{
    if (arg_is(argc, argv, "fro")) {
        to_and_fro();
        return 0;
    }
    if (arg_is(argc, argv, "short")) {
        short_one();
        return 0;
    }
    what = argc > 1 ? argv[1] : "compare";
    strcpy(text, like);
    begins = strcmp(what, "compare") == 0 || strcmp(what, "number") == 0 ? 'x' : 0;
    ends = strcmp(what, "compare") == 0 || strcmp(what, "number") == 0 || strcmp(what, "find") == 0 ? 'y' : 0;
    text[0] = begins;
    pthread_t thread = go(reads, NULL);
    ((volatile char *)text)[0] = '1';
    ((volatile char *)text)[8] = ends;
    join(thread);
    printf("%d\n", strcmp(what, "compare") == 0 ? (result > 0) - (result < 0) : result);
    return 0;
}
