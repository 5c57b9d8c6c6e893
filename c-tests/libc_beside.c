/* What libc and the kernel keep for all threads, used by two: a stream that is closed, functions that take no lock, where mappings come, protection, functions
 * that end the process by themselves. */
#include "t.h"
#include <dlfcn.h>
#include <err.h>
#include <error.h>
#include <link.h>
#include <malloc.h>

static FILE *stream;
static char *mapped;
static void *other;
static int libraries;
static const char *what;

static int is(const char *word)
{
    return strcmp(what, word) == 0;
}

static void *maps(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void prints_locked(char c)
{
    flockfile(stream);
    for (int i = 0; i < 3; i++)
        fputc_unlocked(c, stream);
    funlockfile(stream);
}

static int counts(struct dl_phdr_info *info, size_t size, void *n)
{
    (void)info, (void)size;
    ++*(int *)n;
    return 0;
}

static void *runs(void *unused)
{
    if (is("close"))
        fputs("xy", stream);
    if (is("format"))
        fprintf(stream, "%d", 1);
    if (is("unlocked"))
        fputc_unlocked('x', stream);
    if (is("locked"))
        prints_locked('x');
    if (is("place") || is("lower"))
        other = maps(4096);
    if (is("protect"))
        mprotect(mapped, 4096, PROT_READ);
    if (is("errx"))
        errx(4, "over");
    if (is("error"))
        error(4, 0, "over");
    if (is("goes-on"))
        error(0, 0, "not over");
    if (is("libraries"))
        dl_iterate_phdr(counts, &libraries);
    if (is("mallopt"))
        mallopt(M_TRIM_THRESHOLD, 1 << 20);
    return unused;
}

int main(int argc, char **argv)
{
    what = argc > 1 ? argv[1] : "close";
    mapped = maps(4096);
    stream = fopen("vs_libc_beside", "w");
    pthread_t thread = go(runs, NULL);
    if (is("close") || is("format"))
        fclose(stream);
    if (is("unlocked"))
        fputc_unlocked('y', stream);
    if (is("locked"))
        prints_locked('y');
    if (is("place"))
        munmap(mapped, 4096);
    if (is("lower"))
        mapped = maps(4096);
    if (is("protect"))
        mprotect(mapped, 4096, PROT_READ | PROT_WRITE);
    if (is("libraries"))
        dlopen("libm.so.6", RTLD_NOW);
    if (is("errx") || is("error"))
        _exit(3);
    join(thread);
    if (is("libraries")) {
        int now = 0;
        dl_iterate_phdr(counts, &now);
        printf("%s\n", libraries == now ? "all" : "fewer");
    }
    if (is("place"))
        printf("%s\n", other == mapped ? "there" : "elsewhere");
    if (is("lower"))
        printf("%s\n", (char *)other < mapped ? "lower" : "higher");
    if (is("protect"))
        mapped[0] = 1;
    if (is("unlocked") || is("locked")) {
        char text[8] = "";
        fclose(stream);
        stream = fopen("vs_libc_beside", "r");
        if (fgets(text, sizeof text, stream))
            printf("%s\n", text);
    }
    return 0;
}
