/* Functions of libc that use memory of their caller's: what is recorded of `cells` is compared with single-stepping through libc. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <search.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

/* All memory that is looked at here: 64-byte rows. */
struct { char bytes[16384]; } cells __attribute__((aligned(4096)));
#define ROW(n) (cells.bytes + 64 * (n))

static void *idle(void *p) { return p; }
static int less(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int less_with(const void *a, const void *b, void *c) { return less(a, b) + (c != NULL); }

__attribute__((noinline, format(printf, 2, 3))) static void to_text(char *at, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(at, 64, format, list);
    va_end(list);
    va_start(list, format);
    vsprintf(at + 64, format, list);
    va_end(list);
}

__attribute__((noinline, format(scanf, 2, 3))) static int of_text(const char *at, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsscanf(at, format, list);
    va_end(list);
    return n;
}

/* Not known to the compiler, so that it does not put its own in the place of a function. */
static void *volatile none;
#define SAME(p) ((__typeof__(p))((char *)(p) + (long)none))

int main(void) {
    pthread_t t;
    static const char *const texts[] = {"alpha beta,gamma", "12345 rest", " -0x7fq", "3.25e2;", "beta", "a/b/c", "1.2.3.4", "long text that has more than one block in it, so it ends in the next row but one"};
    for (unsigned n = 0; n < sizeof texts / sizeof texts[0]; n++) strcpy(ROW(n), texts[n]);
    FILE *file = tmpfile();
    fputs("one\ntwo two\n17 abc 2.5\nrest of it", file);
    rewind(file);
    sem_t sem;
    sem_init(&sem, 0, 3);
    putenv("VS_FUNCTIONS=1");
    /* What the program itself writes comes before the beginning: of each transition a byte is recorded once. */
    strcpy(ROW(15), ";;a;bc"); strcpy(ROW(16), "x,y,,z");
    char **place = (char **)ROW(17);
    *place = ROW(16);
    strcpy(ROW(18), "p q");
    strcpy(ROW(19), "dir/base"); strcpy(ROW(20), "dir/base/");
    size_t *size = (size_t *)(ROW(46) + 8);
    *size = 0; *(char **)ROW(46) = NULL;
    for (int n = 0; n < 9; n++) ((int *)ROW(50))[n] = n * 5 % 9;
    time_t *when = (time_t *)ROW(52);
    *when = 1000000000;
    strcpy(ROW(71), "VS_FUNCTIONS");
    wcscpy((wchar_t *)ROW(33), L"wide");
    pthread_create(&t, 0, idle, 0);
    volatile long sum = 0;
    *(volatile long *)ROW(255) = 1; /* the beginning */
    /* Texts. */
    sum += strlen(SAME(ROW(0))) + strnlen(SAME(ROW(0)), 3) + (long)strchr(SAME(ROW(0)), 'b') + (long)strrchr(SAME(ROW(0)), 'a');
    sum += strcmp(SAME(ROW(0)), SAME(ROW(4))) + strncmp(SAME(ROW(0)), SAME(ROW(4)), 2) + strcasecmp(SAME(ROW(4)), "BETX") + strcoll(SAME(ROW(4)), SAME(ROW(0)));
    sum += strspn(SAME(ROW(1)), "123") + strcspn(SAME(ROW(0)), ",") + (long)strpbrk(SAME(ROW(0)), "xb") + (long)strstr(SAME(ROW(0)), SAME(ROW(4)));
    sum += (long)memchr(SAME(ROW(0)), 't', 20) + memcmp(SAME(ROW(0)), SAME(ROW(1)), 8) + (long)strdup(SAME(ROW(7))) + (long)strndup(SAME(ROW(0)), 3);
    strcpy(SAME(ROW(10)), SAME(ROW(0))); strncpy(SAME(ROW(11)), SAME(ROW(4)), 20); strcat(SAME(ROW(10)), SAME(ROW(4)));
    memcpy(SAME(ROW(12)), SAME(ROW(7)), 33); memmove(SAME(ROW(12)) + 3, SAME(ROW(12)), 20); memset(SAME(ROW(13)), 4, 17); bzero(SAME(ROW(13)) + 20, 5);
    explicit_bzero(SAME(ROW(13)) + 30, 6); stpcpy(SAME(ROW(14)), SAME(ROW(4)));
    char *state = NULL;
    while (strtok_r(state ? NULL : SAME(ROW(15)), ";", (char **)SAME(&state))) sum++;
    while (strsep(SAME(place), ",")) sum++;
    strtok(SAME(ROW(18)), " "); strtok(NULL, " ");
    sum += (long)dirname(SAME(ROW(19))) + (long)__xpg_basename(SAME(ROW(20)));
    sum += strxfrm(SAME(ROW(21)), SAME(ROW(4)), 20) + strverscmp(SAME(ROW(5)), SAME(ROW(6)));
    /* Numbers. */
    sum += strtol(SAME(ROW(1)), (char **)ROW(22), 10) + strtoul(SAME(ROW(2)), (char **)(ROW(22) + 8), 0) + (long)strtod(SAME(ROW(3)), (char **)(ROW(22) + 16)) + atoi(SAME(ROW(1)));
    sum += strtoll(SAME(ROW(1)) + 2, NULL, 8) + (long)atof(SAME(ROW(3)));
    /* Formats. */
    snprintf(ROW(24), 64, "%s|%5d|%-4.2s|%c|%%|%.3f|%Lf", SAME(ROW(4)), 17, SAME(ROW(0)), 'x', 1.5, 2.5L);
    snprintf(ROW(26), 4, "%s", SAME(ROW(0)));
    snprintf(ROW(27), 0, "%s", SAME(ROW(0)));
    snprintf(ROW(28), 64, "%d %d %d %d %d %d %f %f %f %f %f %f %f %f %f %s %ld%hhn%ln", 1, 2, 3, 4, 5, 6, .1, .2, .3, .4, .5, .6, .7, .8, .9, SAME(ROW(4)), 7L, (signed char *)ROW(30), (long *)(ROW(30) + 8));
    sprintf(ROW(32), "%*.*s %p %ls", 6, 3, SAME(ROW(0)), (void *)8, (wchar_t *)SAME(ROW(33)));
    to_text(ROW(34), "%s %d %m %g", SAME(ROW(4)), 3, 4.5);
    char **made = (char **)ROW(36);
    sum += asprintf(made, "%s and more", SAME(ROW(4)));
    /* Scans. */
    sum += sscanf(SAME(ROW(1)), "%d %7s", (int *)ROW(38), ROW(38) + 8);
    sum += sscanf(SAME(ROW(1)), "%3hd%hhd%*s%n", (short *)ROW(39), (signed char *)ROW(39) + 4, (int *)(ROW(39) + 8));
    sum += sscanf(SAME(ROW(3)), "%f%[;]%n", (float *)ROW(40), ROW(40) + 8, (int *)(ROW(40) + 16));
    sum += sscanf(SAME(ROW(0)), "%5c %ms %lf %d", ROW(41), (char **)(ROW(41) + 8), (double *)(ROW(41) + 16), (int *)(ROW(41) + 24));
    sum += of_text(SAME(ROW(2)), "%li%1c%Lf", (long *)ROW(42), ROW(42) + 8, (long double *)(ROW(42) + 16));
    /* Streams. */
    sum += (long)fgets(ROW(44), 20, file) + (long)fgets(ROW(45), 5, file);
    sum += getline((char **)ROW(46), size, file);
    sum += fscanf(file, "%d %s", (int *)ROW(47), ROW(47) + 8);
    sum += fread(ROW(48), 3, 2, file) + fread(ROW(49), 5, 10, file);
    rewind(file);
    sum += fwrite(SAME(ROW(7)), 3, 5, file) + fputs(SAME(ROW(7)), file) + fprintf(file, "%s %.2s", SAME(ROW(4)), SAME(ROW(0)));
    /* Sorting and random numbers. */
    qsort(ROW(50), 9, 4, less); qsort_r(ROW(50), 9, 4, less_with, NULL);
    sum += rand_r((unsigned *)ROW(51)) + nrand48((unsigned short *)(ROW(51) + 8));
    /* Time. */
    struct tm *tm = (struct tm *)ROW(53);
    gmtime_r(SAME(when), tm); sum += timegm(SAME(tm));
    sum += strftime(ROW(54), 64, "%Y-%m-%d %H", SAME(tm)) + (long)asctime_r(SAME(tm), ROW(55)) + (long)ctime_r(SAME(when), ROW(56));
    sum += (long)strptime("2001-02-03", "%Y-%m-%d", (struct tm *)ROW(57));
    time((time_t *)ROW(58)); clock_gettime(CLOCK_MONOTONIC, (struct timespec *)(ROW(58) + 16));
    /* Addresses, signals, others. */
    sum += inet_pton(AF_INET, SAME(ROW(6)), ROW(59)) + (long)inet_ntop(AF_INET, SAME(ROW(59)), ROW(60), 32) + inet_aton(SAME(ROW(6)), (struct in_addr *)(ROW(59) + 8)) + inet_addr(SAME(ROW(6)));
    sigset_t *set = (sigset_t *)ROW(62);
    sigemptyset(set); sigaddset(set, SIGUSR1); sum += sigismember(SAME(set), SIGUSR1);
    sem_getvalue(&sem, (int *)ROW(65));
    pthread_attr_t *attr = (pthread_attr_t *)ROW(66);
    pthread_attr_init(attr); pthread_attr_setstacksize(attr, 1 << 20); pthread_attr_getstacksize(attr, (size_t *)ROW(67));
    pthread_attr_getdetachstate(attr, (int *)(ROW(67) + 8));
    pthread_mutexattr_t *kind = (pthread_mutexattr_t *)(ROW(67) + 16);
    pthread_mutexattr_init(kind); pthread_mutexattr_settype(kind, PTHREAD_MUTEX_RECURSIVE); pthread_mutexattr_gettype(kind, (int *)(ROW(67) + 24));
    pthread_key_create((pthread_key_t *)(ROW(67) + 32), NULL);
    gethostname(ROW(68), 64);
    wcslen(SAME((wchar_t *)ROW(33))); wmemcpy((wchar_t *)ROW(69), SAME((wchar_t *)ROW(33)), 3); wmemset((wchar_t *)ROW(70), L'x', 3);
    sum += (long)getenv(SAME(ROW(71)));
    sum += (long)strerror_r(5, ROW(72), 64) + __xpg_strerror_r(5, ROW(73), 64);
    /* Numbers that are given besides, and what asks about the stack and the loader. */
    sum += (long)modf(2.5, (double *)ROW(75)) + (long)modff(2.5f, (float *)(ROW(75) + 8)) + (long)modfl(2.5L, (long double *)(ROW(75) + 16));
    sum += (long)frexp(2.5, (int *)(ROW(75) + 32)) + (long)frexpf(2.5f, (int *)(ROW(75) + 40)) + (long)frexpl(2.5L, (int *)(ROW(75) + 48));
    sum += dladdr(SAME(&sem), (Dl_info *)ROW(76)) + dladdr(stdout, (Dl_info *)ROW(76));
    sum += (long)lfind(texts, SAME(ROW(81)), SAME((size_t *)ROW(77)), 1, less);
    sum += posix_memalign((void **)ROW(78), 64, 64);
    sum += _setjmp(*(jmp_buf *)SAME(ROW(79)));
    *(volatile long *)ROW(254) = 2; /* the end */
    pthread_join(t, 0);
    return 0;
}
