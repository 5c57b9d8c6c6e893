// What is odd about it is done to the file, or comes with an argument: nothing, writable, changes, generated; or with
// -DDATA.
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int count;
static int kept;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline, noclone)) static void adds(void) { count = count + 1; }

__attribute__((noinline, noclone)) static void keeps(void) {
    pthread_mutex_lock(&lock);
    kept++;
    pthread_mutex_unlock(&lock);
}

#ifdef DATA
// A table between its instructions, which it reads.
int from_table(int *at, int n);
__asm__(".text\n.globl from_table\n.type from_table, @function\nfrom_table:\n .cfi_startproc\n"
        " lea table(%rip), %rax\n movslq %esi, %rsi\n mov (%rax,%rsi,4), %eax\n jmp 1f\n"
        "table: .long 0x11ff25c3, 0x22cccccc, 0x33010203, 0x440f05ff\n"
        "1: add (%rdi), %eax\n mov %eax, (%rdi)\n ret\n .cfi_endproc\n .size from_table, .-from_table\n");
#endif

// An instruction that reads memory, and one with a constant behind it that the program changes; both are moved where they are watched.
#define CONSTANT_AT 3
int with_constant(int *at);
__asm__(".text\n.globl with_constant\n.type with_constant, @function\nwith_constant:\n .cfi_startproc\n mov (%rdi), %eax\n"
        " add $0x11111111, %eax\n ret\n .cfi_endproc\n .size with_constant, .-with_constant\n");

static void may_write(void *code, int write) {
    uintptr_t page = (uintptr_t)code & -4096ul;
    int more = write ? PROT_WRITE : 0;
    if (mprotect((void *)page, 8192, PROT_READ | PROT_EXEC | more)) _exit(3);
}

static void *other(void *racy) {
    if (racy) adds();
    keeps();
    return NULL;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "nothing";
    int racy = argc > 2, sum = 0, here = 5;
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, racy ? &racy : NULL)) return 3;
#ifdef DATA
    for (int n = 0; n < 4; n++) sum ^= from_table(&here, n);
#endif
    if (!strcmp(what, "writable")) may_write((void *)adds, 1);
    if (!strcmp(what, "changes")) {
        int32_t old = with_constant(&here) - here, value = 77;
        char *code = (char *)(void *)with_constant;
        may_write(code, 1);
        memcpy(code + CONSTANT_AT, &value, 4);
        may_write(code, 0);
        sum = old ^ (with_constant(&here) - here);
    }
    if (!strcmp(what, "generated")) {
        // add dword ptr [rdi], 1; ret
        static const unsigned char code[] = {0x83, 0x07, 0x01, 0xc3};
        unsigned char *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memcpy(at, code, sizeof code);
        mprotect(at, 4096, PROT_READ | PROT_EXEC);
        ((void (*)(int *))(void *)at)(&here);
        sum = here;
    }
    if (racy) adds();
    keeps();
    pthread_join(thread, NULL);
    printf("%x %d\n", sum, kept);
    assert(!racy || count == 2);
    return 0;
}
