/* A thread uses, or frees again, a block of the heap that another one has freed: the report says where it was freed and where it came from,
 * whatever gave it out. */
#include "t.h"

struct node {
    long value;
    char rest[40];
};

static node *object;
static char *text;
static const char *how;

static bool is(const char *word)
{
    return !strcmp(how, word);
}

extern "C" {
__attribute__((noinline)) void makes()
{
    if (is("new")) object = new node();
    if (is("array")) text = new char[30];
    if (is("malloc") || is("twice")) text = static_cast<char *>(malloc(30));
    if (is("calloc")) text = static_cast<char *>(calloc(3, 10));
    if (is("realloc")) text = static_cast<char *>(realloc(malloc(10), 30));
    if (is("aligned")) text = static_cast<char *>(aligned_alloc(64, 128));
    if (is("strdup")) text = strdup("some text");
    __asm__ volatile("");
}

__attribute__((noinline)) void drops()
{
    if (is("new"))
        delete object;
    else if (is("array"))
        delete[] text;
    else if (is("realloc"))
        free(realloc(text, 300));
    else
        free(text);
    __asm__ volatile("");
}

__attribute__((noinline)) void looks()
{
    if (is("twice")) free(text);
    volatile long seen = is("new") ? object->value : text[3];
    (void)seen;
}
}

static void *first(void *unused)
{
    drops();
    return unused;
}

static void *second(void *unused)
{
    looks();
    return unused;
}

int main(int, char **argv)
{
    how = argv[1];
    makes();
    pthread_t one = go(first, NULL), two = go(second, NULL);
    join(one), join(two);
}
