/* State of memory that several threads share, and that is read or changed by calls, with two arguments: what it is, and "before" or "after": that
 * the first thread finds it so. Each alone is wrong in some order. "fixed": looks when the other one is over. */
#include "t.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int file;
static volatile int *mapped;
static char *page;
static pthread_t first;
static sigjmp_buf back;

static void faults(int sig) { siglongjmp(back, sig); }
/* Whether that memory can be written. */
static int can_write(volatile char *at)
{
    if (sigsetjmp(back, 1)) return 0;
    *at = 1;
    return 1;
}
static void file_of(off_t size)
{
    file = memfd_create("shared", 0);
    MUST(file < 0 || ftruncate(file, size));
    mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
}
static void a_file(void) { file_of(4096); }
static void no_file(void) { file_of(0); }
static void page_of(int prot) { page = mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static void closed_page(void) { page_of(PROT_NONE); }
static void frozen_page(void) { page_of(PROT_READ); }
static void a_page(void)
{
    page_of(PROT_READ | PROT_WRITE);
    page[0] = 3;
}
static void nothing(void) { first = pthread_self(); }

static void stores(void) { mapped[0] = 7; }
static int reads(void)
{
    int found = 0;
    MUST(pread(file, &found, sizeof found, 0) != sizeof found);
    return found == 7;
}
static void writes(void)
{
    int seven = 7;
    MUST(write(file, &seven, sizeof seven) != sizeof seven);
}
static int loads(void) { return mapped[0] == 7; }
static void lengthens(void) { MUST(ftruncate(file, 4096)); }
static int is_there(void) { return can_write((volatile char *)mapped); }
static void opens(void) { MUST(mprotect(page, 4096, PROT_READ | PROT_WRITE)); }
static int is_open(void) { return can_write(page); }
static void wipes(void) { MUST(madvise(page, 4096, MADV_WIPEONFORK)); }
static int is_wiped(void)
{
    pid_t child = fork();
    if (child == 0) _exit(page[0]);
    return WEXITSTATUS(reap(child)) == 0;
}
static void *top;
static void grows(void) { MUST(sbrk(4096) == (void *)-1); }
static int has_grown(void) { return sbrk(0) != top; }
static void counts(void)
{
    MUST(!malloc(1));
    top = sbrk(0);
}
static void two_pages(void) { page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static void shortens(void) { MUST(mremap(page, 8192, 4096, 0) != page); }
static int is_gone(void) { return !can_write(page + 4096); }
static void one_of_two(void)
{
    two_pages();
    MUST(munmap(page + 4096, 4096));
}
static void extends(void) { MUST(mremap(page, 4096, 8192, 0) != page); }
static int has_come(void) { return can_write(page + 4096); }
static void a_segment(void)
{
    int id = shmget(IPC_PRIVATE, 4096, 0600);
    page = shmat(id, NULL, 0);
    MUST(shmctl(id, IPC_RMID, NULL));
}
static void a_shared_page(void) { page = shared(4096); }
static void unmaps(void) { MUST(munmap(page, 4096)); }
/* The same by number: by libc's `syscall`, and by an instruction of the program's own. */
static void unmaps_by_number(void) { MUST(syscall(SYS_munmap, page, 4096)); }
static void opens_by_number(void) { MUST(syscall(SYS_mprotect, page, 4096, PROT_READ | PROT_WRITE)); }
static void shortens_by_number(void) { MUST(syscall(SYS_mremap, page, 8192, 4096, 0) != (long)page); }
static void wipes_by_number(void) { MUST(syscall(SYS_madvise, page, 4096, MADV_WIPEONFORK)); }
static void unmaps_by_itself(void)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(SYS_munmap), "D"(page), "S"(4096L) : "rcx", "r11", "memory");
    MUST(result);
}
static void detaches(void) { MUST(shmdt(page)); }
static int is_detached(void) { return !can_write(page); }
static void registers(void) { MUST(syscall(SYS_membarrier, 1 << 4, 0, 0)); }
static int is_registered(void) { return syscall(SYS_membarrier, 1 << 3, 0, 0) == 0; }
static void loads_library(void) { MUST(!dlopen("libm.so.6", RTLD_NOW)); }
static int is_loaded(void) { return dlopen("libm.so.6", RTLD_NOW | RTLD_NOLOAD) != NULL; }
static void sets_level(void) { MUST(pthread_setconcurrency(3)); }
static int tells_level(void) { return pthread_getconcurrency() == 3; }
static void masks(void) { umask(077); }
static int makes(void)
{
    struct stat s;
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0666);
    MUST(fd < 0 || fstat(fd, &s) || close(fd));
    return (s.st_mode & 0777) == 0600;
}
static void clear_mask(void) { umask(022); }
/* libc has a lock of the thread's while it makes its calls about the policy. */
static void sets_policy(void)
{
    struct sched_param none = { 0 };
    MUST(pthread_setschedparam(first, SCHED_BATCH, &none));
}
static int tells_policy(void)
{
    int policy;
    struct sched_param found;
    MUST(pthread_getschedparam(first, &policy, &found));
    return policy == SCHED_BATCH;
}

static const struct { const char *name; void (*begin)(void); void (*set)(void); int (*tell)(void); } ALL[] = {
    { "pread", a_file, stores, reads },        { "write", a_file, writes, loads },
    { "lengthens", no_file, lengthens, is_there }, { "opens", closed_page, opens, is_open },
    { "thaws", frozen_page, opens, is_open },  { "wipes", a_page, wipes, is_wiped },
    { "break", counts, grows, has_grown },     { "shortens", two_pages, shortens, is_gone },
    { "extends", one_of_two, extends, has_come }, { "detaches", a_segment, detaches, is_detached },
    { "unmaps", a_shared_page, unmaps, is_detached }, { "number", a_page, unmaps_by_number, is_detached },
    { "itself", a_page, unmaps_by_itself, is_detached }, { "number_opens", closed_page, opens_by_number, is_open },
    { "number_thaws", frozen_page, opens_by_number, is_open },
    { "number_shortens", two_pages, shortens_by_number, is_gone },
    { "number_wipes", a_page, wipes_by_number, is_wiped },
    { "barriers", nothing, registers, is_registered },
    { "level", nothing, sets_level, tells_level }, { "nameless", clear_mask, masks, makes },
    { "library", nothing, loads_library, is_loaded },
    { "policy", nothing, sets_policy, tells_policy },
};

static int at;
static void *runs(void *arg)
{
    ALL[at].set();
    return arg;
}

int main(int argc, char **argv)
{
    MUST(argc != 3);
    for (at = 0; strcmp(ALL[at].name, argv[1]); at++) {}
    signal(SIGSEGV, faults), signal(SIGBUS, faults);
    ALL[at].begin();
    pthread_t t = go(runs, NULL);
    if (!strcmp(argv[2], "fixed"))
        join(t);
    int after = ALL[at].tell();
    if (strcmp(argv[2], "fixed"))
        join(t);
    assert(after == (strcmp(argv[2], "before") != 0));
    return 0;
}
