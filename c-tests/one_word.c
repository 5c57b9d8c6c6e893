/* What writes to one word in several accesses is one step. Where another thread uses that word meanwhile, that is said. */
#include "t.h"
#include <string.h>

static char word[8] __attribute__((aligned(8)));
static const char *what;

static void *writes(void *arg)
{
    static char from[8] = "bbbbbbb";
    if (!strcmp(what, "seven"))
        memcpy(word, from, 7);
    if (!strcmp(what, "eight"))
        memcpy(word, from, 8);
    if (!strcmp(what, "printed"))
        snprintf(word, sizeof word, "%s", from);
    /* Nothing is written at all. */
    if (!strcmp(what, "counted"))
        word[0] = (char)snprintf(NULL, 0, "%s", from);
    if (!strcmp(what, "moved")) {
        char *to = word, *place = from;
        long n = 7;
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(place), "+c"(n)::"memory");
    }
    return arg;
}

int main(int argc, char **argv)
{
    MUST(argc != 2);
    what = argv[1];
    pthread_t t = go(writes, NULL);
    char first = *(volatile char *)word, second = *(volatile char *)(word + 1);
    join(t);
    printf("%d\n", first == second);
    return 0;
}
