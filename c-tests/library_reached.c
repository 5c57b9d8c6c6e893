/* Functions of libc that write to memory of their caller's, however they are reached: one thread uses memory by a function, another one by instructions
 * of its own, and nothing orders them: main finds what the function has written last. With "fixed" a lock orders them, and main looks for
 * nothing. What the functions of the first part do is known; of those in the second part it is not, and they are reached by dlsym, by dlvsym
 * (a version that is not the default), or by an address in the program's data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <math.h>
#include <regex.h>
#include <search.h>
#include <setjmp.h>
#include <wchar.h>
#include "t.h"

static const char *what;
static int fixed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static union {
    long first;
    wchar_t wide[8];
    double d;
    long double l;
    int i;
    void *many[8];
    Dl_info info;
    jmp_buf jump;
    regmatch_t match[1];
    char page[4096];
} memory __attribute__((aligned(4096)));
static volatile double half = 4.75;
static regex_t regex;
static size_t count = 4;
static int found;
static wchar_t *(*copy)(wchar_t *, const wchar_t *, size_t);
static wchar_t *(*const volatile in_data)(wchar_t *, const wchar_t *, size_t) = wcsncpy;
static int (*old_regexec)(const regex_t *, const char *, size_t, regmatch_t *, int);

static int is(const char *name) { return strcmp(what, name) == 0; }
static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void by_function(void)
{
    static const int numbers[4] = {1, 2, 3, 4}, key = 4;
    if (is("modf")) modf(half, &memory.d);
    if (is("modfl")) modfl(half, &memory.l);
    if (is("frexp")) frexp(half, &memory.i);
    if (is("dladdr")) dladdr(stdout, &memory.info);
    if (is("backtrace")) backtrace(memory.many, 8);
    if (is("setjmp")) _setjmp(memory.jump);
    if (is("memalign")) MUST(posix_memalign(&memory.many[0], 64, 64));
    if (is("lfind")) found = lfind(&key, numbers, &count, sizeof key, compare) != NULL;
    if (is("discard")) MUST(madvise(&memory, 4096, MADV_DONTNEED));
    if (is("advise")) MUST(madvise(&memory, 4096, MADV_NORMAL));
    if (is("replace")) {
        void *there = mmap(&memory, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        MUST(there != &memory);
    }
    if (is("dlsym") || is("next")) copy(memory.wide, L"abcdefg", 8);
    if (is("data")) in_data(memory.wide, L"abcdefg", 8);
    if (is("dlvsym")) old_regexec(&regex, "abc", 1, memory.match, 0);
}

static void *user(void *unused)
{
    if (fixed) MUST(pthread_mutex_lock(&lock));
    by_function();
    if (fixed) MUST(pthread_mutex_unlock(&lock));
    return unused;
}

static void *writer(void *unused)
{
    if (fixed) MUST(pthread_mutex_lock(&lock));
    if (is("lfind")) count = 3;
    memory.first = 0x5555555555555555;
    if (fixed) MUST(pthread_mutex_unlock(&lock));
    return unused;
}

int main(int argc, char **argv)
{
    what = argv[1];
    fixed = argc > 2;
    copy = dlsym(is("next") ? RTLD_NEXT : RTLD_DEFAULT, "wcsncpy");
    old_regexec = dlvsym(RTLD_DEFAULT, "regexec", "GLIBC_2.2.5");
    MUST(copy == NULL || old_regexec == NULL || (void *)old_regexec == dlsym(RTLD_DEFAULT, "regexec"));
    MUST(regcomp(&regex, "b", 0));
    pthread_t a = go(user, NULL), b = go(writer, NULL);
    join(a);
    join(b);
    if (!fixed) assert(is("lfind") ? found : memory.first == 0x5555555555555555);
    return 0;
}
